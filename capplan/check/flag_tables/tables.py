"""The tables by engine."""

from capplan.check.flag_tables.sglang import SGLANG
from capplan.check.flag_tables.table import FlagTable
from capplan.check.flag_tables.tgi import TGI
from capplan.check.flag_tables.trtllm import TRTLLM
from capplan.check.flag_tables.vllm import VLLM

TABLES: dict[str, FlagTable] = {table.engine: table for table in (VLLM, SGLANG, TGI, TRTLLM)}

"""One way of serving a model: the engine, its flags, its degrees; and the pool that is left."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from capplan.performance.engine_pool import engine_kv_settings
from capplan.performance.kv_layout import KvSettings
from capplan.performance.kv_pool import KvPool
from capplan.performance.loaded_weights import loaded_weights
from capplan.performance.memory import MemoryRequest, stage_budgets
from capplan.results.memory import MemoryBudget, MemoryTerm
from capplan.specs.editions import WeightEdition
from capplan.specs.engine import EngineSpec
from capplan.specs.hardware import HardwareSpec
from capplan.specs.model import ModelSpec
from capplan.specs.tensors import weight_bytes_per_gpu


@dataclass(frozen=True, slots=True)
class KvEngine:
    """Engine settings by the engine's names; None is the profile's default, or the model's.

    ``reserve_bytes`` is a flat sum beside weights and KV in place of the itemised terms.
    ``dp`` copies of the attention share one set of experts. ``edition`` is how a log says that
    the weights are quantised; else they are as stored, or converted to ``dtype``. ``version`` is
    the one that was stated, say 0.11.2; None is the profile's last.
    """

    profile: EngineSpec
    dtype: str | None
    kv_dtype: str
    tp: int | None = None
    pp: int = 1
    dcp: int = 1
    dp: int = 1
    reserve_bytes: int | None = None
    gpu_memory_bytes: int | None = None
    memory_share: float | None = None
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    block_size: int | None = None
    async_scheduling: bool | None = None
    enable_prefix_caching: bool | None = None
    edition: WeightEdition | None = None
    version: str | None = None

    @property
    def weights(self) -> WeightEdition:
        return self.edition or WeightEdition(self.dtype, kernel=self.profile.mxfp4_kernel)


@dataclass(frozen=True)
class Deployment:
    """A model on ``tp`` x ``pp`` x ``dp`` GPUs under an engine: budgets and blocks."""

    model: ModelSpec
    hardware: HardwareSpec
    engine: KvEngine
    tp: int

    @property
    def num_gpus(self) -> int:
        return self.tp * self.engine.pp * self.engine.dp

    @property
    def visible_bytes(self) -> int:
        return self.engine.gpu_memory_bytes or self.hardware.visible_memory_bytes

    @cached_property
    def request(self) -> MemoryRequest:
        engine, hardware = self.engine, self.hardware
        return MemoryRequest(
            model=self.model,
            engine=engine.profile,
            visible_bytes=self.visible_bytes,
            gpu_name=hardware.name,
            tp=self.tp,
            pp=engine.pp,
            dp=engine.dp,
            edition=engine.weights,
            memory_share=engine.memory_share,
            max_model_len=engine.max_model_len,
            max_num_seqs=engine.max_num_seqs,
            max_num_batched_tokens=engine.max_num_batched_tokens,
            block_size=engine.block_size,
            visible_is_estimate=engine.gpu_memory_bytes is None
            and hardware.visible_memory_is_estimate,
            fast_link=hardware.scale_up is not None,
        )

    @cached_property
    def budgets(self) -> tuple[MemoryBudget, ...]:
        """Of a GPU of each pipeline stage."""
        budgets = stage_budgets(self.request)
        reserve = self.engine.reserve_bytes
        if reserve is None:
            return budgets
        return tuple(self._flat(budget, reserve) for budget in budgets)

    def _flat(self, budget: MemoryBudget, reserve_bytes: int) -> MemoryBudget:
        """Weights by their tensors alone and one sum for all the rest, as `capplan gpus` plans."""
        engine, visible = self.engine, self.visible_bytes
        if engine.pp * engine.dp == 1:
            weights = weight_bytes_per_gpu(self.model, self.tp, engine.dtype)
        else:
            held = loaded_weights(
                self.model, self.tp, engine.pp, engine.weights, budget.stage, engine.dp
            )
            weights = held.total_bytes
        pool = visible * budget.memory_share - weights - reserve_bytes
        sizes = {
            "weights": (weights, "tensors by shape"),
            "runtime and activations": (reserve_bytes, "--reserve"),
            "left free": (visible * (1 - budget.memory_share), "the engine's share"),
        }
        return replace(
            budget,
            terms=tuple(
                MemoryTerm(name, size, size, size, 0, source)
                for name, (size, source) in sizes.items()
            ),
            pool_low_bytes=pool,
            pool_bytes=pool,
            pool_high_bytes=pool,
        )

    @cached_property
    def settings(self) -> KvSettings:
        engine = self.engine
        return engine_kv_settings(
            engine.profile,
            max_num_batched_tokens=self.budgets[0].max_num_batched_tokens,
            block_size=engine.block_size,
            max_model_len=engine.max_model_len,
            async_scheduling=engine.async_scheduling,
            enable_prefix_caching=engine.enable_prefix_caching,
            pp=engine.pp,
            dcp=engine.dcp,
        )

    def pool_of(self, rooms: list[float]) -> KvPool:
        """The blocks of a pool, given the room for KV in each stage."""
        return KvPool(self.model, self.engine.kv_dtype, self.tp, self.settings, rooms)

    @cached_property
    def pool(self) -> KvPool:
        return self.pool_of([budget.pool_bytes for budget in self.budgets])

    @cached_property
    def least_pool(self) -> KvPool:
        """Where every estimate is at its worst."""
        return self.pool_of([budget.pool_low_bytes for budget in self.budgets])

    @cached_property
    def most_pool(self) -> KvPool:
        return self.pool_of([budget.pool_high_bytes for budget in self.budgets])

    @cached_property
    def pool_beside_weights(self) -> KvPool:
        """Where nothing but weights, and what the engine leaves free, took memory: a bound."""
        kept = ("weights", "left free")
        return self.pool_of(
            [
                budget.visible_bytes
                - sum(term.likely_bytes for term in budget.terms if term.name in kept)
                for budget in self.budgets
            ]
        )

    def checked(self, pool: KvPool) -> KvPool:
        """A pool as the start-up check sees it: some versions lay all layers on one stage's GPU."""
        if self.engine.pp == 1 or not self.engine.profile.whole_model_startup_check:
            return pool
        settings = replace(self.settings, pp=1)
        room = pool.available_bytes
        return KvPool(self.model, self.engine.kv_dtype, self.tp, settings, [room])

    @property
    def starts(self) -> bool:
        pool = self.checked(self.pool)
        return pool.starts(pool.max_model_len)

    def longest(self, most: int) -> int:
        """The longest request that passes the start-up check."""
        return self.checked(self.pool).longest(most)

    @cached_property
    def budget(self) -> MemoryBudget:
        """Of the stage that decides: the fewest blocks."""
        blocks = self.pool.layout.stage_bytes_per_block
        held = [
            budget.pool_bytes / size if size else float("inf")
            for budget, size in zip(self.budgets, blocks, strict=True)
        ]
        return self.budgets[held.index(min(held))]

    def num_sequences(self, tokens: int) -> int:
        """Over all copies of the attention."""
        return self.engine.dp * self.pool.num_sequences(tokens)

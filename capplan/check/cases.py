"""A deployment with everything resolved that can be: model, accelerator, degrees, memory."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

from capplan.check.calibrations import CaseCalibration
from capplan.check.catalogue import KnownModel
from capplan.check.config import Config
from capplan.check.deployment import PLAN, Deployment
from capplan.check.gpu_names import Accelerators, hardware
from capplan.errors import CapplanError
from capplan.performance import kv_engine
from capplan.performance.kv_engine import KvEngine
from capplan.performance.rates import derated_rates
from capplan.performance.step import StepModel
from capplan.specs.check import DeploymentSection
from capplan.specs.editions import WeightEdition
from capplan.specs.engine import EngineSpec
from capplan.specs.engine_catalogue import load_engine, version_within
from capplan.specs.hardware import HardwareSpec
from capplan.specs.kv_cache import PACKED_MLA

_KV_FORMATS = {
    "fp8": "fp8",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
    "fp8_inc": "fp8",
    "fp8_per_token_head": "fp8",
    "int8": "int8",
    "int8_per_token_head": "int8",
    "bf16": "bf16",
    "bfloat16": "bf16",
    "fp16": "fp16",
    "float16": "fp16",
    "half": "fp16",
    "nvfp4": "nvfp4",
    "fp8_ds_mla": PACKED_MLA,
}


@dataclass(frozen=True)
class Case:
    """What rules look at. A field is None where the files do not say it."""

    deployment: Deployment
    config: Config
    section: DeploymentSection
    model: KnownModel | None
    model_note: str | None
    gpus: Accelerators | None
    profile: EngineSpec | None
    version_known: bool
    unresolved: tuple[str, ...]
    own: CaseCalibration  # to one's own servers
    siblings: int = 1  # servers that one container or script starts
    # Answers that several rules ask for and that take long.
    memo: dict[str, object] = field(default_factory=dict, compare=False, repr=False)

    @property
    def engine(self) -> str:
        return self.deployment.engine

    @property
    def engine_version(self) -> str | None:
        """As the configuration says, else the image's tag."""
        return self.section.engine_version or self.deployment.version

    @property
    def is_v0(self) -> bool:
        """vLLM's old core, by version or by the variable that asks for it."""
        asked = self.deployment.environment.get("VLLM_USE_V1")
        return self.engine == "vllm" and (
            (asked is not None and asked.text == "0")
            or (self.version_known and self.profile is not None and self.profile.core == "v0")
        )

    def degree(self, meaning: str) -> int | None:
        """A parallel degree: 1 where it is not set, None where it is set to what is unknown."""
        flag = self.deployment.flag(meaning)
        if flag is None:
            return None if self.deployment.open(meaning) else 1
        return self.deployment.count(meaning)

    def _alone(self, meaning: str) -> int | None:
        """A degree for sums of memory; of a part of a deployment, as if this were all of it."""
        if self.deployment.flag(meaning) is None and self.deployment.partial:
            one = meaning != "tp" or self.gpus_per_replica == 1
            return 1 if one and not self.deployment.hidden else None
        return self.degree(meaning)

    @cached_property
    def tp(self) -> int | None:
        return self.degree("tp")

    @cached_property
    def pp(self) -> int | None:
        return self.degree("pp")

    @cached_property
    def dp(self) -> int | None:
        """Data-parallel ranks: of the attention where experts are shared, else whole copies."""
        return self.degree("dp")

    @property
    def gpus_per_pod(self) -> int | None:
        """GPUs that a pod asks for, or is given with its machine."""
        held = self.deployment.gpus_per_pod
        return held.count if held is not None else self.node_gpus

    @cached_property
    def gpus_per_replica(self) -> int | None:
        """GPUs that the pods of a replica ask for."""
        per_pod = self.gpus_per_pod
        if per_pod is None:
            return None
        pods = self.deployment.pods
        if pods is not None and pods.count is None:
            return None
        total = per_pod * (pods.count if pods is not None and pods.count is not None else 1)
        other = self.deployment.other_gpus
        if other is not None:
            return None if other.count is None else total + other.count
        return total

    @property
    def node_gpus(self) -> int | None:
        """GPUs of the machine type, where nothing asks for fewer (Kaito gives all)."""
        if self.deployment.shape.startswith("Kaito") and self.gpus is not None:
            return self.gpus.per_node
        return None

    @cached_property
    def hardware_id(self) -> str | None:
        return self.gpus.names[0] if self.gpus is not None and self.gpus.names else None

    @cached_property
    def hardware(self) -> HardwareSpec | None:
        """The likeliest accelerator."""
        return None if self.hardware_id is None else hardware(self.hardware_id)

    @cached_property
    def candidates(self) -> tuple[HardwareSpec, ...]:
        """All accelerators that the labels may mean: a fact must hold for each."""
        return tuple(hardware(name) for name in self.gpus.names) if self.gpus is not None else ()

    @property
    def quantisation(self) -> str:
        flag = self.deployment.flag("quantization")
        return (flag.text or "") if flag is not None else ""

    @cached_property
    def edition(self) -> WeightEdition | None:
        """How the weights are held; None where that is not known."""
        flag = self.deployment.flag("quantization")
        if self.model is None or (flag is not None and not flag.known):
            return None
        dtype = self.deployment.flag("dtype")
        return self.model.edition(self.quantisation, (dtype.text or "") if dtype else "")

    @cached_property
    def kv_format(self) -> str | None:
        """The format of the KV cache; None where it is not known to us."""
        if self.model is None:
            return None
        flag = self.deployment.flag("kv_dtype")
        if flag is None or flag.text == "auto":
            return self.model.spec.activation_dtype
        return _KV_FORMATS.get((flag.text or "").lower())

    @cached_property
    def max_model_len(self) -> int | None:
        """Tokens that a request may have: as set, else the model's own; None where unknown."""
        flag = self.deployment.flag("max_model_len")
        if flag is not None:
            number = self.deployment.count("max_model_len")
            return number if number is not None and number > 0 else None
        if self.model is None or self.deployment.open("max_model_len"):
            return None
        return self.model.spec.max_context_tokens

    @cached_property
    def setups(self) -> tuple[kv_engine.Deployment, ...]:
        """The deployment on each accelerator that it may mean, as the memory engine has it.

        Empty where something that decides the memory is not known.
        """
        return tuple(made for spec in self.candidates if (made := self._setup(spec)) is not None)

    @property
    def setup(self) -> kv_engine.Deployment | None:
        return self.setups[0] if self.setups else None

    def _setup(self, spec: HardwareSpec) -> kv_engine.Deployment | None:
        tp, pp, dp = self._alone("tp"), self._alone("pp"), self._attention_copies
        if self.model is None or self.edition is None or self.kv_format is None:
            return None
        if tp is None or pp is None or dp is None or min(tp, pp, dp) < 1 or tp * pp * dp > 4096:
            return None
        if any(self.deployment.open(name) and self.deployment.flag(name) for name in _DECISIVE):
            return None
        share = self.deployment.number("memory_share")
        if share is not None and not 0 < share <= 1:
            return None
        profile = self.profile or load_engine("vllm")
        # The terms of the budgets come from logs of CUDA and ROCm.
        flat = self.profile is None or spec.vendor.lower() not in ("nvidia", "amd")
        engine = KvEngine(
            profile=profile,
            version=version_within(profile, self.engine_version),
            dtype=None,
            kv_dtype=self.kv_format,
            tp=tp,
            pp=pp,
            dp=dp,
            # An engine without a profile: weights and nothing else, on all of the memory.
            reserve_bytes=0 if flat else None,
            memory_share=1.0 if flat else share,
            gpu_memory_bytes=self.gpus.memory_bytes if self.gpus is not None else None,
            max_model_len=self.max_model_len,
            max_num_seqs=_positive(self.deployment.count("max_num_seqs")),
            max_num_batched_tokens=_positive(self.deployment.count("max_num_batched_tokens")),
            block_size=_positive(self.deployment.count("block_size")),
            edition=self.edition if self.edition.kernel else self._with_kernel(profile),
        )
        made = kv_engine.Deployment(self.model.spec, spec, engine, tp)
        return made if _computes(made) else None

    def _with_kernel(self, profile: EngineSpec) -> WeightEdition:
        assert self.edition is not None
        return replace(self.edition, kernel=profile.mxfp4_kernel)

    @property
    def _attention_copies(self) -> int | None:
        """Copies of the attention over which experts are spread; whole copies count as one."""
        dp = self._alone("dp")
        if self.deployment.shape == PLAN:  # that is what `dp` means there
            return dp
        spread = self.deployment.flag("expert_parallel") or self.deployment.flag("dp_attention")
        if dp is None:
            return None
        if self.engine == "sglang":
            return 1
        return dp if spread is not None and spread.switch is not False else 1

    @cached_property
    def steps(self) -> StepModel | None:
        """How long steps take, or None where something that decides it is not known."""
        setup = self.setup
        if setup is None or self.edition is None or self.kv_format is None:
            return None
        tp, pp, dp = setup.tp, setup.engine.pp, setup.engine.dp
        try:
            rates = self.own.calibration.rates(derated_rates(setup.hardware, tp, dp=dp, pp=pp))
            return StepModel(
                setup.model,
                setup.hardware,
                rates,
                tp=tp,
                pp=pp,
                dp=dp,
                ep=dp,
                dtype=self.edition.format,
                kv_dtype=self.kv_format,
            )
        except (CapplanError, ArithmeticError, ValueError, KeyError):
            return None

    @property
    def role_without_decodes(self) -> bool:
        """A prefill server of a disaggregated pair answers nobody token by token."""
        return self.deployment.role == "prefill"

    @property
    def num_replicas(self) -> int | None:
        held = self.section.replicas
        if held is not None:
            return held
        stated = self.deployment.replicas
        return stated.count if stated is not None else (None if self.deployment.partial else 1)

    @property
    def usd_per_gpu_hour(self) -> float | None:
        if self.section.usd_per_gpu_hour is not None:
            return self.section.usd_per_gpu_hour
        price = self.hardware.list_price if self.hardware is not None else None
        return price.usd_per_gpu_hour if price is not None else None


_DECISIVE = ("memory_share", "max_num_seqs", "max_num_batched_tokens", "kv_dtype", "block_size")


def _positive(number: int | None) -> int | None:
    return number if number is not None and number > 0 else None


def _computes(made: kv_engine.Deployment) -> bool:
    """Whether the memory engine can say anything of it: odd degrees may not divide."""
    try:
        return bool(made.budgets) and made.pool is not None
    except (CapplanError, ArithmeticError, ValueError, KeyError, StopIteration):
        return False

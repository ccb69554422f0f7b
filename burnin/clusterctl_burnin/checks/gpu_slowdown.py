"""gpu_slowdown: neither heat nor the machine slows an idle GPU down.

The clock event reasons of nvidia-smi. That the power cap lowers a clock is usual, and `idle` is no fault. A power brake
comes from the machine: some servers set it while idle, so it is a warning here; its cost shows under load.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from clusterctl.fleet.finding import Finding, Verdict, not_applicable, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.nvidia.nvidia_smi import GpuReading
from clusterctl_burnin.check import Area, Cause, Check, Expected, Watch, inconclusive, known
from clusterctl_burnin.limits.limit import Limit, LimitKey
from clusterctl_burnin.loads.gpu.throttle_reasons import POWER_BRAKE, faulty_reasons
from clusterctl_burnin.probe import Readings, UnmeasuredError, seconds_between
from clusterctl_burnin.probes.load_samples import LOAD_SAMPLES, require_all_sampled, sampled
from clusterctl_burnin.probes.nvidia_smi import NVIDIA_SMI, each_or, each_since, read

GPU_SLOWED_MAX = LimitKey(
    "gpu_slowed_max",
    "% of a load",
    default=1,
    source="own choice; a well cooled GPU at its power limit shows no time lost to heat or to a power brake",
)
_NAME = "gpu_slowdown"
_AGAIN = "run the burn-in again"
_MASK = re.compile(r"0x[0-9a-f]{1,16}")
_COOL = "check the machine's fans, air baffles or coolant, then the GPU's heat sink; run the burn-in again"
_POWER = "look for a lost power supply, a power cap or a power event in the BMC; compare the GPU's speed under load"


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    def bad(gpu: GpuReading) -> Iterator[Finding]:
        found = _reason(gpu)
        if found is not None:
            verdict, code, cause, remedy = found
            yield Finding(
                check=_NAME,
                verdict=verdict,
                code=code,
                subject=gpu.subject,
                cause=cause,
                remedy=remedy,
                serial=gpu.serial or "",
                deterministic=False,
            )

    return each_or(_NAME, readings, expected, bad, passed(_NAME, "nothing slows an idle GPU down"))


def _reason(gpu: GpuReading) -> tuple[Verdict, Code, str, str] | None:
    """Return verdict, code, cause and remedy; the gravest reason counts. Raises `UnmeasuredError`."""
    now = gpu.slowdown
    hardware = known(now.hardware, "whether the hardware slows the GPU down")
    if known(now.hardware_thermal, "whether heat slows the GPU down") or known(
        now.software_thermal, "whether the driver slows the GPU down for heat"
    ):
        return Verdict.FAIL, Code.GPU_THROTTLED, "heat slows the idle GPU down", _COOL
    if known(now.power_brake, "whether a power brake slows the GPU down"):
        cause = "the machine slows the GPU down (power brake)"
        return Verdict.WARN, Code.GPU_POWER_BRAKE, cause, _POWER
    if hardware:
        return (
            Verdict.FAIL,
            Code.GPU_THROTTLED,
            "the hardware slows the idle GPU down, for no reason that it names",
            _POWER,
        )
    return None


def _judge_load(before: Readings, after: Readings, expected: Expected) -> Iterator[Finding]:
    """Judge the times that the driver counts; of older drivers, which count none, the sampled reasons."""
    if not read(after).gpus:
        yield not_applicable(_NAME, "the node has no GPU")
        return
    if all(gpu.slowed is None for one in (before, after) for gpu in read(one).gpus):
        yield from _sampled(after, expected.limits[GPU_SLOWED_MAX])
        return
    limit, seconds = expected.limits[GPU_SLOWED_MAX], seconds_between(before, after, NVIDIA_SMI)

    def slowed(was: GpuReading, gpu: GpuReading) -> Iterator[Finding]:
        first, last = known(was.slowed, "the slowed times"), known(gpu.slowed, "the slowed times")
        heat = last.software_thermal + last.hardware_thermal - first.software_thermal - first.hardware_thermal
        brake = last.power_brake - first.power_brake
        if min(heat, brake) < 0:
            raise UnmeasuredError("the slowed times were counted from zero again", remedy="run the burn-in again")
        if heat > 0:
            yield _slowed(gpu, (Code.GPU_THROTTLED, "heat slowed the GPU down", _COOL), 100 * heat / seconds, limit)
        if brake > 0:
            cause = "the machine ordered the GPU to slow down (power brake)"
            yield _slowed(gpu, (Code.GPU_POWER_BRAKE, cause, _POWER), 100 * brake / seconds, limit)

    yield from each_since(_NAME, before, after, expected, slowed)


def _sampled(after: Readings, limit: Limit) -> Iterator[Finding]:
    """Judge each GPU by the share of the load's samples in which its clock was held back."""
    samples = sampled(after)
    for gpu in read(after).gpus:
        seen = samples.reasons.get(str(gpu.index), {})
        answers = sum(one.samples for one in seen.values())
        if not answers and "gpu" in samples.errors:
            continue  # that is the reason, once for all GPUs
        if not answers:
            error = UnmeasuredError("nvidia-smi reported no clock event reasons of the GPU", remedy=_AGAIN)
            yield inconclusive(_NAME, error, gpu.subject, gpu.serial or "")
            continue
        masks = {int(mask, 16): one.samples for mask, one in seen.items() if _MASK.fullmatch(mask)}
        for reason in faulty_reasons(masks):
            brake = reason.mask == POWER_BRAKE
            diagnosis = (Code.GPU_POWER_BRAKE if brake else Code.GPU_THROTTLED, reason.cause, reason.remedy)
            found = _slowed(gpu, diagnosis, 100 * reason.seen / answers, limit)
            yield found if reason.seen > 1 else replace(found, verdict=Verdict.WARN)
    require_all_sampled(samples, "gpu")


def _slowed(gpu: GpuReading, diagnosis: tuple[Code, str, str], percent: float, limit: Limit) -> Finding:
    code, cause, remedy = diagnosis
    return Finding(
        check=_NAME,
        verdict=Verdict.FAIL if percent > limit.value else Verdict.WARN,
        code=code,
        subject=gpu.subject,
        cause=cause,
        measured=limit.quantity(percent),
        expected=limit.at_most,
        remedy=remedy,
        serial=gpu.serial or "",
        deterministic=False,
    )


CHECK = Check(
    _NAME,
    (NVIDIA_SMI,),
    _judge,
    area=Area.GPU,
    causes=(
        Cause("nvidia_driver"),
        Cause("gpu_count", unmeasured=True),
        Cause("gpu_idle", same_part=True),
    ),
    limits=(GPU_SLOWED_MAX,),
    idle_only=True,
    watch=Watch((NVIDIA_SMI, LOAD_SAMPLES), _judge_load),
)

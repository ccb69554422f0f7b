"""nvlink_errors: no NVLink counts errors.

The counters are read twice, and judged by what is added between the two readings: they also hold the errors since the
driver was loaded, such as those of the links' training. What stands in them is a warning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from clusterctl.fleet.finding import Finding, Verdict, not_applicable, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Quantity, exactly
from clusterctl.formats.nvidia.nvlink import GpuLinkErrors, NvLinkError, parse_nvlink_errors
from clusterctl_burnin.chance import exceeds
from clusterctl_burnin.check import Area, Cause, Check, Expected, Watch, inconclusive
from clusterctl_burnin.checks.nvlink import NVLINK_COUNT
from clusterctl_burnin.limits.limit import LimitKey, Limits
from clusterctl_burnin.probe import Probe, Readings, TwoReadings, UnmeasuredError, seconds_between
from clusterctl_burnin.probes.nvidia_smi import NVIDIA_SMI, missing, serials_by_uuid

NVLINK_ERRORS_MAX = LimitKey(
    "nvlink_errors_max",
    "per minute",
    default=0,
    source="NVIDIA DCGM's health watch, which fails a GPU for one replay or recovery error in a minute",
)
NVLINK_CRC_ERRORS_MAX = LimitKey(
    "nvlink_crc_errors_max",
    "per second",
    default=100,
    source="NVIDIA DCGM's health watch (dcgm_gpu_hardware_limits.h); fewer are repaired by a replay",
)

WATCHED_S = 5.0
ERRORS = Probe(
    "nvlink_errors",
    ("nvidia-smi", "nvlink", "-e"),
    timeout=40.0,
    waits=True,
    again_after=WATCHED_S,
    role="nvidia_driver",
)
ERRORS_ONCE = Probe("nvlink_errors_once", ("nvidia-smi", "nvlink", "--errorcounters"), timeout=20.0, role=ERRORS.role)
"""The same counters by a command line of its own: evidence is distinguished by its command."""
_NAME = "nvlink_errors"
_REPAIRED = frozenset({NvLinkError.CRC, NvLinkError.RECOVERY_SUCCESSFUL})
"""The link itself repaired what these count."""
_FULL = frozenset({0xFFFF, 0xFFFFFFFF})
"""A counter with one of these values has stopped: V100s show CRC errors that stay at 65535."""
_REMEDY = (
    "reset the GPU, restart nvidia-fabricmanager and run the burn-in again; "
    "if errors come back, reseat the GPU at both ends of the links, then replace it"
)
_WATCH = "run the burn-in again after a load; reseat the GPU if these counters grow"


@dataclass(frozen=True, slots=True)
class _Watched:
    """A GPU's errors: added within `seconds` and counted since the driver was loaded.

    grew    the links that added errors which no replay repaired, else those that added any
    links   the links that have counted any
    """

    index: int
    seconds: float
    added: Counter[NvLinkError]
    counted: Counter[NvLinkError]
    grew: tuple[int, ...]
    links: tuple[int, ...]


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    if not expected.limits[NVLINK_COUNT].value:
        yield not_applicable(_NAME, "the SKU's GPUs have no NVLink")
        return
    yield from _of_gpus(readings, readings.twice(ERRORS), expected)


def _judge_load(before: Readings, after: Readings, expected: Expected) -> Iterator[Finding]:
    if not expected.limits[NVLINK_COUNT].value:
        return
    twice = TwoReadings(before.text(ERRORS_ONCE), after.text(ERRORS_ONCE), seconds_between(before, after, ERRORS_ONCE))
    found = _of_gpus(after, twice, expected)
    yield from (finding for finding in found if finding.code is not Code.NVLINK_ERRORS_EARLIER)


def _of_gpus(readings: Readings, twice: TwoReadings, expected: Expected) -> Iterator[Finding]:
    links = expected.limits[NVLINK_COUNT].value
    first = {gpu.uuid: gpu for gpu in parse_nvlink_errors(twice.first)}
    gpus = parse_nvlink_errors(twice.second)
    serials = serials_by_uuid(readings)
    bad: list[Finding] = []
    for gpu in gpus:
        serial = serials.get(gpu.uuid, "")
        was = first.get(gpu.uuid)
        try:
            if was is not None and (down := sorted(was.links.keys() - gpu.links.keys())):
                bad.append(_lost(gpu, down, serial))
            else:
                found = tuple(_bad(_watched(was, gpu, twice.seconds, links), expected.limits, serial))
                bad += found
                if not any(one.verdict is Verdict.FAIL for one in found):
                    _require_counting(gpu)
        except UnmeasuredError as error:
            bad.append(inconclusive(_NAME, error, f"gpu {gpu.index}", serial))
    yield from bad
    absent = tuple(missing(_NAME, len(gpus), expected.sku.gpu_count, "GPUs"))
    yield from absent
    if not bad and not absent:
        yield passed(_NAME, f"no NVLink counted errors within {twice.seconds:.0f} s")


def _watched(first: GpuLinkErrors | None, last: GpuLinkErrors, seconds: float, links: float) -> _Watched:
    """Return what was added. Raise `UnmeasuredError` where the two readings do not show it."""
    if first is None or first.links.keys() != last.links.keys():
        raise UnmeasuredError("the GPU's links changed while they were watched", remedy="run the burn-in again")
    if len(last.links) < links:
        counted = f"{len(last.links)} of {links:g} NVLinks of the GPU have error counters"
        raise UnmeasuredError(counted, remedy="bring the missing links up first (nvidia-smi nvlink --status)")
    if len({frozenset(counters) for counters in (*first.links.values(), *last.links.values())}) > 1:
        raise UnmeasuredError("the NVLinks of the GPU do not show the same counters", remedy="run the burn-in again")
    added, total = Counter[NvLinkError](), Counter[NvLinkError]()
    failing, repaired, named = [], [], []
    for link, counters in last.links.items():
        grown = {error: count - first.links[link].get(error, 0) for error, count in counters.items()}
        if min(grown.values()) < 0:
            raise UnmeasuredError(
                "something cleared the counters during the measurement", remedy="run the burn-in again"
            )
        added.update(grown)
        total.update(counters)
        if any(number for error, number in grown.items() if error not in _REPAIRED):
            failing.append(link)
        elif any(grown.values()):
            repaired.append(link)
        if any(counters.values()):
            named.append(link)
    return _Watched(last.index, seconds, +added, +total, tuple(failing or repaired), tuple(named))


def _require_counting(gpu: GpuLinkErrors) -> None:
    """Raise `UnmeasuredError` where a counter of the GPU stands at its maximum: it counts no further."""
    for link, counters in gpu.links.items():
        full = next((error for error, count in counters.items() if count in _FULL), None)
        if full is not None:
            cause = f"{full.value} of NVLink {link} have reached {counters[full]} and count no further"
            raise UnmeasuredError(cause, remedy="reset the GPU, then run the burn-in again; replace it if they return")


def _lost(gpu: GpuLinkErrors, down: Sequence[int], serial: str) -> Finding:
    """Return that links went down between the two readings: an inactive link has no counters."""
    return Finding(
        check=_NAME,
        verdict=Verdict.FAIL,
        code=Code.NVLINK_ERRORS,
        subject=f"gpu {gpu.index}",
        cause=f"NVLinks {', '.join(map(str, down))} of the GPU went down",
        measured=Quantity(len(gpu.links), "NVLinks"),
        expected=exactly(len(gpu.links) + len(down), "NVLinks"),
        remedy=_REMEDY,
        serial=serial,
    )


def _bad(gpu: _Watched, limits: Limits, serial: str) -> Iterator[Finding]:
    failing, crc = limits[NVLINK_ERRORS_MAX], limits[NVLINK_CRC_ERRORS_MAX]
    count = sum(number for error, number in gpu.added.items() if error not in _REPAIRED)
    links, grew = (f"NVLinks {', '.join(map(str, some))} of the GPU" for some in (gpu.links, gpu.grew))
    if exceeds(count, gpu.seconds, failing.value / 60):
        cause, worst, limit = f"{grew} count errors: {_listed(gpu.added)}", count, failing
    elif exceeds(gpu.added[NvLinkError.CRC], gpu.seconds, crc.value):
        cause, worst, limit = f"{grew} count CRC errors", gpu.added[NvLinkError.CRC], crc
    elif gpu.counted:
        yield Finding(
            check=_NAME,
            verdict=Verdict.WARN,
            code=Code.NVLINK_ERRORS_EARLIER,
            subject=f"gpu {gpu.index}",
            cause=f"{links} have counted errors since the driver was loaded: {_listed(gpu.counted)}",
            measured=Quantity(gpu.counted.total(), "errors"),
            remedy=_WATCH,
            serial=serial,
        )
        return
    else:
        return
    yield Finding(
        check=_NAME,
        verdict=Verdict.FAIL,
        code=Code.NVLINK_ERRORS,
        subject=f"gpu {gpu.index}",
        cause=cause,
        measured=Quantity(worst, f"errors in {gpu.seconds:.0f} s"),
        expected=limit.at_most,
        remedy=_REMEDY,
        serial=serial,
    )


def _listed(counts: Mapping[NvLinkError, int]) -> str:
    return ", ".join(f"{number} {error.value}" for error, number in counts.items())


CHECK = Check(
    _NAME,
    (ERRORS, NVIDIA_SMI),
    _judge,
    area=Area.NVLINK,
    limits=(NVLINK_COUNT, NVLINK_ERRORS_MAX, NVLINK_CRC_ERRORS_MAX),
    causes=(
        Cause("nvidia_driver"),
        Cause("gpu_count", unmeasured=True),
        Cause("kernel_log", same_part=True),
        Cause("nvlink", same_part=True),
        Cause("fabric_manager", unmeasured=True),
    ),
    watch=Watch((ERRORS_ONCE, NVIDIA_SMI), _judge_load),
)

"""Why a GPU's clock was held back under load: NVML's clock event reasons.

Bits and meanings: https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html. A healthy H100 under full
load is at its power limit (0x4): that, idleness and clocks that an operator has set are no faults of the GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

HW_SLOWDOWN, SW_THERMAL, HW_THERMAL, POWER_BRAKE = 0x8, 0x20, 0x40, 0x80
_COOL = "compare the GPU's heat sink, air duct and coolant flow with its neighbours'; then replace the GPU"
POWER = "check the power supplies and the GPU tray's power cables"


@dataclass(frozen=True, slots=True)
class ThrottleReason:
    """`mask` as NVML's; `seen` how many answers of nvidia-smi report it."""

    mask: int
    seen: int
    cause: str
    remedy: str


_KNOWN = (
    (HW_THERMAL, "the GPU's own thermal brake halved its clock, or more", _COOL),
    (POWER_BRAKE, "the server's power brake halved the GPU's clock, or more", POWER),
    (SW_THERMAL, "the driver lowered the GPU's clock because of its temperature", _COOL),
)
_UNTOLD = ("the GPU's hardware halved its clock, or more, for heat or power", f"{_COOL}; {POWER}")
_TWICE = 2
"""NVIDIA: HW slowdown alone may also be reported while a clock changes; one reading is no proof."""


def faulty_reasons(reasons: Mapping[int, int]) -> tuple[ThrottleReason, ...]:
    """Return those that are faults, the worst first; `reasons` is mask → number of answers."""
    found = [
        ThrottleReason(bit, _seen(reasons, bit), cause, remedy) for bit, cause, remedy in _KNOWN if _seen(reasons, bit)
    ]
    alone = sum(
        count for mask, count in reasons.items() if mask & HW_SLOWDOWN and not mask & (HW_THERMAL | POWER_BRAKE)
    )
    if not found and alone >= _TWICE:
        found.append(ThrottleReason(HW_SLOWDOWN, alone, *_UNTOLD))
    return tuple(found)


def throttled_by_server(reasons: Mapping[int, int]) -> bool:
    return _seen(reasons, POWER_BRAKE) > 0


def _seen(reasons: Mapping[int, int], bit: int) -> int:
    return sum(count for mask, count in reasons.items() if mask & bit)

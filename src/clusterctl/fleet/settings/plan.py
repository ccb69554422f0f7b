"""The plan of `settings apply`: the work on each machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from clusterctl.fleet.settings.baseline import FirmwareWish, Restarts, Value
from clusterctl.fleet.settings.drift import Aspect, Drift, Stand


@dataclass(frozen=True, slots=True)
class Todo:
    """The work on one machine, in this order: `bmc` firmware, `host` firmware, `attributes`, one reboot.

    waiting  something waits for a reboot already
    by_hand  what differs and cannot be corrected from here
    """

    bmc: tuple[FirmwareWish, ...] = ()
    host: tuple[FirmwareWish, ...] = ()
    attributes: Mapping[str, Value] | None = None
    waiting: bool = False
    by_hand: tuple[Drift, ...] = ()

    @property
    def reboots(self) -> bool:
        return bool(self.host or self.attributes or self.waiting)

    @property
    def nothing(self) -> bool:
        return not (self.bmc or self.reboots)


def todo(drifts: Iterable[Drift]) -> Todo:
    """Return what corrects a machine's drift. An image flashes all components of its kind: it is sent once."""
    drifts = tuple(drifts)
    wrong = [one for one in drifts if one.stand is Stand.WRONG and not one.by_hand]
    return Todo(
        bmc=_wishes(wrong, Restarts.BMC),
        host=_wishes(wrong, Restarts.HOST),
        attributes=_attributes(wrong) or None,
        waiting=any(one.stand is Stand.WAITING for one in drifts),
        by_hand=tuple(one for one in drifts if one.by_hand and one.stand is not Stand.RIGHT),
    )


def _wishes(wrong: Iterable[Drift], restarts: Restarts) -> tuple[FirmwareWish, ...]:
    """Return each wished firmware with an update that restarts this part, once."""
    return tuple(dict.fromkeys(one.wish for one in wrong if one.wish is not None and one.wish.restarts is restarts))


def _attributes(wrong: Iterable[Drift]) -> dict[str, Value]:
    return {one.what: one.value for one in wrong if one.aspect is Aspect.BIOS and one.value is not None}

"""What `settings apply` would do: to which machines, and what. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from clusterctl.fleet.settings.baseline import FirmwareWish, Restarts, Value
from clusterctl.fleet.settings.drift import Aspect, Drift, Stand


@dataclass(frozen=True, slots=True)
class Todo:
    """What is to be done to one machine, in this order: `bmc` firmware, `host` firmware, `attributes`, one reboot.

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
    """From a machine's drift. An image flashes all components of its kind: it is sent once."""
    all_of_it = tuple(drifts)
    wrong = [one for one in all_of_it if one.stand is Stand.WRONG and not one.by_hand]
    wishes = list(dict.fromkeys(one.wish for one in wrong if one.wish is not None))
    attributes = {one.what: one.value for one in wrong if one.aspect is Aspect.BIOS and one.value is not None}
    return Todo(
        bmc=tuple(wish for wish in wishes if wish.restarts is Restarts.BMC),
        host=tuple(wish for wish in wishes if wish.restarts is Restarts.HOST),
        attributes=attributes or None,
        waiting=any(one.stand is Stand.WAITING for one in all_of_it),
        by_hand=tuple(one for one in all_of_it if one.by_hand and one.stand is not Stand.RIGHT),
    )

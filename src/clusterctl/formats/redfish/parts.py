"""Parts that several Systems, chassis or lists of one BMC name: each once.

The host and its HGX board list the same CPUs, memory and GPUs. Two resources of
different lists are one part where their serials are the same, or where one of them has no serial and their printed
label or their place is the same. Within one list every resource is a part of its own: the two GPUs of a GB300
module have one serial.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from clusterctl.fleet.natural_order import natural_key
from clusterctl.fleet.node import Serial
from clusterctl.formats.redfish.system import place, serial_number, service_label, well
from clusterctl.formats.redfish.tree import GarbledError, Resource

_BOARD_PREFIX = re.compile(r"HGX_", re.IGNORECASE)


@dataclass(slots=True)
class RedfishPart:
    """One part, by the resources that are about it; the first list comes first."""

    resources: list[Resource] = field(default_factory=list)

    @property
    def owner(self) -> str:
        """The collection that lists it first."""
        return self.resources[0].path.rpartition("/")[0]

    @property
    def serial(self) -> Serial | None:
        return next((found for one in self.resources if (found := serial_number(one))), None)

    @property
    def healthy(self) -> bool | None:
        """False where any resource reports a failure; None where none reports its health."""
        reported = [found for one in self.resources if (found := well(one)) is not None]
        return all(reported) if reported else None

    def first(self, *keys: str) -> Resource:
        """Return the first resource that has the field; the first of all where none has."""
        return next((one for one in self.resources if one.value(*keys) not in (None, "")), self.resources[0])


class Slotted(Protocol):
    """A part of the inventory with the slot that it is in."""

    @property
    def slot(self) -> str: ...


P = TypeVar("P", bound=Slotted)


def by_slot(parts: Iterable[P]) -> tuple[P, ...]:
    """Return the parts in order of their slots."""
    return tuple(sorted(parts, key=lambda part: natural_key(part.slot)))


def comparable(item: Resource) -> Resource:
    """Return the resource itself; `ParseError` where what distinguishes it from others is garbled."""
    serial_number(item)
    _places(item)
    return item


def merged(lists: Iterable[Sequence[Resource]]) -> list[RedfishPart]:
    """Return the parts of several lists, in the order in which they are listed first."""
    parts: list[RedfishPart] = []
    for items in lists:
        before = list(parts)
        for item in items:
            same = _same(item, before)
            if same is None:
                parts.append(RedfishPart([item]))
            else:
                before.remove(same)
                same.resources.append(item)
    return parts


_WORD = re.compile(r"[a-z0-9]+")


def without_echo(lists: Iterable[Sequence[Resource]]) -> list[Sequence[Resource]]:
    """Return the lists without one that adds nothing: the other is of equal length and has all serials.

    It has no serial, names no part as the other does, and reports no failure. It would count every part twice.
    """
    filled = [items for items in lists if items]
    if len(filled) != 2:
        return filled
    one, two = filled
    if _is_echo(one, two):
        return [two]
    return [one] if _is_echo(two, one) else filled


def _is_echo(items: Sequence[Resource], others: Sequence[Resource]) -> bool:
    """Return whether `items` are the `others` under other names."""
    if len(items) != len(others) or any(map(serial_number, items)) or not all(map(serial_number, others)):
        return False
    if any(_same(item, [RedfishPart([other])]) for item in items for other in others):
        return False
    try:
        fails = any(well(item) is False for item in items)
        return not fails and _agree(_numbered_words(items), _numbered_words(others))
    except GarbledError:
        return False


def _agree(one: set[str], two: set[str]) -> bool:
    return not one or not two or not one.isdisjoint(two)


def _numbered_words(items: Iterable[Resource]) -> set[str]:
    """Return the words of the models that distinguish products, such as H100."""
    words = {word for item in items for word in _WORD.findall(item.text("Model").casefold())}
    return {word for word in words if any(map(str.isdigit, word))}


def _same(item: Resource, parts: Sequence[RedfishPart]) -> RedfishPart | None:
    """Return the part of an earlier list that this resource is about: by serial and place, serial, place."""
    candidates = [part for part in parts if _may_be(item, part.resources[0])]
    by_place = [part for part in candidates if _places(item) & _places(part.resources[0])]
    serial = serial_number(item)
    by_serial = [part for part in candidates if serial and serial in map(serial_number, part.resources)]
    both = [part for part in by_serial if part in by_place]
    return next(iter((*both, *by_serial, *by_place)), None)


def _may_be(item: Resource, other: Resource) -> bool:
    """Return False where both have a serial and not the same one."""
    one, two = serial_number(item), serial_number(other)
    return not one or not two or one == two


def _places(item: Resource) -> set[tuple[Any, ...]]:
    """Return the keys of the part's place: label with its context, socket, id."""
    context = place(item, "PartLocationContext")
    names = (service_label(item), item.text("Socket"), item.text("DeviceLocator"))
    labels = {("label", text.casefold()) for text in names if text}
    return labels | {("label", text.casefold(), context) for text in names if text and context} | {_id(item)}


def _id(item: Resource) -> tuple[str, str]:
    return "id", _BOARD_PREFIX.sub("", item.id, count=1).casefold()

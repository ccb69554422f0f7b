"""What a machine of a kind must be set to and run: BIOS attributes and firmware, as a site has decided them."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

Value = str | int | bool
"""Of a BIOS attribute, as Redfish has it."""


class Restarts(enum.Enum):
    """What must restart before a new version runs."""

    BMC = "bmc"
    HOST = "host"


@dataclass(frozen=True, slots=True)
class Image:
    """The file to flash. `url`: where BMCs that take no file fetch the same; `where` names it in the baseline."""

    file: str
    sha256: str
    url: str = ""
    where: str = ""


@dataclass(frozen=True, slots=True)
class FirmwareWish:
    """One kind of component, by a shell pattern on the name that the inventory gives it; upper and lower case are one.

    version    exactly this one; empty where `minimum` gives it
    minimum    this one or a later one
    image      None: drift is reported, and corrected by hand
    targets    what the image is meant for, where the BMC requires it (`UpdateParameters.Targets`)
    downgrade  whether a later version may be replaced by this one
    """

    component: str
    version: str = ""
    minimum: str = ""
    image: Image | None = None
    restarts: Restarts = Restarts.HOST
    targets: tuple[str, ...] = ()
    downgrade: bool = False
    source: str = ""

    @property
    def wants(self) -> str:
        return self.version or f"at least {self.minimum}"


@dataclass(frozen=True, slots=True)
class BiosWish:
    """Attributes, for machines with an attribute registry that matches the shell pattern `registry`."""

    attributes: Mapping[str, Value]
    registry: str = "*"
    source: str = ""


@dataclass(frozen=True, slots=True)
class Baseline:
    """Of one SKU."""

    name: str
    bios: tuple[BiosWish, ...] = ()
    firmware: tuple[FirmwareWish, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Bios:
    """`registry` names the list of what there is to set; `pending` is what the next boot will bring.

    read_only  by the registry; None where it was not read, or the BMC does not report it
    """

    registry: str
    current: Mapping[str, Value]
    pending: Mapping[str, Value]
    read_only: frozenset[str] | None = None


_NUMBERS = re.compile(r"v?(\d{1,9}(?:\.\d{1,9}){0,9})", re.IGNORECASE)


def compare(one: str, other: str) -> int | None:
    """Return a number below, at or above 0 as `one` is earlier, the same or later; None where that is unknown."""
    a, b = (_NUMBERS.fullmatch(text.strip()) for text in (one, other))
    if a is None or b is None:
        return None
    left, right = ([int(number) for number in found[1].split(".")] for found in (a, b))
    length = max(len(left), len(right))
    left, right = (numbers + [0] * (length - len(numbers)) for numbers in (left, right))
    return (left > right) - (left < right)


def comparable(text: str) -> bool:
    return _NUMBERS.fullmatch(text.strip()) is not None

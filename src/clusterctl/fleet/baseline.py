"""What a machine of a kind must be set to and run: BIOS attributes and firmware, as a site has decided them."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

Value = str | int | bool
"""Of a BIOS attribute, as Redfish has it."""


class Restarts(enum.Enum):
    """What must start anew before a new version runs."""

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

    version    exactly this one; empty where `minimum` says it
    minimum    this one or a later one
    image      None: drift is told, and mended by hand
    targets    what the image is meant for, where the BMC wants to be told (`UpdateParameters.Targets`)
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
    """Attributes, for machines whose attribute registry matches the shell pattern `registry`: names differ with it."""

    attributes: Mapping[str, Value]
    registry: str = "*"
    source: str = ""


@dataclass(frozen=True, slots=True)
class Baseline:
    """Of one SKU."""

    name: str
    bios: tuple[BiosWish, ...] = ()
    firmware: tuple[FirmwareWish, ...] = field(default=())

"""The lab's firmware images: what a real vendor's package is to a real machine.

One JSON object: `{"clusterctl-lab-firmware": 1, "component": "bios", "version": "2.4.0", "model": "PowerEdge XE9680"}`,
and after its line whatever makes the file as long as one wants. As a Dell Update Package does, an image flashes all
parts of its kind.
"""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass, replace
from typing import Any

from clusterctl.fleet.errors import ParseError
from clusterctl_lab.machine import Machine

_MARK = "clusterctl-lab-firmware"
_FORMAT = 1


class Component(enum.Enum):
    """What can be flashed. All but the BMC take their firmware up in POST."""

    BIOS = "bios"
    BMC = "bmc"
    HCA = "hca"


@dataclass(frozen=True, slots=True)
class Firmware:
    """`model` is the machine's model that the image is made for; empty: any."""

    component: Component
    version: str
    model: str = ""

    def image(self, size: int = 0) -> bytes:
        """The image as a file of at least `size` bytes."""
        head = {_MARK: _FORMAT, "component": self.component.value, "version": self.version, "model": self.model}
        return (json.dumps(head).encode() + b"\n").ljust(size, b"\0")

    @classmethod
    def read(cls, image: bytes) -> Firmware:
        """Raises `ParseError` for what is no image."""
        head: Any = None
        try:
            head = json.loads(image.split(b"\n", 1)[0])
            if head[_MARK] == _FORMAT:
                return cls(Component(head["component"]), str(head["version"]), str(head["model"]))
        except (ValueError, KeyError, TypeError) as error:
            raise ParseError("this is no firmware image", remedy="build one with clusterctl_lab.firmware") from error
        raise ParseError(f"firmware image of format {head[_MARK]!r}, not {_FORMAT}")

    def fits(self, machine: Machine) -> bool:
        return self.model in ("", machine.model)

    def flashed(self, machine: Machine) -> Machine:
        """The machine with this firmware."""
        if self.component is Component.BIOS:
            return replace(machine, bios_version=self.version)
        if self.component is Component.BMC:
            return replace(machine, bmc=replace(machine.bmc, firmware=self.version))
        return replace(machine, hcas=tuple(replace(hca, firmware=self.version) for hca in machine.hcas))

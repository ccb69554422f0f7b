"""The JSON document of the node's built-in `transceivers`: `mlxlink -d DEVICE -m --json` of each port.

A value is text with the range that the module's maker allows: `48 [-5..75]`, or one value per lane:
`0,2,-9,0 [-8..6]` (github.com/Mellanox/mstflint, mlxlink; docs.nvidia.com/networking/display/mftv4330, mlxlink).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.documents import Alias, read_document, read_value

_WHERE = "transceivers"
_NUMBER = r"-?\d+(?:\.\d+)?"
_VALUES = re.compile(rf"(?P<values>{_NUMBER}(?:,{_NUMBER})*)\s*\[(?P<low>{_NUMBER})\.\.(?P<high>{_NUMBER})\]")
_NOTHING = frozenset({"", "N/A"})


@dataclass(frozen=True, slots=True)
class Ranged:
    """One value (temperature, °C) or one per lane (optical power, dBm), and the range that its maker allows."""

    values: tuple[float, ...]
    low: float
    high: float

    @property
    def outside(self) -> tuple[tuple[int, float], ...]:
        """Lane (counted from 1) and value of each value outside the range."""
        return tuple((at, v) for at, v in enumerate(self.values, start=1) if not self.low <= v <= self.high)


@dataclass(frozen=True, slots=True)
class HostTransceiver:
    """A port's module. Empty `part`: no module, or one without data; `output` is then the tool's error output, if any.

    A value is None where the module does not report it: copper cables report none. `firmware` is empty then.
    """

    port: str
    vendor: str
    part: str
    serial: str
    optical: bool
    temperature: Ranged | None
    received: Ranged | None
    sent: Ranged | None
    output: str = ""
    firmware: str = ""


@dataclass(frozen=True, slots=True)
class _Module:
    vendor: Annotated[str, Alias("Vendor Name")] = ""
    part: Annotated[str, Alias("Vendor Part Number")] = ""
    serial: Annotated[str, Alias("Vendor Serial Number")] = ""
    firmware: Annotated[str, Alias("FW Version")] = ""
    cable: Annotated[str, Alias("Cable Type")] = ""
    temperature: Annotated[str, Alias("Temperature [C]")] = ""
    received: Annotated[str, Alias("Rx Power Current [dBm]")] = ""
    sent: Annotated[str, Alias("Tx Power Current [dBm]")] = ""


@dataclass(frozen=True, slots=True)
class _Output:
    module: Annotated[_Module, Alias("Module Info")]


@dataclass(frozen=True, slots=True)
class _Result:
    output: _Output


@dataclass(frozen=True, slots=True)
class _Answer:
    result: _Result


@dataclass(frozen=True, slots=True)
class _Port:
    name: str
    code: int
    output: str
    answer: dict[str, object] | None


@dataclass(frozen=True, slots=True)
class _Document:
    ports: tuple[_Port, ...]


def parse_transceivers(text: str) -> tuple[HostTransceiver, ...]:
    """Return every queried port. Raises `ParseError` for another document, or a value that is not understood."""
    return tuple(_transceiver(port) for port in read_document(_Document, text, _WHERE).ports)


def _transceiver(port: _Port) -> HostTransceiver:
    if port.code != 0 or port.answer is None:
        return HostTransceiver(
            port.name, "", "", "", optical=False, temperature=None, received=None, sent=None, output=port.output
        )
    module = read_value(_Answer, port.answer, _WHERE).result.output.module
    return HostTransceiver(
        port=port.name,
        vendor=_known(module.vendor),
        part=_known(module.part),
        serial=_known(module.serial),
        optical="optical" in module.cable.lower(),
        temperature=_ranged(module.temperature, f"{_WHERE} {port.name} temperature"),
        received=_ranged(module.received, f"{_WHERE} {port.name} Rx power"),
        sent=_ranged(module.sent, f"{_WHERE} {port.name} Tx power"),
        firmware=_known(module.firmware),
    )


def _known(text: str) -> str:
    plain = text.strip()
    return "" if plain in _NOTHING else plain


def _ranged(text: str, where: str) -> Ranged | None:
    plain = _known(text)
    if not plain:
        return None
    found = _VALUES.fullmatch(plain.replace(", ", ","))
    if found is None:
        raise ParseError(f"{plain!r} is not a value with its range", where=where)
    values = tuple(float(value) for value in found["values"].split(","))
    return Ranged(values, float(found["low"]), float(found["high"]))

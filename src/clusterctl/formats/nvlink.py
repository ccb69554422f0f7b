"""`nvidia-smi nvlink --status`: each GPU's links and their rate."""

from __future__ import annotations

import re
from dataclasses import dataclass

from clusterctl.fleet.errors import ParseError

_GPU = re.compile(r"^GPU (?P<index>\d+): (?P<model>.+) \(UUID: (?P<uuid>GPU-[0-9a-f-]+)\)$")
_LINK = re.compile(r"^\s+Link (?P<link>\d+): (?:(?P<rate>\d+(?:\.\d+)?) GB/s|<inactive>)$")
_INACTIVE = re.compile(r"all links are inactive", re.IGNORECASE)
_WHERE = "nvidia-smi nvlink --status"


@dataclass(frozen=True, slots=True)
class GpuLinks:
    """One GPU's NVLinks: rate in GB/s by link number, None where the link is inactive."""

    index: int
    uuid: str
    rates: tuple[float | None, ...]

    @property
    def active(self) -> tuple[float, ...]:
        return tuple(rate for rate in self.rates if rate is not None)


def parse_nvlink_status(text: str) -> tuple[GpuLinks, ...]:
    """Read the status of all GPUs; `ParseError` names the first line that is not understood."""
    gpus: list[tuple[int, str, list[float | None]]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if gpu := _GPU.match(line):
            gpus.append((int(gpu["index"]), gpu["uuid"], []))
        elif (link := _LINK.match(line)) and gpus:
            rates = gpus[-1][2]
            if int(link["link"]) != len(rates):
                raise ParseError(
                    f"link {link['link']} where link {len(rates)} should stand", where=f"{_WHERE}:{number}"
                )
            rates.append(float(link["rate"]) if link["rate"] else None)
        elif line.strip() and not (gpus and _INACTIVE.search(line)):
            raise ParseError(f"line not understood: {line.strip()[:100]!r}", where=f"{_WHERE}:{number}")
    if not gpus:
        raise ParseError("no GPU in it", where=_WHERE)
    return tuple(GpuLinks(index, uuid, tuple(rates)) for index, uuid, rates in gpus)

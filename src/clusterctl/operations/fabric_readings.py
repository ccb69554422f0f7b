"""Recorded readings of a fabric that a person names on the command line, and the limits that they are judged by."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.fabric.limits import FabricLimits
from clusterctl.fleet.fabric.telemetry import Telemetry
from clusterctl.fleet.fabric.topology import Fabric
from clusterctl.formats.file_text import text_in
from clusterctl.formats.infiniband.fabric_file import decode_fabric, decode_telemetry, has_fabric
from clusterctl.formats.site.fabric_limits import parse_fabric_limits
from clusterctl.operations.documents import content
from clusterctl_burnin.limits.reading import shipped_fabric_limits


def reading(file: Path, fabric: Fabric | None) -> tuple[Fabric, Telemetry]:
    """The fabric that a reading of counters is of (its own where it tells one), and what it tells."""
    data = content(file)
    own = decode_fabric(data, file=str(file)) if has_fabric(data, file=str(file)) else fabric
    if own is None:
        remedy = "give --fabric: what ibnetdiscover or iblinkinfo printed at the same time"
        raise UsageError("it does not tell which ports are linked", where=str(file), remedy=remedy)
    return own, decode_telemetry(data, own, file=str(file))


def moments(files: tuple[Path, ...], readings: tuple[Telemetry, ...], seconds: float | None) -> tuple[float, ...]:
    """When each was taken, in seconds since the first. `seconds` is what a person says of two readings."""
    if seconds is not None and len(readings) == 2:
        return (0.0, seconds)
    times: list[datetime] = []
    for file, one in zip(files, readings, strict=True):
        if one.at is None:
            remedy = "begin every reading with a line like `# 2026-01-31T08:00:00Z`, or give two and --seconds"
            raise UsageError("the time of this reading is not known", where=str(file), remedy=remedy)
        if times and one.at <= times[-1]:
            message = f"this reading ({one.at.isoformat()}) is not after the one before ({times[-1].isoformat()})"
            raise UsageError(message, where=str(file), remedy="give them in their order")
        times.append(one.at)
    return tuple((at - times[0]).total_seconds() for at in times)


def most_broken_percent() -> float:
    """Of a fabric's links, by the shipped limits: beyond it nothing is judged, or done, link by link."""
    return shipped_fabric_limits("ndr").value("broken_links_max")


def limits_named(name: str) -> FabricLimits:
    """Shipped ones by name, or a file of a person's own."""
    file = Path(name)
    if file.suffix in (".yml", ".yaml") or file.is_file():
        return parse_fabric_limits(text_in(content(file), name), where=name)
    return shipped_fabric_limits(name)

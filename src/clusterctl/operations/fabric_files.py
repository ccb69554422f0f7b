"""Plans, readings of a fabric, GUID lists and limits from files that an operator names.

A wrong file is wrong usage: errors name the file and the line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from clusterctl.cabling.names import Hosts
from clusterctl.edges.site import Site
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.fabric.limits import FabricLimits
from clusterctl.fleet.fabric.telemetry import Telemetry, Transceiver
from clusterctl.fleet.fabric.topology import Fabric, PortId
from clusterctl.fleet.fabric.wiring import PlanDraft, WiringPlan, settle
from clusterctl.formats.file_text import text_in
from clusterctl.formats.infiniband.fabric_file import decode_fabric, decode_telemetry, has_fabric, parse_guids
from clusterctl.formats.wiring.plan import decode_draft
from clusterctl.operations.documents import as_usage, content

_YAML = (".yml", ".yaml")


@dataclass(frozen=True, slots=True)
class PlanFiles:
    """The files that are parts of one wiring plan, and the sheet of workbooks; none where only one sheet fits."""

    files: tuple[Path, ...] = ()
    sheet: str = ""


def drafts_in(plan: PlanFiles) -> tuple[PlanDraft, ...]:
    """Return the parts of a wiring plan, with their contradictions."""
    return tuple(decode_draft(content(file), file=str(file), sheet=plan.sheet) for file in plan.files)


def plan_in(plan: PlanFiles) -> WiringPlan:
    """Return the wiring plan of these files. Raise UsageError where they contradict each other."""
    return settle(*drafts_in(plan))


def fabric_in(file: Path) -> Fabric:
    """Return the fabric in a recorded reading."""
    with as_usage():
        return decode_fabric(content(file), file=str(file))


def transceivers_in(file: Path, fabric: Fabric) -> Mapping[PortId, Transceiver]:
    """Return the contents of the cables' memories, where the reading of the fabric has them: ibdiagnet's db_csv."""
    data = content(file)
    return decode_telemetry(data, fabric, file=str(file)).transceivers if has_fabric(data, file=str(file)) else {}


def guids_in(file: Path | None) -> Hosts:
    """Return the owners of adapters in a CSV file; none without a file."""
    return parse_guids(text_in(content(file), str(file)), file=str(file)) if file else {}


def reading(file: Path, fabric: Fabric | None) -> tuple[Fabric, Telemetry]:
    """Return the fabric of a reading of counters (its own, where the reading holds one) and its counters."""
    data = content(file)
    own = decode_fabric(data, file=str(file)) if has_fabric(data, file=str(file)) else fabric
    if own is None:
        remedy = "give --fabric: what ibnetdiscover or iblinkinfo printed at the same time"
        raise UsageError("it does not show which ports are linked", where=str(file), remedy=remedy)
    return own, decode_telemetry(data, own, file=str(file))


def moments(files: tuple[Path, ...], readings: tuple[Telemetry, ...], seconds: float | None) -> tuple[float, ...]:
    """Return the time of each reading, in seconds since the first. `seconds`: the interval that the operator gives."""
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


def limits_for(site: Site, name: str = "") -> FabricLimits:
    """Return the limits that the operator names, else those of the site (`fabric.limits`): a file, relative to it."""
    if name:
        return limits_named(name)
    own, where = site.settings.fabric.limits, site.where("fabric", "limits")
    return limits_named(site.path(own) if Path(own).suffix in _YAML else own, where)


def limits_named(name: str, where: str = "--limits") -> FabricLimits:
    """Return shipped limits by name, or those in a file of the operator's own. `where` is what names them."""
    from clusterctl.formats.site.fabric_limits import parse_fabric_limits
    from clusterctl_burnin.limits.fabric_reading import shipped_fabric_limits

    file = Path(name)
    if file.suffix in _YAML or file.is_file():
        return parse_fabric_limits(text_in(content(file), name), where=name)
    return shipped_fabric_limits(name, where)

"""Plans, recorded fabrics and GUID lists from files; whatever is wrong with one is wrong usage, with file and line."""

from __future__ import annotations

from pathlib import Path

from clusterctl.cabling.names import Hosts
from clusterctl.fleet.fabric.topology import Fabric
from clusterctl.fleet.fabric.wiring import WiringPlan
from clusterctl.formats.file_text import text_in
from clusterctl.formats.infiniband.fabric_file import decode_fabric
from clusterctl.formats.site.sheets import parse_guids
from clusterctl.formats.wiring.plan import decode_plan
from clusterctl.operations.documents import as_usage, content


def plan_in(file: Path) -> WiringPlan:
    return decode_plan(content(file), file=str(file))


def fabric_in(file: Path) -> Fabric:
    with as_usage():
        return decode_fabric(content(file), file=str(file))


def guids_in(file: Path | None) -> Hosts:
    """None: no GUID is known from elsewhere."""
    return parse_guids(text_in(content(file), str(file)), file=str(file)) if file else {}

"""Names of switches by their place: the node-name-map that OpenSM and infiniband-diags read.

Switches come from the factory with one description for all. The comparison with the wiring plan identifies each by the
cables that lead to it; its name is the plan's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from clusterctl.cabling.explain.verify import verify
from clusterctl.edges.site.contents import wiring_plan
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.fabric.topology import DeviceKind, Fabric, PortId
from clusterctl.fleet.fabric.wiring import PortName, WiringPlan
from clusterctl.fleet.node import Guid
from clusterctl.formats.infiniband.ibnetdiscover import parse_ibnetdiscover
from clusterctl.operations.adapters import Access
from clusterctl.operations.context import SiteContext
from clusterctl.operations.fabric_files import fabric_in
from clusterctl.operations.fabric_observation import fabric_hosts
from clusterctl.operations.operation import Control
from clusterctl.ports import Deadline


@dataclass(frozen=True, slots=True, kw_only=True)
class NamesRequest:
    """`recorded`: a recorded reading; None: the live fabric. `deadline_s`: seconds for the live one."""

    recorded: Path | None = None
    deadline_s: float = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NamesResult:
    """`names`: of the identified switches, by GUID; `unknown`: descriptions of the others, by GUID."""

    names: Mapping[str, str]
    unknown: Mapping[str, str]

    @property
    def exit_code(self) -> int:
        """1 where a switch could not be identified."""
        return 1 if self.unknown else 0

    @property
    def node_name_map(self) -> str:
        """Return the file: a GUID and a name in each line (opensm(8), `--node-name-map`)."""
        lines = [f'0x{guid} "{name}"' for guid, name in sorted(self.names.items(), key=lambda pair: pair[1])]
        return "\n".join([f"# {len(lines)} switches, named by the wiring plan", *lines, ""])


def run(context: SiteContext, request: NamesRequest, control: Control) -> NamesResult:
    """Return the names. Raise `UsageError` where no switch of the plan was identified."""
    plan, seen = wiring_plan(context.site), _seen(context, request, control)
    names = _names(plan, seen, verify(plan, seen, fabric_hosts(context.journal)).names)
    if not names:
        remedy = "clusterctl cable verify compares the fabric with the plan"
        raise UsageError("no switch of the plan was identified", where=context.site.where("fabric"), remedy=remedy)
    switches = {guid: one for guid, one in seen.devices.items() if one.kind is DeviceKind.SWITCH}
    unknown = {str(guid): one.description for guid, one in switches.items() if guid not in names}
    return NamesResult(names={str(guid): name for guid, name in names.items()}, unknown=unknown)


def _seen(context: SiteContext, request: NamesRequest, control: Control) -> Fabric:
    if request.recorded is not None:
        return fabric_in(request.recorded)
    with closing(context.adapters(Access.READ)) as adapters:
        found = adapters.fabric.ibnetdiscover(Deadline.after(request.deadline_s, control.cancelled))
    return parse_ibnetdiscover(found.value, file="ibnetdiscover")


def _names(plan: WiringPlan, seen: Fabric, ports: Mapping[PortId, PortName]) -> dict[Guid, str]:
    """Return the planned names of switches; one that several switches would have belongs to none."""
    planned = {end.device for cable in plan.cables for end in (cable.source, cable.destination)} - plan.hosts
    found = {
        port.guid: name.device
        for port, name in ports.items()
        if name.device in planned and seen.devices[port.guid].kind is DeviceKind.SWITCH
    }
    counts = Counter(found.values())
    return {guid: name for guid, name in found.items() if counts[name] == 1}

"""The firmware of switches and transceivers: what runs where, which models are half updated, and waves for an update.

Nothing is updated here.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field

from clusterctl.cabling.health.findings import FabricLabels, fabric_labels
from clusterctl.cabling.switch_waves import WaveRules, plan_waves
from clusterctl.edges.site.contents import wiring_plan
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import Kind, Stream
from clusterctl.fleet.fabric.history import known_modules
from clusterctl.fleet.fabric.topology import DeviceKind, Fabric
from clusterctl.fleet.natural_order import natural_key
from clusterctl.fleet.node import Guid, Stage
from clusterctl.fleet.payloads.fabric import FabricMasterSeen
from clusterctl.fleet.payloads.hardware import FabricDeviceSeen
from clusterctl.fleet.selectors import matching
from clusterctl.formats.infiniband.ibnetdiscover import parse_ibnetdiscover
from clusterctl.operations.adapters import Access, Adapters
from clusterctl.operations.context import SiteContext
from clusterctl.operations.operation import Control
from clusterctl.ports import Deadline, SystemReader
from clusterctl.ports.scheduler import Occupancy, Use

_KIND = "fabric firmware"


@dataclass(frozen=True, slots=True, kw_only=True)
class FirmwareRequest:
    """What is asked for.

    to          version for which waves are planned; empty: none are
    switches    names and patterns of the switches that get it; none: all
    at_once     switches of a wave at most
    deadline_s  seconds for reading fabric, UFM and scheduler
    """

    to: str = ""
    switches: tuple[str, ...] = ()
    at_once: int = 4
    deadline_s: float = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFirmware:
    """Devices of one model. `versions`: their number by version; `odd`: of a model that is half updated, the names of
    those that do not run its most frequent version; `unknown`: names of those of which no version is known.
    """

    model: str
    versions: Mapping[str, int]
    odd: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def is_half_updated(self) -> bool:
        return len(self.versions) > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FirmwareResult:
    """`source`: where the versions of switches are from. `software`: of the switches that have an operating system, by
    UFM. `waves`: names of switches, in order; `refusals`: why others cannot go out of service now.
    """

    source: str
    switches: tuple[ModelFirmware, ...]
    software: tuple[ModelFirmware, ...]
    transceivers: tuple[ModelFirmware, ...]
    waves: tuple[tuple[str, ...], ...] = ()
    refusals: Mapping[str, str] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """1 where a model is half updated, a version is unknown, or a switch cannot go out of service."""
        models = (*self.switches, *self.software, *self.transceivers)
        return 1 if self.refusals or any(one.is_half_updated or one.unknown for one in models) else 0


@dataclass(frozen=True, slots=True)
class _Switch:
    guid: Guid
    name: str
    model: str
    firmware: str
    software: str


def run(
    context: SiteContext, request: FirmwareRequest, control: Control, systems: SystemReader | None = None
) -> FirmwareResult:
    """Return the inventory, and the waves where a version is named. Raise `UsageError` for unknown switches.

    systems  of the site's UFM; without one the journal has the versions, by the last `db_csv`
    """
    deadline = Deadline.after(request.deadline_s, control.cancelled)
    plan = wiring_plan(context.site)
    with closing(context.adapters(Access.READ)) as adapters:
        seen = parse_ibnetdiscover(adapters.fabric.ibnetdiscover(deadline).value, file="ibnetdiscover")
        labels = fabric_labels(seen, plan)
        switches = _switches(context, seen, labels, systems, deadline)
        result = FirmwareResult(
            source="UFM" if systems is not None else "the last db_csv that was observed",
            switches=_models((one.model, one.name, one.firmware) for one in switches),
            software=_models((one.model, one.name, one.software) for one in switches if one.software),
            transceivers=_models(_modules(context, labels)),
        )
        if not request.to:
            return result
        rules = WaveRules(
            hosts=hosts_behind(context, seen, labels),
            busy=busy_hosts(context, adapters, deadline),
            masters=masters_seen(context, seen),
            at_once=request.at_once,
        )
    wanted, refusals = _wanted(switches, request)
    found = plan_waves(seen, wanted, rules)
    names = {one.guid: one.name for one in switches}
    return FirmwareResult(
        source=result.source,
        switches=result.switches,
        software=result.software,
        transceivers=result.transceivers,
        waves=tuple(tuple(names[guid] for guid in wave) for wave in found.waves),
        refusals=refusals | {names[guid]: one.text(labels.device) for guid, one in found.refusals.items()},
    )


def _switches(
    context: SiteContext, seen: Fabric, labels: FabricLabels, systems: SystemReader | None, deadline: Deadline
) -> tuple[_Switch, ...]:
    managed = {one.guid: one for one in systems.systems(deadline).value} if systems is not None else {}
    observed = {
        event.subject: event.payload.firmware
        for event in context.journal.latest(Stream.FABRIC, Kind.FABRIC_DEVICE_SEEN)
        if systems is None and isinstance(event.payload, FabricDeviceSeen)
    }
    found = []
    for guid, device in seen.devices.items():
        if device.kind is not DeviceKind.SWITCH:
            continue
        system = managed.get(guid) or managed.get(device.system_guid or guid)
        model = (system.model if system else "") or (f"device 0x{device.device_id:x}" if device.device_id else "switch")
        firmware = system.firmware if system else observed.get(str(guid), "")
        software = system.software if system else ""
        found.append(_Switch(guid, labels.device(guid), model, firmware, software))
    return tuple(sorted(found, key=lambda one: natural_key(one.name)))


def _modules(context: SiteContext, labels: FabricLabels) -> Iterable[tuple[str, str, str]]:
    """Yield part number, port and firmware of each transceiver; cables without firmware have no version."""
    for port, part in known_modules(context.journal.latest(Stream.FABRIC, Kind.FABRIC_TRANSCEIVER_SEEN)).items():
        if part.firmware:
            yield part.part or "without part number", str(labels.name(port)), part.firmware


def _models(devices: Iterable[tuple[str, str, str]]) -> tuple[ModelFirmware, ...]:
    """Return the versions by model, of devices as (model, name, version)."""
    by_model: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for model, name, version in devices:
        by_model[model].append((name, version))
    found = []
    for model, members in sorted(by_model.items()):
        counts = Counter(version for _, version in members if version)
        usual = max(counts, key=lambda version: (counts[version], version), default="")
        found.append(
            ModelFirmware(
                model=model,
                versions=dict(sorted(counts.items())),
                odd=tuple(name for name, version in members if version and version != usual),
                unknown=tuple(name for name, version in members if not version),
            )
        )
    return tuple(found)


def _wanted(switches: Iterable[_Switch], request: FirmwareRequest) -> tuple[list[Guid], dict[str, str]]:
    """Return the switches that do not run the version, and those of which it is unknown. Raise `UsageError` where they
    are of several models: a version belongs to one.
    """
    switches = tuple(switches)
    names = matching([one.name for one in switches], request.switches, "SWITCH")
    chosen = [one for one in switches if one.name in names]
    models = sorted({one.model for one in chosen})
    if len(models) > 1:
        remedy = "name switches of one model: a version belongs to one"
        raise UsageError(f"these switches are of {len(models)} models: {', '.join(models)}", where=_KIND, remedy=remedy)
    unknown = {one.name: "its firmware is unknown" for one in chosen if not one.firmware}
    return [one.guid for one in chosen if one.firmware and one.firmware != request.to], unknown


def hosts_behind(context: SiteContext, seen: Fabric, labels: FabricLabels) -> dict[Guid, str]:
    """Return the site's node of each adapter, by the BMC's inventory, else by its name in the plan or the fabric."""
    nodes = context.states(context.names())
    known = set(context.names())
    reported = (
        (hca.guid, node.name) for node in nodes for hca in (node.inventory.hcas if node.inventory else ()) or ()
    )
    found = {guid: name for guid, name in reported if guid is not None}
    for guid, device in seen.devices.items():
        if guid not in found and device.kind is not DeviceKind.SWITCH and not device.is_aggregation:
            name = labels.box(guid).split(" ")[0]
            if name in known:
                found[guid] = name
    return found


def busy_hosts(context: SiteContext, adapters: Adapters, deadline: Deadline) -> dict[str, str]:
    """Return the nodes that have jobs, or may have, with the reason."""
    scheduler = adapters.scheduler
    known: Mapping[str, Occupancy] = scheduler.look(deadline).value if scheduler is not None else {}
    found: dict[str, str] = {}
    for node in context.nodes():
        use = known.get(node.name)
        if use is None and node.stage is Stage.GOLD:
            found[node.name] = "jobs may run on it: the site names no scheduler that knows"
        elif use is not None and use.use in (Use.BUSY, Use.UNKNOWN):
            found[node.name] = f"the scheduler reports it as {use.state or use.use.value}"
    return found


def masters_seen(context: SiteContext, seen: Fabric) -> frozenset[Guid]:
    """Return the device at which the last watch saw the master subnet manager."""
    payloads = (event.payload for event in context.journal.latest(Stream.FABRIC, Kind.FABRIC_MASTER_SEEN))
    ports = {payload.guid for payload in payloads if isinstance(payload, FabricMasterSeen)}
    return frozenset(guid for guid, one in seen.devices.items() if not ports.isdisjoint((guid, *one.port_guids)))

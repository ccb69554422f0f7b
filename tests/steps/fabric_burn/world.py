"""A fabric in memory: hosts send, its ports count, and links can be bad. It shares no parser with what it tests."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as await_all
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from clusterctl.cabling.burn.routes import Endpoint, Routes, lay_routes
from clusterctl.fleet.errors import UnreachableError
from clusterctl.fleet.fabric.topology import NO_ROUTE, DeviceKind, Fabric, ForwardingTables, Link, PortId
from clusterctl.fleet.finding import Evidence, Observed, Origin
from clusterctl.fleet.node import Guid
from clusterctl.ports import Deadline, HostAddress, Ran
from clusterctl.steps.fabric_burn import BurnHost
from clusterctl_burnin.limits.methods import PairMethod
from clusterctl_burnin.loads.model import Participant
from tests.fake_timer import FakeTimer
from tests.formats.infiniband.printers import ibnetdiscover, ibqueryerrors

EPOCH = datetime(2026, 1, 31, tzinfo=UTC)
METHOD = PairMethod(message_bytes=65536, iterations=5000, timeout_seconds=60)
FULL = 0.96
"""Share of its rate that a healthy link carries."""
LINGER_S = 3.0
"""Seconds after the controller's death in which a host has ended its processes: a look each second, then two of grace
(clusterctl_burnin/node/processes.py)."""
_SETTLED_S = 0.2
"""Real seconds without a new session after which all of a stage are taken to run."""


@dataclass
class Bad:
    """What is wrong with a link, as seen at `port`. `at_s`: of the fabric's time, from when on.

    share   of its rate that it carries from this port on
    per_s   growth of error counters per second under load
    """

    port: PortId
    share: float = FULL
    per_s: dict[str, float] = field(default_factory=dict)
    both_ends: bool = False
    lost_at_s: float | None = None


@dataclass
class LostSwitch:
    """A switch without power from `at_s` of the fabric's time until `back_s`, exclusive."""

    guid: Guid
    at_s: float
    back_s: float = float("inf")


@dataclass
class FabricWorld:
    """Meets the ports of a burn: shell, fabric, tables and counters. `dead`: hosts that answer no session.

    switches    that lose their power; flows through one end then, and the subnet manager routes around it
    reports_of  host → the host whose adapters it reports as its own
    reading_s   seconds that a reading of the counters takes
    """

    fabric: Fabric
    tables_: ForwardingTables
    bad: Sequence[Bad] = ()
    switches: Sequence[LostSwitch] = ()
    dead: set[str] = field(default_factory=set)
    reports_of: dict[str, str] = field(default_factory=dict)
    timer: FakeTimer = field(default_factory=FakeTimer)
    reading_s: float = 0.0
    sessions: int = 0
    flows: list[Future[Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.fabric, self.tables_ = printable(self.fabric, self.tables_)
        self.routes: Routes = lay_routes(self.fabric, self.tables_)
        self._by_address = {self._address(end.host, end.name.port): end for end in self.routes.endpoints}
        self._lock = threading.Lock()
        self._stage: list[tuple[tuple[int, ...], float, float]] = []
        self._busy: dict[tuple[str, int], float] = {}
        self._counters: dict[tuple[PortId, str], float] = {}
        self._settled_to = 0.0
        self._waited()

    def _waited(self) -> None:
        inner = self.timer.wait

        def wait(event: threading.Event, seconds: float) -> None:
            known = -1
            if self.flows:
                await_all(self.flows)
                known = self.sessions
            while known != self.sessions:
                known = self.sessions
                threading.Event().wait(_SETTLED_S)
            inner(event, seconds)

        self.timer.wait = wait  # type: ignore[method-assign]

    def counted_pool(self, workers: int, name: str) -> ThreadPoolExecutor:
        """Return a pool whose sessions all run before time passes: nothing depends on the machine's speed."""
        flows = self.flows
        flows.clear()

        class Counted(ThreadPoolExecutor):
            def submit(self, *call: Any, **options: Any) -> Any:
                flows.append(super().submit(*call, **options))
                return flows[-1]

        return Counted(workers, name)

    def controller_died(self) -> None:
        """End all flows as the hosts do: their sessions have no reader any more."""
        with self._lock:
            self._settle()
            over = self.timer.now() + LINGER_S
            self._stage.clear()
            self._busy = {port: min(end, over) for port, end in self._busy.items()}

    def busy_ports(self) -> list[tuple[str, int]]:
        """Return the ports on which a server listens now, by host and number."""
        return sorted(port for port, end in self._busy.items() if end > self.timer.now())

    # the hosts

    def hosts(self) -> dict[str, BurnHost]:
        found: dict[str, BurnHost] = {}
        by_host: dict[str, list[tuple[str, PortId]]] = {}
        for end in self.routes.endpoints:
            by_host.setdefault(end.host, []).append((end.name.port, end.port))
        for name, ends in by_host.items():
            devices = tuple(device for device, _ in sorted(ends))
            rails = {port.guid: devices.index(device) for device, port in ends}
            address = HostAddress(name, name, "root", "ssh-ed25519 A", "key")
            found[name] = BurnHost(address, Participant(name, name, devices), rails, METHOD)
        return found

    def _address(self, host: str, device: str) -> tuple[str, int]:
        devices = sorted(end.name.port for end in self.routes.endpoints if end.host == host) if host else []
        return host, 18515 + devices.index(device)

    def run(self, host: HostAddress, argv: Sequence[str], stdin: bytes, deadline: Deadline) -> Observed[Ran]:
        """What the script's probes would print; its clients begin to send at once."""
        del argv, deadline
        spec = json.loads(json.loads(stdin.decode().rstrip().rpartition("main(json.loads(")[2].rstrip(")")))
        with self._lock:
            self.sessions += 1
            if host.name in self.dead:
                raise UnreachableError("no route to host")
            probes = {probe["name"]: self._probe(host.name, probe["argv"]) for probe in spec["probes"]}
        at = self.timer.now()
        document = {"version": 1, "origin": "simulated", "host": host.name, "boot_id": "b", "started": at}
        text = json.dumps(document | {"finished": at, "probes": probes})
        return Observed(Ran(0, text, "", 0.1), (self._evidence("ssh", text),))

    def _probe(self, host: str, argv: list[str]) -> dict[str, object]:
        options = dict(zip(argv[1::2], argv[2::2], strict=False))
        answer = {"argv": argv, "status": "ok", "rc": 0, "stdout": "", "stderr": "", "started": 0.0, "seconds": 1.0}
        if argv == ["ibstat"]:
            return answer | {"stdout": "".join(map(ibstat, self._devices(self.reports_of.get(host, host))))}
        if argv[-1] not in self.names:
            return answer
        source = next(e for e in self.routes.endpoints if (e.host, e.name.port) == (host, options["-d"]))
        target = self._by_address[argv[-1], int(options["-p"])]
        way = self._route(source, target)
        if argv[-1] in self.dead or not way or not self._up(way):
            return answer | {"rc": 1, "stderr": f"Couldn't connect to {argv[-1]}"}
        seconds = float(options["-D"])
        port = argv[-1], int(options["-p"])
        if self._busy.get(port, 0.0) > self.timer.now():
            return answer | {"rc": 1, "stderr": f"Couldn't connect to {argv[-1]}: a server of another run has the port"}
        self._busy[port] = self.timer.now() + seconds
        start = self._stage[0][1] if self._stage and self._stage[0][2] > self.timer.now() else self.timer.now()
        if self._stage and self._stage[0][2] <= self.timer.now():
            self._settle()
            self._stage.clear()
        self._stage.append((way, start, self._ends_at(way, start + seconds)))
        table = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
        return answer | {"stdout": table + f" 65536 5000 0.00 {self._share(way) * 400:.2f} 0.09\n"}

    def _route(self, source: Endpoint, target: Endpoint) -> tuple[int, ...]:
        """Return the links between two adapters by the tables of this moment, by their numbers in the whole fabric."""
        if not self._away(self.timer.now()):
            return self.routes.way(source, target)
        now = lay_routes(self._now(), rerouted(self._now(), self.tables_))
        ends = {end.port: end for end in now.endpoints}
        if source.port not in ends or target.port not in ends:
            return ()
        number = {link: index for index, link in enumerate(self.routes.links)}
        return tuple(number[now.links[link]] for link in now.way(ends[source.port], ends[target.port]))

    def _devices(self, host: str) -> list[tuple[str, str]]:
        return sorted((end.name.port, end.port.guid) for end in self.routes.endpoints if end.host == host)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(end.host for end in self.routes.endpoints)

    # the fabric

    def ibnetdiscover(self, deadline: Deadline) -> Observed[str]:
        """The fabric; it is read before a stage, and after its sessions have ended."""
        del deadline
        if self._stage and self._stage[0][2] > self.timer.now():
            self.timer.advance(self._stage[0][2] - self.timer.now() + 1)
        text = ibnetdiscover(self._now())
        return Observed(text, (self._evidence("ibnetdiscover", text),))

    def dump_fts(self, deadline: Deadline) -> Observed[str]:
        del deadline
        text = dump_fts(self._now(), rerouted(self._now(), self.tables_))
        return Observed(text, (self._evidence("dump_fts", text),))

    def ibqueryerrors(self, deadline: Deadline) -> Observed[str]:
        return self.traffic(deadline)

    def traffic(self, deadline: Deadline) -> Observed[str]:
        """Error counters, then data counters, as the real tool prints both."""
        del deadline
        self.timer.advance(self.reading_s / 2)
        with self._lock:
            self._settle()
            counted = {key: int(value) for key, value in self._counters.items()}
        errors: dict[PortId, dict[str, int]] = {}
        for (port, counter), value in counted.items():
            if value and (not counter.startswith("Port") or "Errors" in counter):
                errors.setdefault(port, {})[counter] = value
        at = EPOCH + timedelta(seconds=self.timer.now())
        text = (
            f"# {at:%Y-%m-%dT%H:%M:%S.%f}Z, read within {self.reading_s:.3f} s\n"
            f"{ibqueryerrors(self._now(), errors)}{data_counters(self._now(), counted)}"
        )
        self.timer.advance(self.reading_s / 2)
        return Observed(text, (self._evidence("ibqueryerrors", text),))

    def _now(self) -> Fabric:
        gone = {frozenset(self._link(bad.port)) for bad in self.bad if self._is_lost(bad)}
        away = self._away(self.timer.now())
        links = tuple(
            x for x in self.fabric.links if frozenset((x.a, x.b)) not in gone and away.isdisjoint((x.a.guid, x.b.guid))
        )
        cabled = {end.guid for link in links for end in (link.a, link.b)}
        seen = {guid: one for guid, one in self.fabric.devices.items() if not away or guid in cabled}
        return Fabric(seen, links)

    def _away(self, now: float) -> frozenset[Guid]:
        """Return the switches without power."""
        return frozenset(one.guid for one in self.switches if one.at_s <= now < one.back_s)

    def _ends_at(self, way: Iterable[int], end: float) -> float:
        """Return when a flow over the links ends: at the time given, or with a switch on its way."""
        crossed = {self.routes.links[link].source.guid for link in way}
        lost = (one.at_s for one in self.switches if one.guid in crossed and self.timer.now() < one.at_s)
        return min([end, *lost])

    def _is_lost(self, bad: Bad) -> bool:
        return bad.lost_at_s is not None and self.timer.now() >= bad.lost_at_s

    def _link(self, port: PortId) -> tuple[PortId, PortId]:
        return next((x.a, x.b) for x in self.fabric.links if port in (x.a, x.b))

    def _up(self, way: Iterable[int]) -> bool:
        gone = {end for bad in self.bad if self._is_lost(bad) for end in self._link(bad.port)}
        return not any(self.routes.links[link].source in gone for link in way)

    def _share(self, way: Iterable[int]) -> float:
        sources = {self.routes.links[link].source for link in way}
        return min([FULL, *(bad.share for bad in self.bad if bad.port in sources)])

    def _settle(self) -> None:
        """Add what has passed since the last reading."""
        now = self.timer.now()
        for way, start, end in self._stage:
            seconds = max(0.0, min(now, end) - max(self._settled_to, start))
            words = self._share(way) * 400e9 / 32 * seconds
            for link in way:
                ends = self.routes.links[link]
                for port, counter in ((ends.source, "PortXmitData"), (ends.target, "PortRcvData")):
                    self._counters[port, counter] = self._counters.get((port, counter), 0.0) + words
        busy = {
            self.routes.links[link].source for way, start, end in self._stage if end > self._settled_to for link in way
        }
        for bad in self.bad:
            ends_of = self._link(bad.port) if bad.both_ends else (bad.port,)
            for port in ends_of if bad.port in busy else ():
                for counter, per_s in bad.per_s.items():
                    value = self._counters.get((port, counter), 0.0) + per_s * (now - self._settled_to)
                    self._counters[port, counter] = value
        self._settled_to = now

    def _evidence(self, source: str, text: str) -> Evidence:
        return Evidence(source, "test", EPOCH, Origin.SIMULATED, text.encode())


def printable(fabric: Fabric, tables: ForwardingTables) -> tuple[Fabric, ForwardingTables]:
    """Return both with what the printers need: a LID at each device, and adapters whose port has the device's GUID."""
    owners = {own: guid for guid, device in fabric.devices.items() for own in (guid, *device.port_guids)}
    lids = {lid: owners[own] for lid, own in tables.lids.items()}
    of_device = {guid: lid for lid, guid in lids.items()}
    free = iter(range(max(lids) + 1, 0xBFFF))
    devices = {
        guid: replace(
            device,
            lids=(of_device[guid] if guid in of_device else next(free),),
            port_guids=(guid,) if device.kind is DeviceKind.CA else (),
        )
        for guid, device in fabric.devices.items()
    }
    return Fabric(devices, fabric.links), ForwardingTables(tables.tables, lids)


def rerouted(fabric: Fabric, tables: ForwardingTables) -> ForwardingTables:
    """Return the tables of the switches that are there: what went to a lost one goes to another switch above."""
    exits = {
        guid: sorted(
            near.number
            for link in fabric.links
            for near, far in ((link.a, link.b), (link.b, link.a))
            if near.guid == guid and fabric.devices[far.guid].kind is DeviceKind.SWITCH
        )
        for guid in tables.tables
        if guid in fabric.devices
    }
    cabled = {end for link in fabric.links for end in (link.a, link.b)}
    changed: dict[Guid, tuple[int, ...]] = {}
    for guid, upward in exits.items():
        ports = tables.tables[guid]
        known = [port if PortId(guid, port) in cabled or port == NO_ROUTE else NO_ROUTE for port in ports]
        lost = [lid for lid, port in enumerate(ports) if port != known[lid] and tables.lids.get(lid) in fabric.devices]
        changed[guid] = tuple(
            upward[lid % len(upward)] if lid in lost and upward else port for lid, port in enumerate(known)
        )
    return ForwardingTables(changed, {lid: own for lid, own in tables.lids.items() if own in fabric.devices})


def ibstat(adapter: tuple[str, str]) -> str:
    name, guid = adapter
    return (
        f"CA '{name}'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tFirmware version: 28.39.1002\n"
        f"\tNode GUID: 0x{guid}\n\tSystem image GUID: 0x{guid}\n\tPort 1:\n\t\tState: Active\n"
        f"\t\tPhysical state: LinkUp\n\t\tRate: 400\n\t\tBase lid: 1\n\t\tLMC: 0\n\t\tSM lid: 1\n"
        f"\t\tCapability mask: 0xa751e848\n\t\tPort GUID: 0x{guid}\n\t\tLink layer: InfiniBand\n"
    )


def dump_fts(fabric: Fabric, tables: ForwardingTables) -> str:
    text = ""
    for switch, ports in tables.tables.items():
        name = fabric.devices[switch].description
        text += (
            f"Unicast lids [0x0-0x{len(ports) - 1:x}] of switch DR path slid 0; dlid 0; 0 guid 0x{switch} ({name}):\n"
        )
        text += "  Lid  Out   Destination\n       Port     Info \n"
        known = [(lid, port) for lid, port in enumerate(ports) if port != NO_ROUTE and lid in tables.lids]
        for lid, port in known:
            text += f"0x{lid:04x} {port:03} : (Channel Adapter portguid 0x{tables.lids[lid]}: 'x')\n"
        text += f"{len(known)} valid lids dumped \n"
    return text


def data_counters(fabric: Fabric, counted: dict[tuple[PortId, str], int]) -> str:
    text = ""
    for guid, device in fabric.devices.items():
        text += f'Data Counters for 0x{guid} "{device.description}"\n'
        shown = device.port_guids[0] if device.port_guids else guid
        for number in range(1, device.ports + 1):
            values = [(name, counted.get((PortId(guid, number), name), 0)) for name in ("PortXmitData", "PortRcvData")]
            text += f"   GUID 0x{shown} port {number}: " + " ".join(f"[{n} == {v} (1.0KB)]" for n, v in values) + "\n"
    text += f"\n## Summary: {len(fabric.devices)} nodes checked, 0 bad nodes found\n"
    return (
        text + "##          99 ports checked, 0 ports have errors beyond threshold\n## Thresholds: \n## Suppressed:\n"
    )


def trunks(fabric: Fabric) -> list[Link]:
    """Return the links between switches."""
    switches = {guid for guid, device in fabric.devices.items() if device.kind is DeviceKind.SWITCH}
    return [link for link in fabric.links if {link.a.guid, link.b.guid} <= switches]


def bad_links(fabric: Fabric, count: int, seed: int, among: Collection[Link] = ()) -> list[Bad]:
    """Return bad links of five kinds in turn: slow, bit errors, packets with errors, flapping, lost in the first stage."""
    chosen = random.Random(seed).sample(sorted(among or trunks(fabric), key=lambda link: (link.a, link.b)), count)
    kinds = (
        lambda port: Bad(port, share=0.6),
        lambda port: Bad(port, per_s={"SymbolErrorCounter": 2.0}),
        lambda port: Bad(port, per_s={"PortRcvErrors": 50.0}),
        lambda port: Bad(port, per_s={"LinkDownedCounter": 0.01}, both_ends=True),
        lambda port: Bad(port, lost_at_s=300.0),
    )
    return [kinds[number % len(kinds)](link.a) for number, link in enumerate(chosen)]

"""Machines of any number behind the real ports: each answers as a healthy one, after the time that a real one takes.

What a host prints are the recordings of `tests/burnin/data/healthy`. Nothing here uses a network or a disk, and next to
no processor: what a run costs is the product's.
"""

from __future__ import annotations

import functools
import json
import math
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NoReturn, Self

from clusterctl.fleet.errors import NoFabricPortError
from clusterctl.fleet.finding import Evidence, Observed, Origin
from clusterctl.fleet.node import Drive, Gpu, Guid, Hca, Inventory, Mac, Nic, Psu, Serial, Temperature
from clusterctl.ports import (
    BmcAddress,
    Deadline,
    HostAddress,
    InstallState,
    InstallStatus,
    InstallTarget,
    LogEntry,
    PlayOutcome,
    Pool,
    Power,
    Ran,
)
from tests.burnin.kit import PROBES, healthy_text
from tests.steps.fakes import disks

WRITTEN = """\
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 8388608    20000              394.10             393.80             0.005868
"""
NAME, SERIAL = "node001", "LAB0001"
"""Of the recorded host."""
COUNTED = (1000, 1005)
"""Seconds after its boot at which it read the counters of its ports."""
UNRECORDED = ("load_sampler", "load_sampler_begun")
"""Probes with an answer that no check reads."""
ROLE = "nvidia_driver"
"""Asks for the one reboot of each machine."""


@dataclass(frozen=True, kw_only=True)
class TrueTimes:
    """Seconds that a real machine takes; `benchmarks/site_simulation.py` has their sources.

    bmc     to report its inventory
    post    until a boot is over
    write   an OS to the disk, without the boot before and after
    play    the roles on a new host; `again`: once more over a configured one
    checks  one session of probes
    load    one of the five rounds in pairs, which stand for all loads of the suite `bootstrap`
    fabric  one reading
    """

    bmc: float = 74.0
    post: float = 300.0
    write: float = 240.0
    play: float = 600.0
    again: float = 60.0
    checks: float = 10.0
    load: float = 600.0
    fabric: float = 20.0

    @property
    def node(self) -> float:
        """Return what one node waits for at least, from its BMC's address to gold."""
        install = 2 * self.post + self.write
        configure = self.play + self.post + self.again
        return self.bmc + install + configure + self.fabric + self.checks + 5 * self.load


@dataclass(frozen=True)
class Machine:
    """`number` is unique in the fleet, and counts from 1."""

    number: int

    @property
    def serial(self) -> Serial:
        return Serial(f"SIM{self.number:05d}")

    @property
    def address(self) -> str:
        return f"10.96.{self.number >> 8}.{self.number & 255}"

    @property
    def inventory(self) -> Inventory:
        """Return what its BMC reports: two GPUs and two adapters, as the recorded host has."""
        high, middle, low = self.number >> 16, self.number >> 8 & 255, self.number & 255
        guids = [Guid(f"{0x1000000 + 2 * self.number + port:016x}") for port in range(2)]
        return Inventory(
            "Dell Inc.",
            "PowerEdge XE9680",
            self.serial,
            cpu_count=2,
            memory_gib=256,
            gpus=tuple(
                Gpu(f"Video.Slot.2{at}-1", "NVIDIA H100 80GB HBM3", Serial(f"16500{self.number:05d}{at}"))
                for at in (1, 2)
            ),
            hcas=tuple(
                Hca(f"NIC.Slot.{at}-1", "NVIDIA ConnectX-7", Serial(f"MT{self.number:05d}{at}"), guid)
                for at, guid in enumerate(guids)
            ),
            nics=(Nic("NIC.Embedded.1-1", Mac(f"02:00:00:{high:02x}:{middle:02x}:{low:02x}"), boots=True),),
            drives=(Drive("0", "M.2", 480_000_000_000, Serial(f"DISK-{self.serial}")),),
            psus=tuple(Psu(f"PSU.Slot.{at}", Serial(f"PS{self.number:05d}{at}"), True) for at in range(1, 7)),
            temperatures=(Temperature("System Board Inlet", 24.0, 47.0, "OK", intake=True),),
            health="OK",
            on=True,
        )


@dataclass
class FakeFleet:
    """Meets `Adapters` as far as the six steps need it. `scale`: how much faster than true time.

    installs  when the OS of each machine began to be written, by the monotonic clock
    boots     of each machine since then
    began     when the fleet was made, by the clock
    """

    machines: Mapping[str, Machine]
    topology: str
    pool: Pool
    scale: float
    times: TrueTimes = field(default_factory=TrueTimes)
    installs: dict[str, float] = field(default_factory=dict)
    boots: dict[str, int] = field(default_factory=dict)
    began: float = field(default_factory=time.time)

    def __post_init__(self) -> None:
        self.bmcs = self.installer = self.shell = self.playbooks = self.fabric = self.counters = self
        self.by_bmc = {f"10.64.{one.number >> 8}.{one.number & 255}": one for one in self.machines.values()}

    def take(self, seconds: float, deadline: Deadline, what: str) -> None:
        """Let so many seconds of true time pass."""
        deadline.sleep(seconds / self.scale, what)

    # --- Bmcs

    def open(self, address: BmcAddress, deadline: Deadline) -> FakeBmc:
        return FakeBmc(self, self.by_bmc[address.host])

    # --- Installer

    def prepare(self, target: InstallTarget, deadline: Deadline) -> NoReturn:
        raise AssertionError("every machine is ready")

    release = prepare

    def power_login(self, target: InstallTarget, deadline: Deadline) -> None:
        return None

    def start(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        if target.name in self.installs:
            raise AssertionError(f"the OS of {target.name} is written twice")
        self.installs[target.name] = time.monotonic()
        return self._status(target.name)

    def observe(self, targets: Sequence[InstallTarget], deadline: Deadline) -> Mapping[str, Observed[InstallStatus]]:
        return {target.name: self._status(target.name) for target in targets}

    def _status(self, name: str) -> Observed[InstallStatus]:
        passed = (time.monotonic() - self.installs.get(name, math.inf)) * self.scale
        if name not in self.installs:
            state = InstallState.READY
        else:
            over = passed >= 2 * self.times.post + self.times.write
            state = InstallState.INSTALLED if over else InstallState.INSTALLING
        addresses = (self.machines[name].address,) if state is InstallState.INSTALLED else ()
        return Observed(InstallStatus(state, "", name, addresses), seen("installer", state.value))

    # --- Shell

    def run(self, *call: Any) -> Any:
        """Meet `Shell` and `Playbooks`, which differ in their first argument."""
        return self._play(*call) if isinstance(call[0], str) else self._command(*call)

    def _command(self, host: HostAddress, argv: Sequence[str], stdin: bytes, deadline: Deadline) -> Observed[Ran]:
        machine = self.machines[host.name]
        simple = {"cat": f"boot-{self.boots.get(host.name, 0)}\n{host.name}\n", "true": ""}
        simple |= disks(f"DISK-{machine.serial}")
        if argv[0] in simple:
            return Observed(Ran(0, simple[argv[0]], "", 0.1), seen(argv[0], simple[argv[0]]))
        call = stdin.decode().rstrip().rpartition("\n")[2]
        spec = json.loads(json.loads(call.removeprefix("main(json.loads(").removesuffix("))")))
        names = [probe["name"] for probe in spec["probes"]]
        load = any(probe["argv"][0] == "ib_write_bw" for probe in spec["probes"])
        began = time.time()
        if load or len(names) > len(PROBES) // 2:
            self.take(self.times.load if load else self.times.checks, deadline, "the host's answer")
        answers = {probe["name"]: self._answer(host.name, machine, probe, began) for probe in spec["probes"]}
        head = {"version": 1, "origin": "simulated", "host": host.name, "boot_id": f"b{self.boots.get(host.name, 0)}"}
        text = json.dumps({**head, "started": began, "finished": time.time(), "probes": answers})
        return Observed(Ran(0, text, "", 1.0), seen(" ".join(argv), str(zlib.crc32(text.encode()))))

    def _answer(self, name: str, machine: Machine, probe: Mapping[str, Any], at: float) -> dict[str, Any]:
        text = WRITTEN if probe["argv"][0] == "ib_write_bw" else recorded(probe["name"])
        passed = (at - self.began) * self.scale
        own = text.replace(SERIAL, machine.serial).replace(NAME, name)
        for second in COUNTED:
            own = own.replace(f"{second}.0", f"{second + passed:.1f}")
        return {
            "argv": probe["argv"], "status": "ok", "rc": 0, "stdout": own, "stderr": "", "started": at, "seconds": 0.1,
        }  # fmt: skip

    # --- Playbooks

    def _play(
        self, playbook: str, hosts: Sequence[HostAddress], _variables: Mapping[str, Any], deadline: Deadline
    ) -> Iterator[Observed[PlayOutcome]]:
        names = [host.name for host in hosts]
        if playbook == "reboot.yml":
            self.take(self.times.post, deadline, "the reboot")
            for name in names:
                self.boots[name] = 1
        elif playbook != "introduce.yml":
            new = any(name not in self.boots for name in names)
            self.take(self.times.play if new else self.times.again, deadline, "the play")
        for name in names:
            wants = (ROLE,) if playbook not in ("reboot.yml", "introduce.yml") and name not in self.boots else ()
            boot = f"boot-{self.boots.get(name, 0)}"
            yield Observed(PlayOutcome(name, True, 1, reboot_for=wants, boot_id=boot), seen(playbook, f"{name} {boot}"))

    # --- FabricReader, CounterReader

    def ibnetdiscover(self, deadline: Deadline) -> Observed[str]:
        self.take(self.times.fabric, deadline, "reading the fabric")
        return Observed(self.topology, seen("ibnetdiscover", self.topology))

    def ibqueryerrors(self, deadline: Deadline) -> NoReturn:
        raise NoFabricPortError("counters are not simulated", where="ibqueryerrors", remedy="none")

    traffic = ibqueryerrors

    # --- the rest of `Adapters`

    @property
    def accounts(self) -> Self:
        return self

    @property
    def scheduler(self) -> None:
        return None

    def close(self) -> None:
        """Nothing is open."""


@dataclass
class FakeBmc:
    """Meets `BmcClient` as far as it is read."""

    fleet: FakeFleet
    machine: Machine

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        """Nothing is open."""

    def inventory(self, deadline: Deadline) -> Observed[Inventory]:
        self.fleet.take(self.fleet.times.bmc, deadline, "reading the BMC")
        return Observed(self.machine.inventory, seen("inventory", self.machine.serial))

    def power(self, deadline: Deadline) -> Observed[Power]:
        return Observed(Power.ON, seen("power", "on"))

    def event_log(self, deadline: Deadline) -> Observed[tuple[LogEntry, ...]]:
        return Observed((), seen("log", self.machine.serial))


def seen(source: str, text: str) -> tuple[Evidence, ...]:
    return (Evidence(source, "fake fleet", datetime.now(UTC), Origin.SIMULATED, text.encode()),)


@functools.cache
def recorded(probe: str) -> str:
    return "" if probe in UNRECORDED else healthy_text(probe)

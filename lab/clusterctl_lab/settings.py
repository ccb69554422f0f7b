"""The options of `lab up`, and the folders of a lab."""

from __future__ import annotations

import enum
import json
from dataclasses import asdict, dataclass, replace
from ipaddress import AddressValueError, IPv4Network, NetmaskValueError
from pathlib import Path

from clusterctl.fleet.errors import UsageError
from clusterctl_lab.hosts.names import RUN, STATE, LabNames
from clusterctl_lab.layout import HOSTS_PER_POD, Layout
from clusterctl_lab.vendor import Vendor
from clusterctl_lab.world import Delays


class MetalKind(enum.Enum):
    """What a lab's machines are made of: NAMESPACES of this machine, or virtual machines (QEMU) with a firmware."""

    NAMESPACES = "namespaces"
    QEMU = "qemu"


class InstallerKind(enum.Enum):
    """Who installs a lab's machines: the lab's MAAS, or clusterctl's own PXE, which the lab is no part of."""

    MAAS = "maas"
    PXE = "pxe"


class FabricKind(enum.Enum):
    """The compute fabric of a lab's machines: InfiniBand, or RoCE on Ethernet switches, without a subnet manager."""

    INFINIBAND = "infiniband"
    ROCE = "roce"


SHORT = Delays(
    power_off=0.05,
    post=0.2,
    commission=0.3,
    write_os=0.5,
    flash=0.3,
    bmc_restart=0.5,
    netboot_timeout=8.0,
    slow_request=2.0,
)
"""For tests: the same order of events in less time."""
NODE_TIMEOUT_S = 1800.0
"""How long MAAS waits for a machine that really boots: its own default (`node_timeout`, 30 minutes)."""


@dataclass(frozen=True, slots=True)
class LabSettings:
    """One lab. `site` is an absolute path; `faults` are `FAULT:TARGET` as on the command line, `seed` is what
    its machines' healthy values are drawn from; `vendors` are used in turn; `metal` is a `MetalKind`,
    `os_image` what virtual metal shall be installed with, by its name in the boot folder; `installer` is an
    `InstallerKind`, empty: PXE for virtual metal, MAAS for the others; `fabric` is a `FabricKind`;
    `pods` is how many management networks the machines are split over.
    """

    name: str
    site: str
    hosts: int = 8
    rails: int = 8
    subnet: str = "10.88.0.0/16"
    installed: bool = False
    short: bool = False
    faults: tuple[str, ...] = ()
    seed: int = 0
    vendors: tuple[str, ...] = (Vendor.DELL.value,)
    metal: str = MetalKind.NAMESPACES.value
    os_image: str = ""
    installer: str = ""
    fabric: str = FabricKind.INFINIBAND.value
    pods: int = 1

    def __post_init__(self) -> None:
        LabNames(self.name)
        _network(self.subnet)
        if self.virtual and self.installed:
            remedy = "install them: clusterctl bootstrap --until install"
            raise UsageError("virtual metal is delivered without an OS", where="--installed", remedy=remedy)
        if not self.virtual and not self.has_maas:
            what = "hosts in namespaces boot nothing from a network"
            raise UsageError(what, where="--installer", remedy="add --metal qemu, or leave --installer out")
        if self.roce and (self.virtual or set(self.vendors) != {Vendor.DELL.value}):
            what = "only Dell servers in namespaces have RoCE adapters"
            raise UsageError(what, where="--fabric", remedy="leave --vendor and --metal out")
        self._check_pods()

    def _check_pods(self) -> None:
        if self.pods > 1 and self.virtual:
            remedy = "leave --metal or --pods out"
            raise UsageError("virtual metal has one management network", where="--pods", remedy=remedy)
        if self.pods > 1 and not self.pods <= self.hosts <= self.pods * HOSTS_PER_POD:
            what = f"{self.hosts} machines do not fit {self.pods} pods of 1 to {HOSTS_PER_POD} each"
            raise UsageError(what, where="--pods", remedy="choose --hosts and --pods to fit")

    @property
    def virtual(self) -> bool:
        return MetalKind(self.metal) is MetalKind.QEMU

    @property
    def roce(self) -> bool:
        return FabricKind(self.fabric) is FabricKind.ROCE

    @property
    def has_maas(self) -> bool:
        """Whether the lab's MAAS installs its machines."""
        usual = InstallerKind.PXE if self.virtual else InstallerKind.MAAS
        return (InstallerKind(self.installer) if self.installer else usual) is InstallerKind.MAAS

    def vendor(self, number: int) -> Vendor:
        """Of the machine with that number, from 1."""
        return Vendor(self.vendors[(number - 1) % len(self.vendors)])

    @property
    def layout(self) -> Layout:
        return Layout(_network(self.subnet), self.pods, -(-self.hosts // self.pods))

    @property
    def delays(self) -> Delays:
        delays = SHORT if self.short else Delays()
        return replace(delays, netboot_timeout=NODE_TIMEOUT_S) if self.virtual else delays

    @property
    def paths(self) -> LabPaths:
        return LabPaths(self.name)

    def save(self) -> None:
        """Remember the lab for `lab down` and for the next `lab up`, should it be killed."""
        self.paths.record.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def load(cls, record: Path) -> LabSettings:
        """What `save` wrote. Raises FileNotFoundError where there is none."""
        values = json.loads(record.read_text(encoding="utf-8"))
        lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
        return cls(**{**values, **lists})


@dataclass(frozen=True, slots=True)
class LabPaths:
    """`run` is gone after a reboot of the machine, `state` is not. The lock lies next to `run`: no sweep removes it."""

    name: str

    def __post_init__(self) -> None:
        LabNames(self.name)

    @property
    def run(self) -> Path:
        return RUN / self.name

    @property
    def lock(self) -> Path:
        return RUN / f"{self.name}.lock"

    @property
    def control(self) -> Path:
        return self.run / "control"

    @property
    def state(self) -> Path:
        return STATE / self.name

    @property
    def record(self) -> Path:
        return self.state / "lab.json"

    @property
    def log(self) -> Path:
        return self.state / "daemon.log"

    @property
    def tls(self) -> Path:
        return self.state / "tls"


def _network(text: str) -> IPv4Network:
    remedy = "write a private /16, like 10.88.0.0/16"
    try:
        network = IPv4Network(text)
    except (AddressValueError, NetmaskValueError, ValueError) as error:
        raise UsageError(f"{text!r} is no IPv4 network: {error}", where="--subnet", remedy=remedy) from None
    if network.prefixlen != 16 or not network.is_private:
        raise UsageError(f"{text} is no private /16", where="--subnet", remedy=remedy)
    return network

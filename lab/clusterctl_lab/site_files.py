"""What stands in a lab's site directory: rendered from the healthy machines, as a supplier would describe them."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from clusterctl_lab import ethernet
from clusterctl_lab.emulators.apt import DRIVER_VERSION, vendor_repository
from clusterctl_lab.emulators.host_tools import CONTAINER, EXPORTER, GPU_IMAGE
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import Machine, SwitchPort
from clusterctl_lab.metal.packages import MPI
from clusterctl_lab.metal.site import BOOT_FOLDER, metal_skus
from clusterctl_lab.site_directory import Files
from clusterctl_lab.vendor import Vendor


def host_variables(packages: Path, address: str) -> Mapping[str, object]:
    """What hosts in namespaces need that no role may presume: their repository; no kernel of their own, so no headers,
    and no settings that only a whole kernel has.
    """
    return {
        **_repositories(packages, address),
        "base_sysctl": {"net.core.somaxconn": 4096, "net.ipv4.tcp_mtu_probing": 1, "vm.zone_reclaim_mode": 0},
    }


def metal_variables(packages: Path, address: str) -> Mapping[str, object]:
    """Virtual machines have a whole kernel; the driver that they get is a stand-in, with no module to build or load."""
    return {**_repositories(packages, address), "base_extra_packages": list(MPI)}


def _repositories(packages: Path, address: str) -> Mapping[str, object]:
    url, key = vendor_repository("nvidia", packages, address)
    return {
        "nvidia_driver_version": DRIVER_VERSION,
        "nvidia_repository_url": url,
        "nvidia_repository_key": key,
        "nvidia_driver_kernel_headers": [],
    }


SSH_USER = "ops"
SKUS = {
    Vendor.DELL: "lab-xe9680",
    Vendor.SUPERMICRO: "lab-sys-821ge",
    Vendor.HPE: "lab-xl675d",
    Vendor.OPENBMC: "lab-dgx-h100",
}
"""The SKU of each vendor's machines: data/skus."""
WIRING = ("source_device", "source_port", "destination_device", "destination_port")
WIRING_NOTES = ("rack", "unit", "length_m", "cable_serial")
HOST_CABLE_M = 3
SPINE_CABLE_M = 20
PLACES = ("source_rack", "source_unit", "destination_rack", "destination_unit", "destination_mac")
SWITCH_UNIT = 42


_SUITE = """\
# The shipped suite, with pairs that write as many messages as limits/lab.yml sets, not for 15 minutes.
version: 1
name: bootstrap
extends: bootstrap
pair_seconds: null
"""


@dataclass(frozen=True, slots=True)
class Keys:
    """The lab's secrets, made again at each `lab up`, and of no use elsewhere."""

    bmc_password: str = field(repr=False)
    maas_api_key: str = field(repr=False)
    ssh_private: str = field(repr=False)
    ssh_public: str


@dataclass(frozen=True, slots=True)
class SiteFacts:
    """All that the files are made of. `machines` are healthy; `trunks` the leaf–spine cables; `variables` the roles'.

    `fabric_tools` is the folder of the InfiniBand tools that show the lab's fabric; `known_hosts` holds the keys of
    hosts that run already, empty where none do. `virtual`: the machines are virtual metal; `uplink`: the interface that
    the site's own installer serves it on, with `os_image`; empty where the lab's MAAS installs them. `release`: the OS
    release of the hosts, which is this machine's own; empty where it is not known; `roce`: the adapters' link layer is
    Ethernet, and no plan of an InfiniBand fabric is written.
    """

    lab: str
    layout: Layout
    machines: Sequence[Machine]
    trunks: Sequence[tuple[SwitchPort, SwitchPort]]
    keys: Keys
    ca: bytes
    maas_port: int
    fabric_tools: Path
    variables: Mapping[str, object]
    known_hosts: str = ""
    virtual: bool = False
    uplink: str = ""
    os_image: str = ""
    release: str = ""
    roce: bool = False


def render(facts: SiteFacts) -> Files:
    """Path below the site directory → content and mode."""
    keys = facts.keys
    public = {
        "site.yml": _site(facts),
        "bmcs.csv": _bmcs(facts),
        "ethernet.csv": _ethernet(facts.machines),
        "lab-ca.pem": facts.ca.decode(),
        "suites/bootstrap.yml": _SUITE,
        ".gitignore": "*\n",
        "secrets/ssh_ed25519.pub": f"{keys.ssh_public}\n",
    }
    if not facts.roce:
        public["wiring.csv"] = _wiring(facts)
    public |= _hardware_files(facts)
    if facts.known_hosts:
        public["known_hosts"] = facts.known_hosts
    secret = {
        "secrets/bmc-password": f"{keys.bmc_password}\n",
        "secrets/maas-api-key": f"{keys.maas_api_key}\n",
        "secrets/ssh_ed25519": keys.ssh_private,
    }
    return {
        **{name: (text.encode(), 0o600) for name, text in secret.items()},
        **{name: (text.encode(), 0o644) for name, text in public.items()},
    }


def _site(facts: SiteFacts) -> str:
    templates = Environment(
        loader=PackageLoader("clusterctl_lab"),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 — YAML, not HTML; every value is the lab's own
        keep_trailing_newline=True,
    )
    return templates.get_template("site.yml.j2").render(
        lab=facts.lab,
        layout=facts.layout,
        bmc_user=facts.machines[0].bmc.user,
        skus=[name for name, _ in metal_skus(facts.machines)] if facts.virtual else _sku_names(facts.machines),
        virtual=facts.virtual,
        uplink=facts.uplink,
        boot_folder=BOOT_FOLDER,
        os_image=facts.os_image,
        maas_port=facts.maas_port,
        ssh_user=SSH_USER,
        fabric_tools=facts.fabric_tools,
        variables=facts.variables,
        release=facts.release,
        roce=facts.roce,
        gpu_image=GPU_IMAGE,
        container=CONTAINER,
        exporter=EXPORTER,
        at_once=2 * (os.cpu_count() or 1),
    )


def _sku_names(machines: Iterable[Machine]) -> list[str]:
    return list(dict.fromkeys(SKUS[machine.bmc.vendor] for machine in machines))


def _hardware_files(facts: SiteFacts) -> Mapping[str, str]:
    """Return the SKUs of the machines, and the limits and baselines that the SKUs name."""
    if facts.virtual:
        skus = {f"skus/{name}.yml": text for name, text in metal_skus(facts.machines)}
        return skus | _data_files("limits/lab.yml", "limits/lab-metal.yml")
    names = _sku_names(facts.machines)
    found = _data_files("limits/lab.yml", *(f"{kind}/{name}.yml" for name in names for kind in ("skus", "baselines")))
    if facts.roce:
        found |= {path: f"{text}hca_link_layer: Ethernet\n" for path, text in found.items() if path.startswith("skus/")}
    return found


def _data_files(*paths: str) -> dict[str, str]:
    data = files("clusterctl_lab") / "data"
    return {path: (data / path).read_text(encoding="utf-8") for path in paths}


def _bmcs(facts: SiteFacts) -> str:
    """An installer of the site's own must know the machines' network cards and addresses beforehand."""
    rows = [(m.name, m.bmc.address, m.serial, m.rack, m.unit) for m in facts.machines]
    columns = ("name", "bmc_address", "serial", "rack", "unit")
    if not facts.uplink:
        return _csv(columns, rows)
    more = ((*row, m.boot_mac, m.address) for row, m in zip(rows, facts.machines, strict=True))
    return _csv((*columns, "boot_mac", "address"), more)


def _wiring(facts: SiteFacts) -> str:
    cables = (*_host_cables(facts.machines), *_trunk_cables(facts.trunks))
    rows = ((*cable, f"CBL{number:06d}") for number, cable in enumerate(cables, start=1))
    return _csv((*WIRING, *WIRING_NOTES), rows)


def _host_cables(machines: Iterable[Machine]) -> Iterator[tuple[object, ...]]:
    for machine in machines:
        for hca in machine.hcas:
            if hca.cable is not None:
                end = hca.cable
                yield machine.name, hca.name, end.switch, end.port, machine.rack, machine.unit, HOST_CABLE_M


def _trunk_cables(trunks: Iterable[tuple[SwitchPort, SwitchPort]]) -> Iterator[tuple[object, ...]]:
    for near, far in trunks:
        yield near.switch, near.port, far.switch, far.port, "", "", SPINE_CABLE_M


def _ethernet(machines: Iterable[Machine]) -> str:
    """The Ethernet cables as delivered: the management cables of hosts and BMCs, and those of RoCE adapters."""
    return _csv((*WIRING, *PLACES), (row for machine in machines for row in _management_cables(machine)))


def _management_cables(machine: Machine) -> Iterator[tuple[object, ...]]:
    ends = (
        (ethernet.host_port(machine.index), ethernet.INTERFACE, machine.boot_mac),
        (ethernet.bmc_port(machine.index), "bmc", machine.bmc.mac),
    )
    for far, name, mac in ends:
        port = ethernet.port_name(far)
        yield far.switch, port, machine.name, name, machine.rack, SWITCH_UNIT, machine.rack, machine.unit, mac
    for hca in machine.hcas:
        if hca.ethernet and hca.cable is not None:
            place = ("", "", machine.rack, machine.unit)
            yield hca.cable.switch, ethernet.port_name(hca.cable), machine.name, f"ib{hca.rail}", *place, ""


def _csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return buffer.getvalue()

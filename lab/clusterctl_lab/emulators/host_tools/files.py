"""The files that make a lab host's tools: the programs, alike on all hosts, and the facts of each machine."""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Mapping
from dataclasses import asdict
from importlib.resources.abc import Traversable
from typing import Any

from clusterctl_lab import ethernet
from clusterctl_lab.disk_names import kernel_names
from clusterctl_lab.emulators.host_tools.host import mstflint
from clusterctl_lab.machine import Dimm, Drive, Hca, Machine, SwitchPort

_DOCKER = """\
[Unit]
Description=Stand-in for Docker of a rehearsal lab (starts no containers)

[Service]
ExecStart=/bin/sleep infinity
RuntimeDirectory=clusterctl-lab-docker
Restart=on-failure
"""

_FABRIC_MANAGER = """\
[Unit]
Description=Stand-in for NVIDIA's fabric manager of a rehearsal lab (there are no NVSwitches)

[Service]
ExecStart=/bin/sleep infinity
"""

_WANTED = """\
[Unit]
Wants=docker.service nvidia-fabricmanager.service
"""

_UNITS_DIR = "/usr/lib/systemd/system"


def unit_files() -> Mapping[str, tuple[bytes, int]]:
    """Absolute path → content and mode."""
    return {
        f"{_UNITS_DIR}/docker.service": (_DOCKER.encode(), 0o644),
        f"{_UNITS_DIR}/nvidia-fabricmanager.service": (_FABRIC_MANAGER.encode(), 0o644),
        f"{_UNITS_DIR}/multi-user.target.d/docker.conf": (_WANTED.encode(), 0o644),
    }


Files = Mapping[str, tuple[bytes, int]]
"""Absolute path in the host → content and mode."""

LIBRARY = "/usr/lib/clusterctl-lab/python"
ADAPTER_FIRMWARE = "/usr/lib/clusterctl-lab/adapter-firmware.bin"
NEWER_FIRMWARE = "28.99.1000"
"""The firmware images that can be written to the lab's adapters."""

CONTAINER = "dcgm-exporter"
"""The container of the lab's hosts, as the stand-in for Docker reports it."""
EXPORTER = "http://127.0.0.1:9400/metrics"
"""Where the stand-in for dcgm-exporter would answer."""
GPU_IMAGE = "clusterctl-lab/cuda:12.4.1-base"
"""An image that exists on every host."""
SERIAL_OF_ANOTHER = "LAB9999"
FACTS = "/etc/clusterctl-lab/machine.json"
_PACKAGE = "clusterctl_lab.emulators.host_tools.host"
_FOLDER = importlib.resources.files(_PACKAGE)
_ELSEWHERE = {
    "all_reduce_perf": "/usr/local/bin/all_reduce_perf",
    "dmidecode": "/usr/local/sbin/dmidecode",
    "ib_write_bw": "/usr/local/bin/ib_write_bw",
    "ibstat": "/usr/local/sbin/ibstat",
    "lldpcli": "/usr/local/sbin/lldpcli",
    "lldpctl": "/usr/local/sbin/lldpctl",
    "lsmod": "/usr/local/sbin/lsmod",
    "nv_fabricmanager": "/usr/bin/nv-fabricmanager",
    "nvidia_smi": "/usr/lib/clusterctl-lab/nvidia-smi",
    "nvme": "/usr/local/sbin/nvme",
    "perfquery": "/usr/local/sbin/perfquery",
    "smartctl": "/usr/local/sbin/smartctl",
    "swapon": "/usr/local/sbin/swapon",
    "turbostat": "/usr/local/sbin/turbostat",
    "zpool": "/usr/local/sbin/zpool",
}
"""Stand-ins outside /usr/local/bin, or with an underscore in their names. nvidia-smi has its own folder:
`/usr/bin/nvidia-smi`, which calls it, comes with the driver's package.
"""
_WITH_PACKAGES = frozenset({"all_reduce_perf"})
"""Stand-ins that import packages installed on the host; the others skip site packages and start in a third of the time.
"""
_REAL_IN_GUESTS = frozenset({"dmidecode", "findmnt", "lsblk", "swapon", "zpool"})
"""A virtual machine has what these look at; namespaces have the controller's."""


def programs() -> Mapping[str, str]:
    """Return the path of each stand-in by its module: every module of `host/` that defines `main`."""
    modules = sorted(entry.name.removesuffix(".py") for entry in _FOLDER.iterdir() if _is_program(entry))
    return {module: _ELSEWHERE.get(module, f"/usr/local/bin/{module.replace('_', '-')}") for module in modules}


def _is_program(entry: Traversable) -> bool:
    return entry.name.endswith(".py") and "\ndef main(" in entry.read_text(encoding="utf-8")


def lower_files() -> Files:
    """What all hosts share: the programs, the modules that they are made of, the units of their services."""
    return _files(programs())


def guest_tools() -> Files:
    """Return the same for virtual machines, where the real tools report everything except missing hardware."""
    return _files({module: path for module, path in programs().items() if module not in _REAL_IN_GUESTS}, kept=True)


def _files(programs: Mapping[str, str], *, kept: bool = False) -> Files:
    """Return the files; `kept` allows Python to cache compiled files."""
    files = {path: (_program(module, kept=kept), 0o755) for module, path in programs.items()}
    files.update(unit_files())
    files[ADAPTER_FIRMWARE] = (mstflint.image(mstflint.PSID, NEWER_FIRMWARE).encode(), 0o644)
    for entry in _FOLDER.iterdir():
        if entry.name.endswith(".py"):
            files[f"{LIBRARY}/{_PACKAGE.replace('.', '/')}/{entry.name}"] = (entry.read_bytes(), 0o644)
    return files


def machine_files(machine: Machine, *, own_kernel: bool = False) -> Files:
    """Return what the programs report of this machine: no BMC data, no secrets. `own_kernel`: it does not share a
    kernel.
    """
    facts = {**_facts(machine), "own_kernel": own_kernel}
    return {FACTS: (json.dumps(facts, indent=1).encode() + b"\n", 0o644)}


def _program(module: str, *, kept: bool) -> bytes:
    return (
        f"#!/usr/bin/python3 -I{'' if module in _WITH_PACKAGES else 'S'}\n"
        "# The rehearsal lab's stand-in for a tool whose hardware is not there.\n"
        "import sys\n"
        f"sys.path.insert(0, {LIBRARY!r})\n"
        f"sys.dont_write_bytecode = {not kept}\n"
        f"from {_PACKAGE}.{module} import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    ).encode()


def _facts(machine: Machine) -> dict[str, Any]:
    return {
        "name": machine.name,
        "serial": SERIAL_OF_ANOTHER if machine.system.is_another else machine.serial,
        "manufacturer": machine.manufacturer,
        "model": machine.model,
        "dimms": [_dimm(dimm) for dimm in machine.dimms],
        "cpus": machine.cpus,
        "working_cpus": machine.cpus - machine.system.cpu_disabled,
        "cores": machine.cores,
        "busy_mhz": machine.system.fixed_mhz or machine.busy_mhz,
        "kernel_log": list(machine.kernel_log),
        "containers": {CONTAINER: f"Up 3 hours ({'unhealthy' if machine.system.container_unhealthy else 'healthy'})"},
        "container_gpus": not machine.system.container_gpus_lost,
        "peermem": not machine.system.peermem_lost,
        "weak_power": machine.system.weak_power,
        "driver_lost": machine.system.driver_lost,
        "swap": machine.system.swap_on,
        "time_lost": machine.system.time_lost,
        "sums_wrong": machine.system.sums_wrong,
        "sums_stop": machine.system.sums_stop,
        "starts_fail": machine.system.starts_fail,
        "ethernet_errors": machine.system.ethernet_errors,
        "load_ethernet_errors": machine.system.load_ethernet_errors,
        "cpu_busy": machine.system.cpu_busy,
        "docker_open": machine.system.docker_open,
        "exporter_blind": machine.system.exporter_blind,
        "ofed_mixed": machine.system.ofed_mixed,
        "bluefield_dpu": machine.system.bluefield_dpu,
        "nvswitch_slow": machine.system.nvswitch_slow,
        "storage_slow": machine.system.storage_slow,
        "pool_degraded": machine.system.pool_degraded,
        "iommu": "DMA-FQ" if machine.system.iommu_translates else "identity",
        "gpus": [{**asdict(gpu), "index": index} for index, gpu in enumerate(machine.gpus)],
        "fans": [asdict(fan) for fan in machine.fans],
        "hcas": [_hca(machine, hca) for hca in machine.hcas],
        "network": _network(machine),
        "disks": [_disk(drive, name) for drive, name in zip(machine.drives, kernel_names(machine), strict=True)],
    }


def _disk(drive: Drive, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "serial": drive.serial,
        "model": drive.model,
        "size_bytes": drive.size_bytes,
        "failed": drive.failed,
        "used_percent": drive.used_percent,
        "slow": drive.slow,
        "boot": drive.boot,
        "pending_sectors": drive.pending_sectors,
        "lost_block": drive.lost_block,
    }


def _dimm(dimm: Dimm) -> dict[str, Any]:
    """Return the module with its SMBIOS locator: Dell's Redfish `DIMM A1` is `A1` in SMBIOS. Errors are those of the
    last hour.
    """
    return {
        "locator": dimm.slot.removeprefix("DIMM "),
        "size_mib": dimm.size_mib,
        "corrected": dimm.corrected_per_hour,
        "load_corrected": dimm.load_corrected,
        "uncorrected": int(dimm.failed),
        "flips": dimm.flips,
        "seen": dimm.seen,
    }


def _network(machine: Machine) -> dict[str, Any]:
    neighbour = ethernet.neighbour(machine)
    return {"interface": ethernet.INTERFACE, "mac": machine.boot_mac, "switch": _lldp(neighbour)}


def _lldp(neighbour: SwitchPort | None) -> dict[str, str] | None:
    """Return what the switch at the other end sends by LLDP; None where no switch is there."""
    if neighbour is None:
        return None
    return {
        "name": neighbour.switch,
        "mac": ethernet.chassis_mac(neighbour.switch),
        "port": ethernet.port_name(neighbour),
    }


def _hca(machine: Machine, hca: Hca) -> dict[str, Any]:
    return {
        "name": hca.name,
        "guid": hca.guid,
        "pci": hca.pci,
        "firmware": hca.firmware,
        "psid": hca.psid,
        "rate_gbps": hca.rate_gbps,
        "pcie_width": hca.pcie_width,
        "switch_width": hca.switch_width,
        "switch_redirects": hca.switch_redirects,
        "rx_dbm": hca.rx_dbm,
        "module_firmware": hca.module_firmware,
        **asdict(hca.errors),
        "configured": hca.configured,
        "gpu_path_slow": hca.gpu_path_slow,
        "load_hot": hca.load_hot,
        "load_slow": hca.load_slow,
        "plugged": hca.cable is not None,
        "interface": f"ib{hca.rail}",
        "lid": 8 * machine.index + hca.rail + 16,
        "ethernet": hca.ethernet,
        "mac": hca.mac,
        "switch": _lldp(hca.cable) if hca.ethernet else None,
    }

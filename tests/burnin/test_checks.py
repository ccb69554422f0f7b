"""Every check: healthy, broken in each way that it knows, and not measured."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.node import Serial
from clusterctl_burnin.check import Expected
from clusterctl_burnin.probe import ProbeResult, Status
from clusterctl_burnin.registry import CHECKS
from tests.burnin.kit import SKU, Edit, expected, healthy_text, readings, result
from tests.formats.host_networks import BONDED

FAIL, WARN, INCONCLUSIVE = Verdict.FAIL, Verdict.WARN, Verdict.INCONCLUSIVE


def swap(old: str, new: str, count: int = 1) -> Edit:
    """The healthy text with `old` replaced; it must have been there."""

    def edit(text: str) -> str:
        assert old in text
        return text.replace(old, new, count)

    return edit


def line(key: str, value: str, occurrence: int = 0) -> Edit:
    """`key : value` of nvidia-smi -q set to another value, at its n-th occurrence."""

    def edit(text: str) -> str:
        lines = text.splitlines(keepends=True)
        at = [i for i, one in enumerate(lines) if one.strip().startswith(key) and " : " in one][occurrence]
        lines[at] = lines[at].split(" : ")[0] + f" : {value}\n"
        return "".join(lines)

    return edit


def without_second_gpu(text: str) -> str:
    second = text.index("GPU 00000000:43")
    return text[:second].replace("GPUs                             : 2", "GPUs                             : 1")


def append(text: str) -> Edit:
    return lambda healthy: healthy + text


def uplink(old: str, new: str) -> Edit:
    """The first switch's port that looks up, edited."""

    def edit(text: str) -> str:
        head, switch, tail = text.partition("0000:16:00.0 ")
        assert old in tail
        return head + switch + tail.replace(old, new, 1)

    return edit


def acs(port: str) -> Edit:
    """Requests are redirected in that port, and in both root ports, where it does not matter."""

    def edit(text: str) -> str:
        devices = text.split("\n\n")
        return "\n\n".join(
            d.replace("ReqRedir- ", "ReqRedir+ ") if f"{port} " in d or "Root Port" in d else d for d in devices
        )

    return edit


@dataclass(frozen=True)
class Case:
    """A broken node and the one bad finding that its check must report."""

    check: str
    verdict: Verdict
    cause: str
    subject: str = "node"
    broken: dict[str, ProbeResult | Edit] = field(default_factory=dict)
    expected: Expected = field(default_factory=expected)


XID = "[Fri Jan  2 03:04:05 2026] NVRM: Xid (PCI:0000:{}): {}\n"
STRAY = '[{"dst":"default","gateway":"fe80::1","dev":"storage","protocol":"ra","flags":[]}]'


def storage_mtu(text: str) -> str:
    links = json.loads(text)
    next(link for link in links if link["ifname"] == "storage")["mtu"] = 1500
    return json.dumps(links)


def host_os(**fields: object) -> Edit:
    return lambda text: json.dumps(json.loads(text) | fields)


def dns_answers(wanted: list[str], *answers: tuple[str, str, str]) -> Edit:
    rows = [dict(zip(("server", "name", "outcome"), row, strict=True)) for row in answers]
    servers = list(dict.fromkeys(row[0] for row in answers))
    return lambda _: json.dumps({"wanted": wanted, "servers": servers, "answers": rows})


def container(state: str, status: str) -> Edit:
    row = {"name": "dcgm-exporter", "state": state, "status": status}
    return lambda _: json.dumps({"wanted": ["dcgm-exporter"], "containers": [row]})


def gpus_in(**fields: object) -> Edit:
    return lambda text: json.dumps(json.loads(text) | fields)


NO_RUNTIME = """docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]]

Run 'docker run --help' for more information
"""
JAMMY = {"VERSION_CODENAME": "jammy", "PRETTY_NAME": "Ubuntu 22.04.4 LTS"}

OFFLINE = '"0-5"}, {"field": "Off-line CPU(s) list:", "data": "6,7"'
HALF = '"0-3"}, {"field": "Off-line CPU(s) list:", "data": "4-7"'
SOCKETS = '}, {"field": "Socket(s):", "data": "%d"'
CASES = [
    Case("cpu_frequency", INCONCLUSIVE, "1 of 8 CPUs", broken={"turbostat": lambda t: "".join(t.splitlines(True)[:3])}),
    Case("cpu_frequency", INCONCLUSIVE, "disagree", broken={"lscpu": swap('"0-7"', '"0-5"')}),
    Case("cpu_count", WARN, "does not use 2 of 8 CPUs", broken={"lscpu": swap('"0-7"', OFFLINE)}),
    Case("cpu_count", INCONCLUSIVE, "as many as a whole processor", broken={"lscpu": swap('"0-7"', HALF)}),
    Case("cpu_count", WARN, "does not use 4 of 8 CPUs", broken={"lscpu": swap('"0-7"', HALF + SOCKETS % 2)}),
    Case("cpu_count", FAIL, "only 1 of 2 processors are in use", broken={"lscpu": swap('"0-7"', HALF + SOCKETS % 1)}),
    Case("cpu_count", FAIL, "40 of 48 cores", "CPU1", {"processors": swap("Core Enabled: 48", "Core Enabled: 40")}),
    Case(
        "nvme_health", INCONCLUSIVE, "2 of 9 NVMe", expected=expected(sku=dataclasses.replace(SKU, data_drive_count=9))
    ),
    Case("mounts", INCONCLUSIVE, "fstab is empty", broken={"fstab": lambda _: "\n"}),
    Case("disk_space", INCONCLUSIVE, "2 of 3 paths", broken={"df": lambda t: "".join(t.splitlines(True)[:3])}),
    Case("os_release", FAIL, "runs Ubuntu 22.04.4 LTS, not", broken={"host_os": host_os(os_release=JAMMY)}),
    Case(
        "os_release",
        FAIL,
        "not run the kernel that the site wants",
        broken={"host_os": host_os(wanted={"release": "bookworm", "kernel": "6.1.0-27-amd64"})},
    ),
    Case("os_release", WARN, "next boot starts another", broken={"host_os": host_os(next_boot="6.1.0-29-amd64")}),
    Case("os_release", WARN, "no longer installed", broken={"host_os": host_os(installed=["6.1"], next_boot=None)}),
    Case("os_release", INCONCLUSIVE, "no /etc/os-release", broken={"host_os": host_os(os_release=None)}),
    Case("os_release", INCONCLUSIVE, "no VERSION_CODENAME", broken={"host_os": host_os(os_release={"ID": "x"})}),
    Case("os_release", INCONCLUSIVE, "not understood", broken={"host_os": host_os(kernel="")}),
    Case(
        "dns",
        FAIL,
        "does not answer",
        "name server 10.20.0.3",
        {"name_answers": dns_answers(["a.b"], ("10.20.0.2", "a.b", "address"), ("10.20.0.3", "a.b", "silent"))},
    ),
    Case(
        "dns",
        FAIL,
        "no address for a.b",
        "name server 10.20.0.2",
        {"name_answers": dns_answers(["a.b"], ("10.20.0.2", "a.b", "nxdomain"))},
    ),
    Case(
        "dns",
        FAIL,
        "no address for node001",
        "name server 10.20.0.2",
        {"name_answers": dns_answers([], ("10.20.0.2", "node001", "refused"))},
    ),
    Case("dns", FAIL, "no name server to ask for a.b", broken={"name_answers": dns_answers(["a.b"])}),
    Case(
        "docker_gpu",
        FAIL,
        "could not select device driver",
        broken={"container_gpus": gpus_in(code=125, output="", complaint=NO_RUNTIME)},
    ),
    Case("docker_gpu", FAIL, "sees 0 of 2 GPUs", broken={"container_gpus": gpus_in(output="No devices found.\n")}),
    Case("docker_gpu", INCONCLUSIVE, "did not answer within 45", broken={"container_gpus": gpus_in(code=124)}),
    Case(
        "docker_gpu",
        INCONCLUSIVE,
        "is not on the host",
        broken={"container_gpus": gpus_in(code=125, image_absent=True, complaint="docker: No such image: x")},
    ),
    Case(
        "monitoring_containers",
        FAIL,
        "the container does not exist",
        "container dcgm-exporter",
        {"containers": lambda _: '{"wanted": ["dcgm-exporter"], "containers": []}'},
    ),
    Case(
        "monitoring_containers",
        FAIL,
        "is exited: Exited (137)",
        "container dcgm-exporter",
        {"containers": container("exited", "Exited (137) 2 minutes ago")},
    ),
    Case(
        "monitoring_containers",
        FAIL,
        "is unhealthy",
        "container dcgm-exporter",
        {"containers": container("running", "Up 3 hours (unhealthy)")},
    ),
    Case(
        "monitoring_containers",
        INCONCLUSIVE,
        "starting",
        "container dcgm-exporter",
        {"containers": container("running", "Up 2 seconds (health: starting)")},
    ),
    Case("identity", FAIL, "another machine", broken={"system_serial": swap("LAB0001", "LAB0002")}),
    Case("identity", FAIL, "host name is another", expected=expected(name="node002")),
    Case("identity", INCONCLUSIVE, "reports no serial", broken={"system_serial": swap("LAB0001\n", "# firmware\n")}),
    Case("clock_offset", FAIL, "ahead", expected=expected(received=expected().sent + timedelta(seconds=2))),
    Case("clock_offset", FAIL, "behind", expected=expected(sent=expected().sent + timedelta(hours=1))),
    Case("nvidia_driver", FAIL, "not have the configured version", expected=expected(driver_version="560.1")),
    Case(
        "nvidia_driver",
        FAIL,
        "kernel module",
        broken={"nvidia_smi": result("nvidia_smi", "it couldn't communicate with the NVIDIA driver.", rc=9)},
    ),
    Case("gpu_count", FAIL, "1 of 2 GPUs answer; absent: Video.Slot.22-1", broken={"nvidia_smi": without_second_gpu}),
    Case("gpu_count", FAIL, "0 of 2", broken={"nvidia_smi": result("nvidia_smi", "No devices were found\n", rc=6)}),
    Case("gpu_count", FAIL, "model is not the SKU's", "gpu 1", {"nvidia_smi": line("Product Name", "NVIDIA A100", 1)}),
    Case("gpu_count", INCONCLUSIVE, "model", broken={"nvidia_smi": line("Product Name", "Unknown Error", 1)}),
    Case(
        "gpu_ecc",
        FAIL,
        "ECC is off",
        "gpu 0",
        {
            "nvidia_smi": swap(
                "ECC Mode\n        Current                           : En",
                "ECC Mode\n        Current                           : Dis",
            )
        },
    ),
    Case("gpu_ecc", FAIL, "uncorrectable memory errors", "gpu 0", {"nvidia_smi": line("DRAM Uncorrectable", "2", 0)}),
    Case("gpu_ecc", FAIL, "more uncorrectable errors", "gpu 0", {"nvidia_smi": line("SRAM Threshold Exceeded", "Yes")}),
    Case("gpu_ecc", WARN, "earlier in its life", "gpu 0", {"nvidia_smi": line("SRAM Uncorrectable Parity", "1", 1)}),
    Case("gpu_ecc", INCONCLUSIVE, "does not report", "gpu 1", {"nvidia_smi": line("DRAM Uncorrectable", "N/A", 2)}),
    Case("gpu_ecc", INCONCLUSIVE, "1 of 2 GPUs", broken={"nvidia_smi": without_second_gpu}),
    Case("gpu_row_remap", FAIL, "next reset", "gpu 1", {"nvidia_smi": line("Pending", "Yes", 5)}),
    Case("gpu_row_remap", FAIL, "spare row", "gpu 0", {"nvidia_smi": line("Remapping Failure", "Yes")}),
    Case("gpu_row_remap", FAIL, "too many", "gpu 0", {"nvidia_smi": line("Uncorrectable Error", "513")}),
    Case("gpu_idle", FAIL, "does not name", "gpu 0", {"nvidia_smi": line("Used", "4000 MiB")}),
    Case(
        "gpu_idle",
        FAIL,
        "runs python3",
        "gpu 0",
        {
            "nvidia_smi": swap(
                "    Processes                             : None",
                "    Processes\n        Process ID  : 7\n            Name   : python3",
            )
        },
    ),
    Case("gpu_idle", FAIL, "the GPU is hot", "gpu 1", {"nvidia_smi": line("GPU Current Temp", "90 C", 1)}),
    Case("gpu_idle", FAIL, "memory is hot", "gpu 0", {"nvidia_smi": line("Memory Current Temp", "96 C")}),
    Case("gpu_idle", INCONCLUSIVE, "temperature", "gpu 0", {"nvidia_smi": line("GPU Current Temp", "[Unknown Error]")}),
    Case("pcie_width", FAIL, "GPU's PCIe link", "gpu 0", {"nvidia_smi": line("Current", "8x", 2)}),
    Case(
        "pcie_width",
        FAIL,
        "adapter's PCIe link",
        "hca 0000:40:00.0",
        {"lspci_mellanox": lambda t: t[:300] + t[300:].replace("(ok), Width x16 (ok)", "(ok), Width x8 (downgraded)")},
    ),
    Case(
        "pcie_width",
        FAIL,
        "slower",
        "hca 0000:18:00.0",
        {"lspci_mellanox": swap("LnkSta:\tSpeed 32GT/s", "LnkSta:\tSpeed 16GT/s")},
    ),
    Case("pcie_width", INCONCLUSIVE, "does not show", "hca 0000:18:00.0", {"lspci_mellanox": swap("LnkSta", "Other")}),
    Case("pcie_width", INCONCLUSIVE, "0 of 2 adapters", broken={"lspci_mellanox": lambda _: ""}),
    Case(
        "pcie_chain",
        FAIL,
        "above gpu 0000:1b:00.0, hca 0000:18:00.0",
        "pci 0000:16:00.0",
        {"lspci": uplink("Width x16 (ok)", "Width x8 (downgraded)")},
    ),
    Case(
        "pcie_chain",
        FAIL,
        "slower",
        "pci 0000:16:00.0",
        {"lspci": uplink("LnkSta:\tSpeed 32GT/s", "LnkSta:\tSpeed 16GT/s")},
    ),
    Case(
        "pcie_chain", INCONCLUSIVE, "does not show the link", "pci 0000:16:00.0", {"lspci": uplink("LnkSta", "Other")}
    ),
    Case("pcie_chain", INCONCLUSIVE, "1 of 2 GPUs", broken={"lspci": swap("43:00.0 3D controller", "43:00.0 Bridge")}),
    Case(
        "pcie_chain", INCONCLUSIVE, "connected to", "gpu 0000:1b:00.0", {"lspci": swap("secondary=1b", "secondary=77")}
    ),
    Case(
        "pcie_chain",
        INCONCLUSIVE,
        "no root port",
        "gpu 0000:1b:00.0",
        {"lspci": swap("Root Port", "PCI-Express to PCI")},
    ),
    Case(
        "pcie_chain",
        INCONCLUSIVE,
        "no PCI Express capability",
        broken={"lspci": lambda t: t.replace("Express (v2)", "<access denied>")},
    ),
    Case("gpudirect_rdma", FAIL, "redirect traffic", broken={"lspci": acs("17:02.0")}),
    Case(
        "gpudirect_rdma",
        FAIL,
        "open ones",
        broken={"lsmod": swap("nvidia_peermem  ", "other_module "), "gpu_sharing": swap("Open Kernel", "Kernel")},
    ),
    Case(
        "gpudirect_rdma",
        FAIL,
        "Linux 5.4 is too old",
        broken={"lsmod": swap("nvidia_peermem  ", "other_module "), "gpu_sharing": swap("6.1.0", "5.4.0")},
    ),
    Case(
        "gpudirect_rdma",
        INCONCLUSIVE,
        "report its kernel modules",
        broken={"lsmod": swap("nvidia_peermem  ", "other_module "), "gpu_sharing": swap("NVRM version", "x")},
    ),
    Case("gpudirect_rdma", FAIL, "kernel module is not loaded", broken={"lsmod": lambda _: "Module  Size  Used by\n"}),
    Case(
        "gpudirect_rdma",
        FAIL,
        "IOMMU translates what gpu 0000:1b:00.0",
        broken={"gpu_sharing": swap("27/type identity", "27/type DMA-FQ")},
    ),
    Case("gpudirect_rdma", INCONCLUSIVE, "IOMMU group 27", "gpu 0000:1b:00.0", {"gpu_sharing": swap("/27/", "/28/")}),
    Case(
        "gpudirect_rdma",
        INCONCLUSIVE,
        "does not show what",
        broken={"lspci": swap("Express (v2) Downstream", "denied")},
    ),
    Case(
        "gpudirect_rdma", INCONCLUSIVE, "1 of 2 GPUs", broken={"lspci": swap("43:00.0 3D controller", "43:00.0 Bridge")}
    ),
    Case("gpu_topology", FAIL, "lacks NVLinks to", "gpu 0", {"gpu_topology": lambda t: t.replace("NV18", "NV16")}),
    Case(
        "gpu_topology", FAIL, "own PCIe switch", "gpu 1", {"gpu_topology": lambda t: t.replace("SYS\tPIX", "SYS\tNODE")}
    ),
    Case(
        "gpu_topology", INCONCLUSIVE, "1 of 2 adapters", broken={"gpu_topology": swap("NIC1: mlx5_1", "NIC1: mlx5_9")}
    ),
    Case("gpu_topology", INCONCLUSIVE, "not understood", broken={"gpu_topology": swap("NV18", "BLUE")}),
    Case("gpu_topology", INCONCLUSIVE, "no row for GPU1", broken={"gpu_topology": swap("\nGPU1", "\nx")}),
    Case(
        "gpu_topology",
        INCONCLUSIVE,
        "2 of 4 cells",
        broken={"gpu_topology": swap("NV18\tPIX\tSYS\t0-55,112-167\t0\t\tN/A", "NV18")},
    ),
    Case("gpu_temperature", FAIL, "much hotter", "gpu 1", {"nvidia_smi": line("GPU Current Temp", "60 C", 1)}),
    Case(
        "gpu_temperature",
        INCONCLUSIVE,
        "the GPU's temperature",
        "gpu 1",
        {"nvidia_smi": line("GPU Current Temp", "N/A", 1)},
    ),
    Case("gpu_temperature", INCONCLUSIVE, "1 of 2 GPUs", broken={"nvidia_smi": without_second_gpu}),
    Case("gpu_persistence", FAIL, "is off", "gpu 1", {"nvidia_smi": line("Persistence Mode", "Disabled", 1)}),
    Case("gpu_persistence", INCONCLUSIVE, "1 of 2 GPUs", broken={"nvidia_smi": without_second_gpu}),
    Case("gpu_persistence", INCONCLUSIVE, "persistence mode", "gpu 0", {"nvidia_smi": line("Persistence Mode", "N/A")}),
    Case("gpu_firmware", FAIL, "VBIOS differs from most", "gpu 1", {"nvidia_smi": line("VBIOS Version", "1.2", 1)}),
    Case("gpu_firmware", FAIL, "InfoROM differs from most", "gpu 1", {"nvidia_smi": line("Image Version", "1.2", 1)}),
    Case(
        "gpu_firmware", FAIL, "does not have the driver", "gpu 0", {"nvidia_smi": line("GSP Firmware Version", "535.1")}
    ),
    Case("gpu_firmware", INCONCLUSIVE, "the GPU's VBIOS", "gpu 0", {"nvidia_smi": line("VBIOS Version", "N/A")}),
    Case("gpu_firmware", INCONCLUSIVE, "1 of 2 GPUs", broken={"nvidia_smi": without_second_gpu}),
    Case("fabric_manager", FAIL, "service is failed", broken={"fabric_manager_service": lambda _: "failed\n"}),
    Case("fabric_manager", FAIL, "have different versions", broken={"fabric_manager_version": swap("550", "535")}),
    Case("fabric_manager", FAIL, "has not joined", "gpu 1", {"nvidia_smi": line("State", "In Progress", 1)}),
    Case("fabric_manager", FAIL, "has not joined", "gpu 0", {"nvidia_smi": line("Status", "Failure", 0)}),
    Case("fabric_manager", INCONCLUSIVE, "state of the GPU's fabric", "gpu 0", {"nvidia_smi": line("State", "N/A")}),
    Case("fabric_manager", INCONCLUSIVE, "1 of 2 GPUs", broken={"nvidia_smi": without_second_gpu}),
    Case(
        "nvlink", FAIL, "are down", "gpu 1", {"nvlink": lambda t: t[::-1].replace("s/BG 265.62", ">evitcani<", 1)[::-1]}
    ),
    Case("nvlink", FAIL, "1 NVLinks of the GPU are slow", "gpu 0", {"nvlink": swap("26.562", "12.5")}),
    Case("nvlink", INCONCLUSIVE, "1 of 2", broken={"nvlink": lambda t: t[: t.index("GPU 1")]}),
    Case(
        "hca_count",
        FAIL,
        "1 of 2 InfiniBand adapters answer: mlx5_0",
        broken={"ibstat": lambda t: t[: t.index("CA 'mlx5_1'")]},
    ),
    Case(
        "hca_link",
        FAIL,
        "no link partner",
        "mlx5_0",
        {"ibstat": lambda t: t.replace("Active", "Down", 1).replace("LinkUp", "Polling", 1)},
    ),
    Case("hca_link", FAIL, "no subnet manager", "mlx5_0", {"ibstat": swap("Active", "Initializing")}),
    Case(
        "hca_link",
        FAIL,
        "disabled",
        "mlx5_0",
        {"ibstat": lambda t: t.replace("Active", "Down", 1).replace("LinkUp", "Disabled", 1)},
    ),
    Case("hca_link", FAIL, "another rate", "mlx5_0", {"ibstat": swap("Rate: 400", "Rate: 200")}),
    Case("hca_link", INCONCLUSIVE, "1 of 2 adapters", broken={"ibstat": lambda t: t[: t.index("CA 'mlx5_1'")]}),
    Case(
        "kernel_log", FAIL, "Xid 79", "gpu 0", {"dmesg": append(XID.format("1b:00", "79, GPU has fallen off the bus."))}
    ),
    Case("kernel_log", FAIL, "Xid 79", "gpu 0000:99:00.0", {"dmesg": append(XID.format("99:00", "79, x"))}),
    Case("kernel_log", WARN, "2 times", "gpu 1", {"dmesg": append(XID.format("43:00", "13, Graphics") * 2)}),
    Case(
        "kernel_log",
        FAIL,
        "Reboot",
        "gpu 0",
        {"dmesg": append(XID.format("1b:00", "154, changed from 0x0 (None) to 0x2 (Node Reboot Required)"))},
    ),
    Case("kernel_log", INCONCLUSIVE, "not in the table", "gpu 0", {"dmesg": append(XID.format("1b:00", "9999, new"))}),
    Case(
        "kernel_log",
        FAIL,
        "SXid 20034",
        "nvswitch 0000:06:00.0",
        {"dmesg": append("[1] nvidia-nvswitch0: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 30\n")},
    ),
    Case(
        "kernel_log",
        WARN,
        "SXid 20034",
        "nvswitch 0000:06:00.0",
        {"dmesg": append("[1] nvidia-nvswitch0: SXid (PCI:0000:06:00.0): 20034, Non-fatal, Link 30\n")},
    ),
    Case(
        "kernel_log",
        FAIL,
        "a 32.0 GT/s PCIe x8 link limits",
        "hca 0000:18:00.0",
        {
            "dmesg": append(
                "[1] mlx5_core 0000:18:00.0: 252.056 Gb/s available PCIe bandwidth, limited by 32.0 GT/s PCIe x8 link at 0000:15:01.0 (capable of 504.112 Gb/s with 32.0 GT/s PCIe x16 link)\n"
            )
        },
    ),
    Case(
        "kernel_log",
        FAIL,
        "is dead",
        "hca 0000:18:00.0",
        {"dmesg": append("[1] mlx5_core 0000:18:00.0: device's health compromised - reached miss count\n")},
    ),
    Case(
        "cpu_count",
        FAIL,
        "1 of 2 processors work: CPU1 Populated, Disabled By BIOS",
        broken={"processors": swap("Populated, Enabled", "Populated, Disabled By BIOS")},
    ),
    Case(
        "cpu_count",
        FAIL,
        "1 of 2 processors work: CPU1 Unpopulated",
        broken={"processors": swap("Populated, Enabled", "Unpopulated")},
    ),
    Case(
        "memory_size",
        FAIL,
        "empty slots: A1",
        broken={"memory_modules": swap("Size: 64 GB", "Size: No Module Installed")},
    ),
    Case("memory_size", FAIL, "disabled a module", broken={"meminfo": swap("266338304", "200000000")}),
    Case("disk_space", FAIL, "nearly full", "/", {"df": lambda t: t.replace("426000000000", "426")}),
    Case("swap_off", FAIL, "/dev/sda2", broken={"swapon": lambda _: "/dev/sda2 1073741824\n"}),
    Case(
        "node_exporter",
        FAIL,
        "does not answer",
        broken={"node_exporter": result("node_exporter", "", rc=1, stderr="Connection refused")},
    ),
    Case("node_exporter", FAIL, "another host", broken={"node_exporter": swap("node001", "node009")}),
    Case(
        "failed_units",
        WARN,
        "logrotate",
        "logrotate.service",
        {"failed_units": lambda _: "logrotate.service loaded failed failed x\n"},
    ),
    Case(
        "failed_units",
        FAIL,
        "fabricmanager",
        "nvidia-fabricmanager.service",
        {"failed_units": lambda _: "nvidia-fabricmanager.service loaded failed failed x\n"},
    ),
    Case("host_network", FAIL, "10.20.0.17/16 is missing", "mgmt0", {"ip_addr": swap("10.20.0.17", "10.20.0.18")}),
    Case("host_network", FAIL, "the MTU is another", "storage", {"ip_addr": storage_mtu}),
    Case("host_network", FAIL, "of another mode", "bond0", expected=expected(network=BONDED)),
    Case(
        "host_network", FAIL, "asks other name servers", "name servers", {"resolved_conf": swap("10.20.0.2", "8.8.8.8")}
    ),
    Case("host_network", FAIL, "does not name", "default route", {"ip_route_6": lambda _: STRAY}),
    Case("host_network", FAIL, "10.20.0.1 is missing", "default route", {"ip_route": lambda _: "[]"}),
    Case(
        "host_network",
        INCONCLUSIVE,
        "host is unknown: no port",
        expected=expected(network=UsageError("no port", remedy="x")),
    ),
]


@pytest.mark.parametrize("check", sorted(CHECKS))
def test_a_healthy_node_passes_with_one_finding(check: str) -> None:
    """One PASS that names the limits and the evidence it rests on, and has no remedy."""
    (finding,) = CHECKS[check].findings(readings(), expected())
    assert (finding.verdict, finding.check, finding.remedy) == (Verdict.PASS, check, "")
    assert finding.limits == expected().limits.digest
    assert len(finding.evidence) == len(CHECKS[check].probes)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.check}-{case.cause}".replace(" ", "_"))
def test_a_broken_node_is_reported_with_cause_and_remedy(case: Case) -> None:
    """The right verdict on the right part, in words, with something to do; and nothing else passes for it."""
    found = CHECKS[case.check].findings(readings(**case.broken), case.expected)
    bad = [finding for finding in found if finding.verdict is not Verdict.PASS]
    findings = [f for f in bad if f.subject == case.subject and case.cause in f.cause]
    assert findings, [str(f) for f in found]
    assert findings[0].verdict is case.verdict
    assert findings[0].remedy
    assert not any(finding.verdict is Verdict.PASS for finding in found)


@pytest.mark.parametrize(("check", "probe"), [(c.name, p.name) for c in CHECKS.values() for p in c.probes])
@pytest.mark.parametrize("how", ["missing", "timeout", "garbage", "silent", "absent", "crashed"])
def test_what_was_not_measured_never_passes(check: str, probe: str, how: str) -> None:
    """Tool missing, hung, printing nonsense, printing nothing, failing, or the probe not run at all: INCONCLUSIVE."""
    answers = {
        "missing": result(probe, "", rc=None, status=Status.MISSING),
        "timeout": result(probe, healthy_text(probe)[:40], rc=None, status=Status.TIMEOUT),
        "garbage": result(probe, "%$ what is this\n\x00\n"),
        "silent": result(probe, ""),
        "crashed": result(probe, "", rc=139, stderr="Segmentation fault"),
    }
    good = readings()
    probes = {name: answer for name, answer in good.probes.items() if name != probe}
    if how != "absent":
        probes[probe] = answers[how]
    findings = CHECKS[check].findings(dataclasses.replace(good, probes=probes), expected())
    if may_be_silent(check, probe, how):
        return
    verdicts = {finding.verdict for finding in findings}
    allowed = {Verdict.INCONCLUSIVE, Verdict.FAIL} if is_an_answer(probe, how) else {Verdict.INCONCLUSIVE}
    assert verdicts <= allowed, [str(f) for f in findings]
    assert all(finding.remedy for finding in findings)


def may_be_silent(check: str, probe: str, how: str) -> bool:
    """Two tools print nothing when all is well, and an empty fstab asks for nothing; a check that runs nvidia-smi -q as
    the second of two probes needs it only to name GPUs.
    """
    names_gpus = [one.name for one in CHECKS[check].probes][1:] == ["nvidia_smi"]
    return (how == "silent" and probe in ("swapon", "failed_units", "fstab")) or (names_gpus and probe == "nvidia_smi")


def is_an_answer(probe: str, how: str) -> bool:
    """A refused connection is an answer; so is an identity that is not the node's."""
    return (probe, how) in {("node_exporter", "crashed"), ("system_serial", "garbage")}


def test_a_gpu_that_the_bmc_never_reported_is_still_counted() -> None:
    """Without an inventory the count is judged all the same, but no part can be named."""
    found = CHECKS["gpu_count"].findings(readings(nvidia_smi=without_second_gpu), expected(inventory=None))
    assert [(f.verdict, "absent" in f.cause) for f in found] == [(Verdict.FAIL, False)]


def test_findings_of_a_gpu_carry_its_serial() -> None:
    """A technician replaces a serial number, not an index."""
    found: tuple[Finding, ...] = CHECKS["gpu_ecc"].findings(
        readings(nvidia_smi=line("DRAM Uncorrectable", "2", 0)), expected(serial=Serial("LAB0001"))
    )
    assert found[0].serial == "165000010000"


def test_a_part_number_names_the_family() -> None:
    """Where a BMC identifies HCAs by part number, and the SKU does too, the check knows them by their family."""
    known = expected()
    by_number = dataclasses.replace(known, sku=dataclasses.replace(known.sku, hca_model="MCX75310AAS-NEAT"))
    findings = CHECKS["pcie_width"].findings(readings(), by_number)
    assert [finding.verdict for finding in findings] == [Verdict.PASS]

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import replace
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from clusterctl.formats.host.block_devices import LSBLK, below, parse_lsblk, whole_disks
from clusterctl.formats.host.cpu_memory import parse_memory_modules, parse_processors
from clusterctl.formats.host.kernel_log import parse_dmesg, xids
from clusterctl.formats.host.mounts import parse_findmnt
from clusterctl.formats.host.pci import parse_lspci
from clusterctl.formats.infiniband.adapters import parse_ibstat
from clusterctl.formats.infiniband.perftest import parse_bandwidth
from clusterctl.formats.nvidia.nvidia_smi import parse_query
from clusterctl.formats.nvidia.nvlink import parse_nvlink_status
from clusterctl.steps.install.confirm import FINDMNT
from clusterctl_lab.emulators.host_tools import lower_files, machine_files
from clusterctl_lab.emulators.host_tools.host import facts
from clusterctl_lab.emulators.host_tools.host.boot import uptime
from clusterctl_lab.healthy import build
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import Machine
from lab.tests.emulators.host_tools.tools_kit import DRIVER, ToolBox
from tests.ports import reserve_port

SECRET = "a-password-of-the-bmc"


@pytest.fixture
def machine() -> Machine:
    return build(3, Layout(IPv4Network("10.88.0.0/16")), SECRET)


@pytest.fixture
def box(tmp_path: Path, machine: Machine) -> ToolBox:
    return ToolBox(tmp_path, machine)


def test_the_machines_facts_hold_no_secret(machine: Machine) -> None:
    """Nothing that the BMC knows to keep is laid into the host."""
    files = machine_files(machine)
    assert all(SECRET.encode() not in content for content, _ in files.values())
    assert "bmc" not in json.loads(files["/etc/clusterctl-lab/machine.json"][0])


def test_the_tools_know_every_fact_and_no_other(machine: Machine) -> None:
    """The lab writes the fields that the tools' classes name: no dataclass checks that. GPUs and fans are the model's."""
    raw = json.loads(machine_files(machine)[facts.FACTS][0])
    kinds = {"hcas": facts.Hca, "dimms": facts.Dimm, "disks": facts.Disk}
    assert raw.keys() == facts.Facts.__annotations__.keys()
    assert {name: raw[name][0].keys() for name in kinds} == {
        name: kind.__annotations__.keys() for name, kind in kinds.items()
    }
    assert raw["network"].keys() == facts.Network.__annotations__.keys()
    assert raw["network"]["switch"].keys() == facts.EthernetSwitch.__annotations__.keys()


def test_programs_are_executable_and_modules_are_not() -> None:
    """Every program has its mode and its interpreter."""
    for path, (content, mode) in lower_files().items():
        assert (mode == 0o755) == content.startswith(b"#!/usr/bin/python3"), path


def test_nvidia_smi_reports_the_gpus_of_the_model(box: ToolBox, machine: Machine) -> None:
    """`-q`, read by our parser: each GPU with the model's serial, idle, ECC on, at full width."""
    answer = box.run("nvidia-smi", "-q")
    log = parse_query(answer.stdout)
    assert log.driver_version == DRIVER
    assert [gpu.serial for gpu in log.gpus] == [gpu.serial for gpu in machine.gpus]
    first = log.gpus[0]
    assert (first.pcie_width, first.memory_used, first.processes) == (16, 0, ())
    assert {name for name in first.__slots__ if getattr(first, name) is None} == set()
    assert first.fabric.cluster is None


def test_nvidia_smi_lists_links_and_queries(box: ToolBox, machine: Machine) -> None:
    """NVLinks, the list of GPUs, and the CSV query that roles use."""
    links = parse_nvlink_status(box.run("nvidia-smi", "nvlink", "--status").stdout)
    assert {len(gpu.active) for gpu in links} == {18}
    assert len(box.run("nvidia-smi", "-L").stdout.splitlines()) == len(machine.gpus)
    version = box.run("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
    assert set(version.stdout.split()) == {DRIVER}
    table = box.run("nvidia-smi", "--query-gpu=index,memory.used", "--format=csv").stdout.splitlines()
    assert table[:2] == ["index, memory.used [MiB]", "0, 0 MiB"]
    assert "not a valid field" in box.run("nvidia-smi", "--query-gpu=colour", "--format=csv").stdout


def test_what_the_roles_of_the_gpu_side_ask(
    box: ToolBox, tmp_path_factory: pytest.TempPathFactory, machine: Machine
) -> None:
    """NVSwitches by their PCI class, none where no GPU is; persistence mode; the fabric's state in `-q`."""
    switches = ("lspci", "-n", "-d", "10de::0680")
    assert box.run(*switches).stdout.count(" 0680: 10de:22a3") == 4
    bare = ToolBox(tmp_path_factory.mktemp("bare"), replace(machine, gpus=()))
    assert bare.run(*switches).stdout == ""
    assert box.run("nvidia-smi", "--persistence-mode=1").stdout.endswith("All done.\n")
    states = re.findall(
        r"^ +Fabric *\n +State +: *(\S+)\n +Status +: *(\S+)$", box.run("nvidia-smi", "-q").stdout, re.MULTILINE
    )
    assert states == [("Completed", "Success")] * len(machine.gpus)


def test_a_missing_gpu_is_missing_in_every_tool(tmp_path: Path, machine: Machine) -> None:
    """One model feeds all: nvidia-smi, NVLink and the PCI bus agree."""
    box = ToolBox(tmp_path, replace(machine, gpus=machine.gpus[:5] + machine.gpus[6:]))
    assert len(parse_query(box.run("nvidia-smi", "-q").stdout).gpus) == 7
    assert len(parse_nvlink_status(box.run("nvidia-smi", "nvlink", "--status").stdout)) == 7
    assert len(parse_lspci(box.run("lspci", "-D", "-vv", "-d", "10de:").stdout)) == 7


def test_without_gpus_or_driver_nvidia_smi_fails_as_the_real_one(tmp_path: Path, machine: Machine) -> None:
    """No device: exit code 6; no driver package: exit code 9 and the well-known sentence."""
    bare = ToolBox(tmp_path / "bare", replace(machine, gpus=())).run("nvidia-smi", "-q")
    assert (bare.returncode, bare.stdout) == (6, "No devices were found\n")
    undriven = ToolBox(tmp_path / "undriven", machine, driver=False).run("nvidia-smi", "-q")
    assert undriven.returncode == 9
    assert "couldn't communicate with the NVIDIA driver" in undriven.stdout


def test_faults_of_a_gpu_show(tmp_path: Path, machine: Machine) -> None:
    """A narrow link and an ECC error show in nvidia-smi, lspci and the kernel log."""
    bad = replace(machine.gpus[2], pcie_width=8, uncorrectable_ecc=3)
    box = ToolBox(tmp_path, replace(machine, gpus=(*machine.gpus[:2], bad, *machine.gpus[3:])))
    gpu = parse_query(box.run("nvidia-smi", "-q").stdout).gpus[2]
    assert (gpu.pcie_width, gpu.uncorrectable_since_boot) == (8, 3)
    (xid,) = xids(parse_dmesg(box.run("dmesg", "-T").stdout))
    assert (xid.code, xid.pci) == (48, gpu.pci)
    widths = {d.address: d.current for d in parse_lspci(box.run("lspci", "-D", "-vv", "-d", "10de:").stdout)}
    assert str(widths[gpu.pci]) == "x8 at 32 GT/s"


def test_a_failure_has_the_time_at_which_it_was_injected(tmp_path: Path, machine: Machine) -> None:
    """Not that of the boot: a job's failure is looked for in the time of the job. The log stays in its order."""
    lost = replace(machine.gpus[2], on_bus=False)
    box = ToolBox(tmp_path, replace(machine, gpus=(*machine.gpus[:2], lost, *machine.gpus[3:])))
    ago = uptime() / 2
    described = tmp_path / facts.FACTS.lstrip("/")
    changed = described.stat().st_mtime - ago
    os.utime(described, (changed, changed))
    lines = box.run("dmesg").stdout.splitlines()
    stamps = [float(line[1:].partition("]")[0]) for line in lines]
    assert stamps == sorted(stamps)
    (at,) = [stamp for stamp, line in zip(stamps, lines, strict=True) if "Xid" in line]
    assert at == pytest.approx(uptime() - ago, abs=ago / 2)


def test_ibstat_reports_the_adapters_of_the_model(tmp_path: Path, machine: Machine) -> None:
    """GUIDs as in the model; a port without a cable is down."""
    loose = replace(machine.hcas[1], cable=None)
    box = ToolBox(tmp_path, replace(machine, hcas=(machine.hcas[0], loose, *machine.hcas[2:])))
    adapters = parse_ibstat(box.run("ibstat").stdout)
    assert [a.node_guid for a in adapters] == [h.guid for h in machine.hcas]
    assert [a.ports[0].up for a in adapters[:3]] == [True, False, True]
    assert box.run("ibstat", "-l").stdout.split()[0] == "mlx5_0"


def test_dmidecode_reports_serial_memory_and_processors(box: ToolBox, machine: Machine) -> None:
    """The serial of the machine, and modules that add up to its memory, each by what is printed next to its socket; its
    processors.
    """
    assert box.run("dmidecode", "-s", "system-serial-number").stdout.strip() == machine.serial
    modules = parse_memory_modules(box.run("dmidecode", "-t", "17").stdout)
    assert [module.locator for module in modules] == [f"{bank}{slot}" for bank in "AB" for slot in range(1, 9)]
    assert sum(module.gib for module in modules) == machine.memory_gib == 2048
    assert [socket.works for socket in parse_processors(box.run("dmidecode", "-t", "4").stdout)] == [
        True
    ] * machine.cpus


def test_lsblk_and_findmnt_report_the_disk_that_was_booted(box: ToolBox, machine: Machine) -> None:
    """The drive that the OS was written to holds the root file system: the boot drive, or the one of an older OS."""
    for drive in (machine.drives[0], machine.drives[3]):
        box.boots_from(drive.serial)
        devices = parse_lsblk(box.run(*LSBLK).stdout)
        assert [one.drive.serial for one in whole_disks(devices)] == [drive.serial for drive in machine.drives]
        (root,) = parse_findmnt(box.run(*FINDMNT).stdout)
        assert [one.drive.serial for one in below(devices, root.device, "")] == [drive.serial]
        assert [one.drive.serial for one in below(devices, "", root.source)] == [drive.serial]
        assert len({one.device for one in devices}) == len(devices)
        assert {one.drive.serial for one in whole_disks(devices) if one.drive.content} == {drive.serial}
        listed = json.loads(box.run("lsblk", "--json", "--bytes", "--output", "NAME,SERIAL,MOUNTPOINT").stdout)
        mounted = {
            disk["serial"]: [part["mountpoint"] for part in disk.get("children", ())] for disk in listed["blockdevices"]
        }
        assert mounted == {one.serial: ["/boot/efi", "/"] if one is drive else [] for one in machine.drives}


def test_other_questions_are_the_real_tools(box: ToolBox) -> None:
    """What the stand-in does not know, util-linux answers, as Ansible asks it."""
    assert box.run("lsblk", "--version").stdout.startswith("lsblk from util-linux")
    assert box.run("findmnt", "--list", "--noheadings", "/").stdout.startswith("/ ")


def test_no_swap(box: ToolBox) -> None:
    """`swapon --show` is silent, and turning swap on is refused."""
    assert box.run("swapon", "--show=NAME,SIZE", "--bytes", "--noheadings").stdout == ""
    assert box.run("swapon", "-a").returncode == 1


def test_an_unknown_option_is_refused(box: ToolBox) -> None:
    """A stand-in reports what it cannot do; it never invents an answer."""
    for tool in ("nvidia-smi", "ibstat", "dmesg", "dmidecode", "lspci", "perfquery", "turbostat"):
        assert box.run(tool, "--colour=always").returncode != 0, tool


def test_ib_write_bw_moves_the_bytes_and_reports_what_it_measured(tmp_path: Path, machine: Machine) -> None:
    """Server and client over loopback: the bytes go over the rail's interface, both print the same kind of table."""
    loopback = machine_on_loopback(tmp_path, machine)
    port = reserve_port("127.0.0.1")
    common = ("-d", "mlx5_0", "-p", str(port), "-s", "1048576", "-n", "20", "-F", "--report_gbits")
    refused = loopback.run("ib_write_bw", *common, "127.0.0.1")
    assert (refused.returncode, f"Couldn't connect to 127.0.0.1:{port}" in refused.stderr) == (1, True)
    server = loopback.start("ib_write_bw", *common)
    assert server.stdout is not None
    for line in server.stdout:
        if "Waiting for client" in line:
            break
    client = loopback.run("ib_write_bw", *common, "127.0.0.1")
    output, _ = server.communicate(timeout=600)
    (sent,), (taken,) = parse_bandwidth(client.stdout), parse_bandwidth(output)
    assert (sent.message_bytes, sent.iterations) == (1048576, 20)
    assert sent.average > 0
    assert taken.average > 0


def test_ib_write_bw_for_a_time_lasts_so_long_and_shows_no_peak(tmp_path: Path, machine: Machine) -> None:
    """As many messages as there was time for, counted alike at both ends."""
    loopback = machine_on_loopback(tmp_path, machine)
    common = ("-d", "mlx5_0", "-p", str(reserve_port("127.0.0.1")), "-s", "65536", "-D", "1", "-F", "--report_gbits")
    server = loopback.start("ib_write_bw", *common)
    assert server.stdout is not None
    for line in server.stdout:
        if "Waiting for client" in line:
            break
    started = time.monotonic()
    client = loopback.run("ib_write_bw", *common, "127.0.0.1")
    output, _ = server.communicate(timeout=600)
    (sent,), (taken,) = parse_bandwidth(client.stdout), parse_bandwidth(output)
    assert time.monotonic() - started >= 1
    assert sent.iterations == taken.iterations > 0
    assert (sent.peak, taken.peak) == (0, 0)
    assert sent.average > 0


def test_ib_write_bw_without_a_cable_or_device_fails(tmp_path: Path, machine: Machine) -> None:
    """A port that is down, and a device that is not there, are reported in perftest's words."""
    box = ToolBox(tmp_path, replace(machine, hcas=(replace(machine.hcas[0], cable=None),)))
    assert "state is Down" in box.run("ib_write_bw", "-d", "mlx5_0").stderr
    assert "not found" in box.run("ib_write_bw", "-d", "mlx5_9").stderr


def machine_on_loopback(root: Path, machine: Machine) -> ToolBox:
    """A host whose rail 0 is the loopback interface."""
    box = ToolBox(root, machine)
    facts = root / "etc/clusterctl-lab/machine.json"
    facts.write_text(re.sub(r'"interface": "ib0"', '"interface": "lo"', facts.read_text()))
    return box


def test_a_virtual_machines_kernel_reports_its_own_values(tmp_path: Path, machine: Machine) -> None:
    """First the lines of the real dmesg, then what the missing hardware would have logged; no invented beginning."""
    box = ToolBox(tmp_path, machine)
    ((path, (content, _)),) = machine_files(machine, own_kernel=True).items()
    (tmp_path / path.lstrip("/")).write_bytes(content)
    if os.geteuid() != 0:
        pytest.skip("only root may read a kernel's log everywhere")
    answer = box.run("dmesg", "-T")
    assert "(lab)" not in answer.stdout
    assert "mlx5_core 0000:18:00.0: firmware version" in answer.stdout

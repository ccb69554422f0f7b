"""`nvidia-smi -q`: everything that the driver reports of its GPUs, as text.

It follows a recording of driver 535.161.08 on 8 x H100 80GB HBM3 (leptonai/gpud, Apache-2.0), in the fields that
describe the machine. Row remapping follows NVIDIA's GPU memory error management guide: after an uncorrectable error a
row waits for the next reset.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from clusterctl_lab.emulators.host_tools.host.facts import Gpu
from clusterctl_lab.emulators.host_tools.host.loaded import GPUS, loads

CUDA = "12.2"
HOTTEST_C = 85  # an H100 begins to throttle at this temperature: `T.Limit` is the distance to it
RESERVED_MIB = 551
POWER = {
    "Current Power Limit": "700.00 W",
    "Requested Power Limit": "700.00 W",
    "Default Power Limit": "700.00 W",
    "Max Power Limit": "700.00 W",
}
INFOROM = "G520.0200.00.05"


def _line(depth: int, key: str, value: str = "") -> str:
    """As the real one aligns: keys indented by four, colons in column 43."""
    text = " " * 4 * depth + key
    return f"{text:<42}: {value}" if value else text


def query(gpus: Sequence[Gpu], driver: str) -> Iterator[str]:
    yield from ("", "==============NVSMI LOG==============", "")
    yield _line(0, "Timestamp", time.strftime("%a %b %e %H:%M:%S %Y", time.gmtime()))
    yield _line(0, "Driver Version", driver)
    yield _line(0, "CUDA Version", CUDA)
    yield ""
    yield _line(0, "Attached GPUs", str(len(gpus)))
    for gpu in gpus:
        yield from _gpu(gpu, driver)
        yield ""


def _gpu(gpu: Gpu, driver: str) -> Iterator[str]:
    ecc = "Enabled" if gpu.ecc else "Disabled"
    yield f"GPU {gpu.pci}"
    yield _line(1, "Product Name", gpu.model)
    yield _line(1, "Product Brand", "NVIDIA")
    yield _line(1, "Product Architecture", "Hopper")
    yield _line(1, "Persistence Mode", "Enabled" if gpu.persistence else "Disabled")
    mig = "Enabled" if gpu.mig else "Disabled"
    yield from _section("MIG Mode", Current=mig, Pending=mig)
    yield _line(1, "Serial Number", gpu.serial)
    yield _line(1, "GPU UUID", gpu.uuid)
    yield _line(1, "Minor Number", str(gpu.index))
    yield _line(1, "VBIOS Version", gpu.vbios)
    yield from _section("Inforom Version", **{"Image Version": INFOROM})
    yield _line(1, "GSP Firmware Version", driver)
    reset = "No" if gpu.recovery == "None" else "Yes"
    yield from _section("GPU Reset Status", **{"Reset Required": reset, "Drain and Reset Recommended": "No"})
    yield _line(1, "GPU Recovery Action", gpu.recovery)
    yield from _pci(gpu)
    yield _line(1, "Performance State", "P0")
    yield from _reasons(gpu)
    yield from _slowed(gpu)
    used = {"Total": f"{gpu.memory_mib} MiB", "Reserved": f"{RESERVED_MIB} MiB", "Used": f"{gpu.memory_used_mib} MiB"}
    yield from _section("FB Memory Usage", **used, Free=f"{gpu.memory_mib - RESERVED_MIB - gpu.memory_used_mib} MiB")
    yield _line(1, "Compute Mode", "Default")
    yield from _section("Utilization", Gpu="0 %", Memory="0 %")
    yield from _section("ECC Mode", Current=ecc, Pending=ecc)
    yield from _ecc(gpu)
    yield from _remapped(gpu)
    yield from _temperature(gpu)
    yield from _section("GPU Power Readings", **{"Power Draw": f"{gpu.idle_w:.2f} W"}, **POWER)
    yield from _section(
        "Fabric", State=gpu.fabric_state, Status="Success" if gpu.fabric_state == "Completed" else "N/A"
    )
    yield _line(1, "Processes", "None")


def _section(name: str, **values: str) -> Iterator[str]:
    yield _line(1, name)
    for key, value in values.items():
        yield _line(2, key, value)


def _pci(gpu: Gpu) -> Iterator[str]:
    yield _line(1, "PCI")
    yield _line(2, "Bus", f"0x{gpu.pci[9:11]}")
    yield _line(2, "Device Id", "0x233010DE")
    yield _line(2, "Bus Id", gpu.pci)
    yield _line(2, "GPU Link Info")
    yield _line(3, "PCIe Generation")
    yield _line(4, "Max", str(gpu.pcie_generation))
    yield _line(4, "Current", str(gpu.pcie_generation))
    yield _line(3, "Link Width")
    yield _line(4, "Max", "16x")
    yield _line(4, "Current", f"{gpu.pcie_width}x")
    yield _line(2, "Replays Since Reset", str(gpu.pcie_replays + 900 * gpu.shows("pcie")))
    yield _line(2, "Replay Number Rollovers", "0")


def _reasons(gpu: Gpu) -> Iterator[str]:
    """Yield the clock event reasons of an idle GPU."""
    hot = "Active" if gpu.hot_slowdown else "Not Active"
    yield from _section("Clocks Event Reasons", Idle="Active", **{"SW Power Cap": "Not Active"})
    yield _line(2, "HW Slowdown", hot)
    yield _line(3, "HW Thermal Slowdown", hot)
    yield _line(3, "HW Power Brake Slowdown", "Not Active")
    yield _line(2, "SW Thermal Slowdown", "Not Active")


def _slowed(gpu: Gpu) -> Iterator[str]:
    """Yield the times of lowered clocks, as driver 570 does; a GPU with that fault loses 20 s to heat in each load."""
    heat = 20_000_000 * loads(GPUS) * gpu.shows("heat")
    times = {"SW Power Capping": 85032, "Sync Boost": 0, "SW Thermal Slowdown": 0, "HW Thermal Slowdown": heat}
    yield from _section("Clocks Event Reasons Counters", **{key: f"{us} us" for key, us in times.items()})
    yield _line(2, "HW Power Braking", "0 us")


def _ecc(gpu: Gpu) -> Iterator[str]:
    yield _line(1, "ECC Errors")
    for period in ("Volatile", "Aggregate"):
        yield _line(2, period)
        for key in ("SRAM Correctable", "SRAM Uncorrectable Parity", "SRAM Uncorrectable SEC-DED"):
            yield _line(3, key, "0")
        yield _line(3, "DRAM Correctable", str(gpu.correctable_ecc))
        yield _line(3, "DRAM Uncorrectable", str(gpu.uncorrectable_ecc + gpu.shows("ecc")))
    yield _line(3, "SRAM Threshold Exceeded", "No")


def _remapped(gpu: Gpu) -> Iterator[str]:
    yield _line(1, "Remapped Rows")
    yield _line(2, "Correctable Error", str(gpu.remapped_rows))
    yield _line(2, "Uncorrectable Error", str(int(gpu.shows("remap"))))
    yield _line(2, "Pending", "Yes" if gpu.uncorrectable_ecc else "No")
    yield _line(2, "Remapping Failure Occurred", "Yes" if gpu.remap_failed else "No")


def _temperature(gpu: Gpu) -> Iterator[str]:
    yield _line(1, "Temperature")
    yield _line(2, "GPU Current Temp", f"{gpu.temperature_c} C")
    yield _line(2, "GPU T.Limit Temp", f"{HOTTEST_C - gpu.temperature_c} C")
    yield _line(2, "Memory Current Temp", f"{gpu.memory_temperature_c} C")

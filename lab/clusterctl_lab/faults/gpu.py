"""Faults of GPUs, of their memory, NVLinks and PCIe links."""

from __future__ import annotations

from dataclasses import replace

from clusterctl.fleet.errors import UsageError
from clusterctl_lab.faults.fault import Fault, gpu_fault, gpu_named, hca_named, no_such_part, with_gpu, with_hca
from clusterctl_lab.machine import Machine

HOT_IDLE_C = 68
"""Below the limit for an idle GPU, far above its neighbours."""
HOT_LOAD_C = 89
"""An H100's hardware halves its clock at this temperature."""
SLOW_PERCENT = 80
"""Of a healthy GPU; above the minimum in the limits file."""
LANES = 8
SMALL_MIB = 65247
"""Four fifths of an H100's memory."""
XIDS = (48, 64, 74, 94, 95, 119)
"""Xids that exclude a node from training and whose log line is documented. Xid 79 is gpu-off-the-bus."""
USUAL_XID = "119"


def _missing_gpu(machine: Machine, part: str) -> Machine:
    present = {f"gpu{gpu.index}": gpu for gpu in machine.gpus}
    if not present:
        raise UsageError("has no GPU left", where=machine.name, remedy=f"heal it: clusterctl lab heal {machine.name}")
    name = part or max(present, key=lambda key: present[key].index)
    if name not in present:
        raise no_such_part(machine, name, tuple(present))
    removed = present[name]
    gpus = tuple(gpu for gpu in machine.gpus if gpu is not removed)
    return replace(machine, gpus=gpus).with_fault(f"missing-gpu:{name}")


def _pcie_width(machine: Machine, part: str) -> Machine:
    if part.startswith("mlx5"):
        hca = hca_named(machine, part)
        return with_hca(machine, replace(hca, pcie_width=LANES)).with_fault(f"pcie-width:{hca.name}")
    gpu = gpu_named(machine, part)
    return with_gpu(machine, replace(gpu, pcie_width=LANES)).with_fault(f"pcie-width:gpu{gpu.index}")


def _xid(machine: Machine, part: str) -> Machine:
    name, _, text = part.partition("=")
    gpu, code = gpu_named(machine, name), text or USUAL_XID
    if not code.isdecimal() or int(code) not in XIDS:
        codes = ", ".join(map(str, XIDS))
        raise UsageError(f"the lab knows no Xid {code}", where="target", remedy=f"choose from: {codes}")
    broken = replace(gpu, xids=(*gpu.xids, int(code)))
    return with_gpu(machine, broken).with_fault(f"xid:gpu{gpu.index}={int(code)}")


FAULTS = (
    Fault(
        name="missing-gpu",
        does="removes one GPU from the machine (default: the last GPU)",
        shows="the BMC's processors, nvidia-smi, the PCI bus: one fewer than the SKU has",
        target="NODE or NODE:gpu5",
        apply=_missing_gpu,
    ),
    Fault(
        name="pcie-width",
        does="a GPU or an HCA has 8 of its 16 PCIe lanes (default: the first GPU)",
        shows="nvidia-smi for a GPU, the kernel log for an HCA, lspci for both",
        target="NODE or NODE:gpu5 or NODE:mlx5_2",
        apply=_pcie_width,
    ),
    Fault(
        name="xid",
        does="NVIDIA's driver reports an error of a GPU (default: Xid 119 of the first GPU)",
        shows="the kernel log",
        target="NODE or NODE:gpu3 or NODE:gpu3=74",
        apply=_xid,
    ),
    gpu_fault(
        "dcgm-fail",
        does="a GPU fails the memory test of dcgmi diag",
        shows="dcgmi diag --run 2",
        change=lambda gpu: replace(gpu, fails_diag="memory"),
    ),
    gpu_fault(
        "ecc-off",
        does="ECC of a GPU is off",
        shows="nvidia-smi -q: ECC Mode, Current: Disabled",
        change=lambda gpu: replace(gpu, ecc=False),
    ),
    gpu_fault(
        "fabric-not-joined",
        does="a GPU never finishes to join the NVLink fabric",
        shows="nvidia-smi -q: Fabric, State",
        change=lambda gpu: replace(gpu, fabric_state="In Progress"),
    ),
    gpu_fault(
        "gpu-divided",
        does="a GPU is in MIG mode",
        shows="nvidia-smi -q: MIG Mode, Current: Enabled",
        change=lambda gpu: replace(gpu, mig=True),
    ),
    gpu_fault(
        "gpu-in-use",
        does="an invisible process holds memory of a GPU",
        shows="nvidia-smi -q: FB Memory Usage, Used",
        change=lambda gpu: replace(gpu, memory_used_mib=40536),
    ),
    gpu_fault(
        "gpu-memory-missing",
        does=f"a GPU has {SMALL_MIB} MiB of memory",
        shows="nvidia-smi -q: FB Memory Usage, Total",
        change=lambda gpu: replace(gpu, memory_mib=SMALL_MIB),
    ),
    gpu_fault(
        "gpu-needs-reset",
        does="the driver wants a GPU to be reset, and lists it as before",
        shows="nvidia-smi -q: GPU Recovery Action: GPU Reset",
        change=lambda gpu: replace(gpu, recovery="GPU Reset"),
    ),
    gpu_fault(
        "gpu-off-the-bus",
        does="a GPU leaves the PCI bus while the machine runs",
        shows="the kernel log (Xid 79); nvidia-smi reports it as lost and nothing else; the BMC lists it",
        change=lambda gpu: replace(gpu, on_bus=False),
    ),
    gpu_fault(
        "gpu-slot-speed",
        does="a GPU and its slot reach PCIe generation 4 of 5",
        shows="nvidia-smi -q: PCIe Generation, Max: 4",
        change=lambda gpu: replace(gpu, pcie_generation=4),
    ),
    gpu_fault(
        "gpu-slowed-by-heat",
        does="the hardware slows an idle GPU down for heat",
        shows="nvidia-smi -q: HW Thermal Slowdown: Active",
        change=lambda gpu: replace(gpu, hot_slowdown=True),
    ),
    gpu_fault(
        "hot-gpu",
        does=f"an idle GPU is at {HOT_IDLE_C} °C while its neighbours are cool",
        shows="nvidia-smi -q: GPU Current Temp",
        change=lambda gpu: replace(gpu, temperature_c=HOT_IDLE_C),
    ),
    gpu_fault(
        "hot-gpu-under-load",
        does=f"a GPU is at {HOT_LOAD_C} °C under load, and its hardware reduces its clock",
        shows="nvidia-smi under load: clocks_event_reasons.active 0x48",
        change=lambda gpu: replace(gpu, load_c=HOT_LOAD_C),
    ),
    gpu_fault(
        "nvlink-down",
        does="two NVLinks of a GPU stay down",
        shows="nvidia-smi nvlink --status: these links are inactive",
        change=lambda gpu: replace(gpu, links_down=(4, 5)),
    ),
    gpu_fault(
        "nvlink-errors",
        does="an NVLink of a GPU sends 40 packets a second again; it is up at full rate",
        shows="nvidia-smi nvlink -e: Replay Errors grow",
        change=lambda gpu: replace(gpu, nvlink_replays_per_hour=40 * 3600),
    ),
    gpu_fault(
        "ecc-under-load",
        does="a GPU has an uncorrectable memory error once the GPUs have been loaded",
        shows="nvidia-smi -q before and after the load: DRAM Uncorrectable",
        change=lambda gpu: replace(gpu, under_load="ecc"),
    ),
    gpu_fault(
        "row-remap-under-load",
        does="a GPU replaces a row of its memory once the GPUs have been loaded",
        shows="nvidia-smi -q before and after the load: Remapped Rows, Uncorrectable Error",
        change=lambda gpu: replace(gpu, under_load="remap"),
    ),
    gpu_fault(
        "hot-memory-under-load",
        does="the memory of a GPU gets to 99 °C once the GPUs have been loaded; it is cool when no load runs",
        shows="nvidia-smi while a load runs: temperature.memory",
        change=lambda gpu: replace(gpu, under_load="hot-memory"),
    ),
    gpu_fault(
        "gpu-power-while-idle",
        does="an idle GPU draws 240 W",
        shows="nvidia-smi -q: Power Draw",
        change=lambda gpu: replace(gpu, idle_w=240.0),
    ),
    gpu_fault(
        "gpu-sensor-dead",
        does="the temperature sensor of a GPU shows 0 °C",
        shows="nvidia-smi -q: GPU Current Temp",
        change=lambda gpu: replace(gpu, temperature_c=0),
    ),
    gpu_fault(
        "heat-under-load",
        does="heat slows a GPU down for 20 s once the GPUs have been loaded; it is cool again after the load",
        shows="nvidia-smi -q before and after the load: HW Thermal Slowdown",
        change=lambda gpu: replace(gpu, under_load="heat"),
    ),
    gpu_fault(
        "nvlink-replay-under-load",
        does="an NVLink of a GPU sends one packet again once the GPUs have been loaded",
        shows="nvidia-smi nvlink -e before and after the load: Replay Errors",
        change=lambda gpu: replace(gpu, under_load="nvlink"),
    ),
    gpu_fault(
        "nvlink-crc-under-load",
        does="the data of a GPU's NVLinks has 100,000 CRC errors once the GPUs have been loaded",
        shows="dcgm-exporter alone, before and after the load: DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL",
        change=lambda gpu: replace(gpu, under_load="nvlink-crc"),
    ),
    gpu_fault(
        "pcie-replays-under-load",
        does="the PCIe link of a GPU repeats 900 packets once the GPUs have been loaded",
        shows="nvidia-smi -q before and after the load: Replays Since Reset",
        change=lambda gpu: replace(gpu, under_load="pcie"),
    ),
    gpu_fault(
        "pcie-errors-under-load",
        does="the PCIe link of a GPU has an uncorrected error in each load of the GPUs, which the kernel counts only",
        shows="the kernel's AER counters while a load runs: aer_dev_nonfatal",
        change=lambda gpu: replace(gpu, under_load="aer"),
    ),
    gpu_fault(
        "xid-under-load",
        does="NVIDIA's driver reports Xid 119 of a GPU once the GPUs have been loaded",
        shows="the kernel log, after the load",
        change=lambda gpu: replace(gpu, under_load="xid"),
    ),
    gpu_fault(
        "other-vbios",
        does="a GPU has an older VBIOS than its neighbours",
        shows="nvidia-smi -q: VBIOS Version",
        change=lambda gpu: replace(gpu, vbios="96.00.30.00.01"),
    ),
    gpu_fault(
        "persistence-off",
        does="persistence mode of a GPU is off",
        shows="nvidia-smi -q: Persistence Mode",
        change=lambda gpu: replace(gpu, persistence=False),
    ),
    gpu_fault(
        "row-remap-failure",
        does="a GPU cannot remap a faulty memory row any more",
        shows="nvidia-smi (Remapping Failure Occurred), the kernel log (Xid 64)",
        change=lambda gpu: replace(gpu, remap_failed=True, remapped_rows=gpu.remapped_rows + 8, xids=(*gpu.xids, 64)),
    ),
    gpu_fault(
        "silent-corruption",
        does="a GPU computes wrong products now and then, without any error",
        shows="the load gpu_load: equal products that differ",
        change=lambda gpu: replace(gpu, computes_wrong=True),
    ),
    gpu_fault(
        "slow-gpu",
        does=f"a GPU computes at {SLOW_PERCENT} % of the speed of its neighbours",
        shows="the load gpu_load: its throughput, against the best of the node",
        change=lambda gpu: replace(gpu, speed_percent=SLOW_PERCENT),
    ),
    gpu_fault(
        "uncorrectable-ecc",
        does="a GPU has uncorrectable memory errors",
        shows="nvidia-smi (ECC errors, a pending row remapping), the kernel log (Xid 48)",
        change=lambda gpu: replace(gpu, uncorrectable_ecc=2),
    ),
)

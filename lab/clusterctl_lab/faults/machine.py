"""Faults of the machine itself: firmware, processors, memory, fans, power supplies, its BMC."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.event_texts import BmcEvent, log_entry
from clusterctl_lab.faults.fault import DIMM_TARGET, Fault, dimm_fault, machine_fault, named, system_fault
from clusterctl_lab.machine import BmcCondition, Machine

CORRECTED_PER_HOUR = 400
"""About a hundred times the rate at which rasdaemon takes a page of memory offline (50 in 24 hours)."""
SLOW_FAN_PERCENT = 35
"""A fan whose bearing fails: less than half of what the others turn."""
INLET_C = 46
"""Above 42, the upper critical threshold of the inlet sensor on a recorded PowerEdge."""
GPU_C, HBM_C = 88, 98
"""An H100 throttles at these temperatures."""
OTHER_PASSWORD = "of-an-earlier-owner"  # noqa: S105 — a made-up one


def _failed_dimm(machine: Machine, part: str) -> Machine:
    """The log entry is IPMI 2.0's table 42-3, sensor type 0Ch (Memory), offset 01h."""
    dimms = {dimm.slot: dimm for dimm in machine.dimms}
    slot, dimm = named(dimms, machine, part, "memory module")
    entry = log_entry(machine, BmcEvent.DIMM_FAILED, dimm.in_log)
    changed = tuple((dimms | {slot: replace(dimm, failed=True)}).values())
    return replace(machine, dimms=changed, logged=(*machine.logged, entry)).with_fault(f"failed-dimm:{slot}")


def _failed_fan(machine: Machine, part: str) -> Machine:
    """The log entry is IPMI 2.0's table 42-2, Lower Critical - going low, of sensor type 04h (Fan)."""
    fans = {fan.slot: fan for fan in machine.fans}
    slot, fan = named(fans, machine, part, "fan")
    entry = log_entry(machine, BmcEvent.FAN_FAILED, fan.in_log)
    changed = tuple((fans | {slot: replace(fan, failed=True)}).values())
    return replace(machine, fans=changed, logged=(*machine.logged, entry)).with_fault(f"failed-fan:{slot}")


def _slow_fan(machine: Machine, part: str) -> Machine:
    fans = {fan.slot: fan for fan in machine.fans}
    slot, fan = named(fans, machine, part, "fan")
    changed = tuple((fans | {slot: replace(fan, speed_percent=SLOW_FAN_PERCENT)}).values())
    return replace(machine, fans=changed).with_fault(f"slow-fan:{slot}")


def _failed_psu(machine: Machine, part: str) -> Machine:
    """The log entry is IPMI 2.0's table 42-3, sensor type 08h (Power Supply), offset 01h."""
    psus = {psu.slot: psu for psu in machine.psus}
    slot, psu = named(psus, machine, part, "power supply")
    entry = log_entry(machine, BmcEvent.SUPPLY_FAILED, list(psus).index(slot) + 1)
    changed = tuple((psus | {slot: replace(psu, failed=True)}).values())
    return replace(machine, psus=changed, logged=(*machine.logged, entry)).with_fault(f"failed-psu:{slot}")


def _overheated(machine: Machine) -> Machine:
    """The log entry is IPMI 2.0's table 42-2, upper critical, of a sensor of type 01h (Temperature)."""
    gpus = tuple(replace(gpu, temperature_c=GPU_C, memory_temperature_c=HBM_C) for gpu in machine.gpus)
    entry = log_entry(machine, BmcEvent.INLET_HOT, INLET_C)
    return replace(machine, inlet_c=INLET_C, gpus=gpus, logged=(*machine.logged, entry))


FAULTS = (
    Fault(
        name="failed-dimm",
        does="a memory module has an uncorrectable error (default: the first module)",
        shows="the BMC: the module is Critical, an entry in its event log, health roll-up Critical; it still counts",
        target=DIMM_TARGET,
        apply=_failed_dimm,
    ),
    Fault(
        name="failed-fan",
        does="a fan stops (default: the first fan)",
        shows="the BMC: the fan does not turn and is Critical, an entry in its event log, health roll-up Critical",
        target='NODE or "NODE:System Board Fan3A" (the name of the fan in the BMC)',
        apply=_failed_fan,
    ),
    Fault(
        name="failed-psu",
        does="a power supply fails (default: the first one)",
        shows="the BMC: the supply is Critical, an entry in its event log, health roll-up Critical; not the OS",
        target="NODE or NODE:PS3",
        apply=_failed_psu,
    ),
    Fault(
        name="slow-fan",
        does=f"a fan turns at {SLOW_FAN_PERCENT} % of its speed, above its critical threshold (default: the first fan)",
        shows="ipmitool sdr type Fan, compared with the other fans; the BMC calls it healthy",
        target='NODE or "NODE:System Board Fan3A" (the name of the fan in the BMC)',
        apply=_slow_fan,
    ),
    dimm_fault(
        "lost-dimm",
        does="the firmware disables a memory module that the BMC still lists",
        shows="dmidecode -t 17 lacks it",
        change=lambda dimm: replace(dimm, seen=False),
    ),
    dimm_fault(
        "memory-errors",
        does="a memory module has hundreds of corrected errors an hour",
        shows="the kernel's EDAC counters; not yet the BMC",
        change=lambda dimm: replace(dimm, corrected_per_hour=CORRECTED_PER_HOUR),
    ),
    dimm_fault(
        "memory-errors-under-load",
        does="a memory module has 40 corrected errors once the GPUs have been loaded",
        shows="the kernel's EDAC counters before and after the load",
        change=lambda dimm: replace(dimm, load_corrected=40),
    ),
    dimm_fault(
        "wrong-memory",
        does="a memory module loses bits under full load, and only then",
        shows="stress-ng's own check of its results, and the kernel's EDAC counters while it runs",
        change=lambda dimm: replace(dimm, flips=True),
    ),
    machine_fault(
        "over-temperature",
        does=f"heats the inlet air to {INLET_C} °C and the GPUs to {GPU_C} °C",
        shows="the BMC's inlet sensor above its critical threshold, an entry in its event log, health roll-up "
        "Critical; nvidia-smi's temperatures",
        change=_overheated,
    ),
    machine_fault(
        "never-boots",
        does="the machine hangs in POST from its next power-on",
        shows="the BMC: power is on, its event log has that POST did not complete; the installer receives no request",
        change=lambda machine: replace(machine, boots=False),
    ),
    system_fault(
        "another-machine",
        does="the host at the address has another serial number than the BMC's machine",
        shows="dmidecode -s system-serial-number",
        change=lambda system: replace(system, is_another=True),
    ),
    system_fault(
        "cpu-disabled",
        does="the firmware has disabled the last processor",
        shows="dmidecode -t 4: Disabled By BIOS",
        change=lambda system: replace(system, cpu_disabled=True),
    ),
    system_fault(
        "slow-cores",
        does="all processors stay at 2 GHz under load",
        shows="turbostat, while the processors are busy",
        change=lambda system: replace(system, fixed_mhz=2000),
    ),
    system_fault(
        "iommu-translates",
        does="the IOMMU translates the DMA of GPUs and adapters",
        shows="/sys/kernel/iommu_groups/*/type: DMA-FQ",
        change=lambda system: replace(system, iommu_translates=True),
    ),
    system_fault(
        "weak-power",
        does="the power supplies cannot feed GPUs and processors that work at the same time; the server slows the GPUs",
        shows="nvidia-smi under all loads at once: clocks_event_reasons.active 0x88; nothing while GPUs work alone",
        change=lambda system: replace(system, weak_power=True),
    ),
    system_fault(
        "slow-nvswitch",
        does="an all-reduce among the node's GPUs takes seconds a step; all their NVLinks are up",
        shows="all_reduce_perf over the node alone: low bus bandwidth; over several nodes it is normal",
        change=lambda system: replace(system, nvswitch_slow=True),
    ),
    machine_fault(
        "dead-bmc",
        does="removes the BMC from the network: nothing answers at its address",
        shows="no ARP answer, no TCP connection; a running OS goes on without it",
        change=lambda machine: replace(machine, bmc=replace(machine.bmc, condition=BmcCondition.DEAD)),
    ),
    machine_fault(
        "hanging-bmc",
        does="the BMC accepts connections and requests, and answers none",
        shows="TCP and TLS work, every HTTP request waits for ever",
        change=lambda machine: replace(machine, bmc=replace(machine.bmc, condition=BmcCondition.HANGS)),
    ),
    machine_fault(
        "wrong-bmc-password",
        does="gives the BMC another password than the site has",
        shows="HTTP 401 to every login over Redfish, from clusterctl and from MAAS",
        change=lambda machine: replace(machine, bmc=replace(machine.bmc, password=OTHER_PASSWORD)),
    ),
)

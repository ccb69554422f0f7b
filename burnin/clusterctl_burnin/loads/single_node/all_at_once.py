"""all_at_once: GPUs, processors, memory, drives and adapters of a node work at the same time, as no other load does.

Power supplies, their cords and fans have to carry all of it only then. Each load reports the same as when alone,
but no rate is held against a floor here, since the loads take processors and PCIe from each other. A node that goes
down under it falls silent, which is its own finding. Each InfiniBand adapter writes to itself, which loads its chip and
its PCIe link, and is compared with the fastest of the node; cables and transceivers are loaded with the pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl_burnin.check import Area, Check, Expected
from clusterctl_burnin.checks.memory_errors import MEMORY_CORRECTED_MAX
from clusterctl_burnin.limits.limit import Limits
from clusterctl_burnin.loads import adapter_load
from clusterctl_burnin.loads.node_load import NodeLoad
from clusterctl_burnin.loads.single_node import gpu_load, nvme_read, stress_ng
from clusterctl_burnin.probe import Probe, Readings
from clusterctl_burnin.probes.nvidia_smi import GPU_MEMORY_TEMPERATURE_MAX

NAME = "all_at_once"
_GPUS, _OTHERS = gpu_load.LOAD, (stress_ng.LOAD, nvme_read.LOAD, adapter_load.LOAD)
_ALL = (_GPUS, *_OTHERS)
_ANY_PART_OF_THE_BEST = 100.0  # %
_NO_PROBLEM = frozenset({Verdict.PASS, Verdict.NOT_APPLICABLE})


def _probes(limits: Limits, seconds: int | None) -> tuple[Probe, ...]:
    """Return the probes, with stress_ng's time where the suite sets none; gpu_load takes twice its seconds and more."""
    length = limits.methods.stress_ng.seconds if seconds is None else seconds
    probes = [*_GPUS.probes(limits, max(1, length // 2)), *(p for load in _OTHERS for p in load.probes(limits, length))]
    return tuple(replace(probe, name=_name(probe.name)) for probe in probes)


def _name(probe: str) -> str:
    return f"{NAME}.{probe}"


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    own = {name.removeprefix(_name("")): result for name, result in readings.probes.items() if _name("") in name}
    as_alone, lenient = replace(readings, probes=own), replace(expected, limits=_without_rates(expected.limits))
    found = {load.name: Check(load.name, (), load.judge).findings(as_alone, lenient) for load in _ALL}
    named = ((load, finding) for load, findings in found.items() for finding in findings)
    bad = [_renamed(finding, load, readings) for load, finding in named if finding.verdict not in _NO_PROBLEM]
    yield from bad
    if {finding.verdict for finding in bad} <= {Verdict.WARN}:
        ran = [name for name, (first, *_) in found.items() if first.verdict is not Verdict.NOT_APPLICABLE]
        yield passed(NAME, f"{', '.join(ran)} ran at the same time without a fault")


def _renamed(finding: Finding, load: str, readings: Readings) -> Finding:
    evidence = readings.digests([Probe(_name(load), ())])
    return replace(finding, check=NAME, cause=f"with all other work, {load}: {finding.cause}", evidence=evidence)


def _without_rates(limits: Limits) -> Limits:
    """Return the limits without rates: any rate is enough."""
    enough = {name: 0.0 for name in limits.limits if name.endswith("_min")}
    enough["gpu_below_best_max"] = _ANY_PART_OF_THE_BEST
    changed = {name: replace(limits[name], value=value) for name, value in enough.items()}
    return replace(limits, limits={**limits.limits, **changed})


LOAD = NodeLoad(
    NAME,
    _probes,
    _judge,
    limits=(GPU_MEMORY_TEMPERATURE_MAX, MEMORY_CORRECTED_MAX, adapter_load.ADAPTER_BELOW_BEST_MAX),
    needs=frozenset({Area.GPU, Area.PROCESSOR, Area.MEMORY, Area.STORAGE, Area.COOLING}),
    about=frozenset(),
)

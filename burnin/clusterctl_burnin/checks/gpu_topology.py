"""gpu_topology: all GPUs are joined by all their NVLinks, and each has an adapter below its own PCIe switch.

Traffic between a GPU and an adapter below another switch goes through the processors: NCCL then takes another adapter,
or a slower way, and no other check finds it.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.nvidia.nvlink import GpuTopology, parse_gpu_topology
from clusterctl_burnin.check import Area, Cause, Check, Expected
from clusterctl_burnin.checks.nvlink import NVLINK_COUNT
from clusterctl_burnin.probe import Probe, Readings
from clusterctl_burnin.probes.ibstat import IBSTAT, compute_adapters
from clusterctl_burnin.probes.nvidia_smi import missing

TOPOLOGY = Probe("gpu_topology", ("nvidia-smi", "topo", "-m"), timeout=20, role="nvidia_driver")
_NAME = "gpu_topology"
_NEAR = ("PIX", "PXB")
_NVLINK = "read nvidia-smi nvlink --status and the fabric manager's log; reboot the node, then reseat the GPU"
_SLOT = "check that each adapter is in the slot that the machine's manual pairs with its GPU, and that none is missing"


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    table = parse_gpu_topology(readings.text(TOPOLOGY))
    found = list(missing(_NAME, len(table.gpus), expected.sku.gpu_count, "GPUs"))
    if expected.limits[NVLINK_COUNT].value:
        found += _apart(table, f"NV{expected.limits[NVLINK_COUNT]}")
    if expected.sku.hca_count:
        found += _far(table, readings, expected)
    yield from found
    if not found:
        yield passed(_NAME, f"{len(table.gpus)} GPUs have the planned connections")


def _apart(table: GpuTopology, wanted: str) -> Iterator[Finding]:
    """Yield the fewest GPUs that all bad pairs have in common: first the one with the most."""
    bad = [pair for pair in itertools.combinations(table.gpus, 2) if table.links[pair] != wanted]
    while bad:
        worst, _ = Counter(itertools.chain.from_iterable(bad)).most_common(1)[0]
        pairs = [pair for pair in bad if worst in pair]
        bad = [pair for pair in bad if worst not in pair]
        seen = ", ".join(sorted({table.links[pair] for pair in pairs}))
        cause = f"the GPU lacks NVLinks to {len(pairs)} of the other GPUs"
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.NVLINK_NOT_JOINED,
            subject=_subject(worst),
            cause=cause,
            measured=seen,
            expected=wanted,
            remedy=_NVLINK,
        )


def _far(table: GpuTopology, readings: Readings, expected: Expected) -> Iterator[Finding]:
    """Yield one adapter for each GPU, as far as there are as many of them in InfiniBand mode."""
    names = {adapter.name for adapter in compute_adapters(readings, expected.sku)}
    adapters = [name for name in table.adapters if name in names]
    yield from missing(_NAME, len(adapters), expected.sku.hca_count, "adapters")
    if len(adapters) < len(table.gpus):
        return
    for gpu in table.gpus:
        words = [table.links[gpu, adapter] for adapter in adapters]
        if not any(word in _NEAR for word in words):
            cause = "no adapter is below the GPU's own PCIe switch"
            seen = ", ".join(sorted(set(words)))
            yield Finding(
                check=_NAME,
                verdict=Verdict.FAIL,
                code=Code.GPU_FAR_FROM_ADAPTER,
                subject=_subject(gpu),
                cause=cause,
                measured=seen,
                expected=" or ".join(_NEAR),
                remedy=_SLOT,
            )


def _subject(gpu: str) -> str:
    return f"gpu {gpu.removeprefix('GPU')}"


CHECK = Check(
    _NAME,
    (TOPOLOGY, IBSTAT),
    _judge,
    area=Area.NVLINK,
    limits=(NVLINK_COUNT,),
    causes=(
        Cause("nvlink"),
        Cause("fabric_manager"),
        Cause("hca_count"),
    ),
)

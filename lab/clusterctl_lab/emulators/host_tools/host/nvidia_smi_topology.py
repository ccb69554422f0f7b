"""`nvidia-smi topo -m`: as recorded on 8 x H100 (NVIDIA/nccl#1264), without its legend.

A GPU and an adapter below one switch are three buses apart; the first half of the GPUs is at the first processor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clusterctl_lab.emulators.host_tools.host.facts import Facts, Gpu, Hca

LINKS = 18
BUSES_APART = 3
"""From an adapter's bus to that of its GPU."""
SECOND_PROCESSOR = 0x80
"""The buses from this one on."""


def table(facts: Facts) -> Iterator[str]:
    gpus, hcas = facts.gpus, facts.hcas
    names = [f"GPU{gpu.index}" for gpu in gpus] + [f"NIC{number}" for number in range(len(hcas))]
    yield "\t".join(["", *names, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"])
    for gpu in gpus:
        cells = [
            *(_joined(gpu, other) for other in gpus),
            *(_near(_bus(gpu.address) - BUSES_APART, hca) for hca in hcas),
        ]
        yield "\t".join([f"GPU{gpu.index}", *cells, *_place(_bus(gpu.address))])
    for number, hca in enumerate(hcas):
        bus = _bus(hca.pci)
        cells = [_near(_bus(gpu.address) - BUSES_APART, hca) for gpu in gpus]
        cells += [" X " if other is hca else _near(bus, other) for other in hcas]
        yield "\t".join([f"NIC{number}", *cells, "", "", "", ""])
    yield from ("", "NIC Legend:", "", *_legend(hcas), "")


def _legend(hcas: Sequence[Hca]) -> Iterator[str]:
    yield from (f"  NIC{number}: {hca.name}" for number, hca in enumerate(hcas))


def _joined(gpu: Gpu, other: Gpu) -> str:
    if gpu is other:
        return " X "
    links = LINKS - max(len(set(gpu.links_down)), len(set(other.links_down)))
    return f"NV{links}" if links else "SYS"


def _near(bus: int, hca: Hca) -> str:
    """Return the column of the adapter next to a GPU."""
    theirs = _bus(hca.pci)
    if bus == theirs:
        return "PIX"
    return "NODE" if (bus < SECOND_PROCESSOR) == (theirs < SECOND_PROCESSOR) else "SYS"


def _place(bus: int) -> tuple[str, str, str, str]:
    second = bus >= SECOND_PROCESSOR
    return ("48-95" if second else "0-47", str(int(second)), "", "N/A")


def _bus(address: str) -> int:
    return int(address[5:7], 16)

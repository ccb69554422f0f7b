"""pcie_width: GPUs and adapters run at their full PCIe width; adapters at full speed too. What is above: pcie_chain."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.host.pci import PciDevice, PciLink, parse_lspci
from clusterctl.formats.nvidia.nvidia_smi import GpuReading
from clusterctl_burnin.check import Area, Check, Expected, inconclusive, known
from clusterctl_burnin.limits.limit import Limits
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError
from clusterctl_burnin.probes.lspci import PCIE_SPEED_MIN, PCIE_WIDTH_MIN, family
from clusterctl_burnin.probes.nvidia_smi import NVIDIA_SMI, each, missing

MELLANOX = Probe("lspci_mellanox", ("lspci", "-D", "-vv", "-d", "15b3:"), role="base")
_NAME = "pcie_width"
_PRIVILEGE = "let the probes run with sudo: lspci needs it to see links"
_REMEDY = (
    "power off, reseat the {0} and its riser or cable, then check the link again; if it stays narrow, replace the {0}"
)


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    """Judge both halves, which different tools measure: one that is silent does not hide the other."""
    found: list[Finding] = []
    for half in (_gpus, _adapters):
        try:
            found.extend(half(readings, expected))
        except (UnmeasuredError, ParseError) as error:
            found.append(inconclusive(_NAME, error))
    yield from found or (passed(_NAME, "GPUs and adapters have their full PCIe width"),)


def _gpus(readings: Readings, expected: Expected) -> Iterator[Finding]:
    limit = expected.limits[PCIE_WIDTH_MIN]

    def narrow(gpu: GpuReading) -> Iterator[Finding]:
        width = known(gpu.pcie_width, "the PCIe width")
        if width < limit.value:
            cause, remedy = "the GPU's PCIe link is narrower than its limit", _REMEDY.format("GPU")
            serial = gpu.serial or ""
            yield Finding(
                check=_NAME,
                verdict=Verdict.FAIL,
                code=Code.PCIE_LINK_POOR,
                subject=gpu.subject,
                cause=cause,
                measured=limit.quantity(width),
                expected=limit.at_least,
                remedy=remedy,
                serial=serial,
            )

    return each(_NAME, readings, expected, narrow)


def _adapters(readings: Readings, expected: Expected) -> Iterator[Finding]:
    """Yield those of the SKU's model; other Mellanox parts (storage, management) are not judged by its width."""
    name = family(expected.sku)
    cards = [device for device in parse_lspci(readings.text(MELLANOX)) if name in device.name.lower()]
    for card in cards:
        if card.current is None:
            error = UnmeasuredError(f"lspci does not show the link of {card.address}", remedy=_PRIVILEGE)
            yield inconclusive(_NAME, error, _subject(card))
        elif _poor(card.current, expected.limits):
            cause, remedy = "the adapter's PCIe link is narrower or slower than its limit", _REMEDY.format("adapter")
            want = f"x{expected.limits[PCIE_WIDTH_MIN]} at {expected.limits[PCIE_SPEED_MIN]} GT/s"
            yield Finding(
                check=_NAME,
                verdict=Verdict.FAIL,
                code=Code.PCIE_LINK_POOR,
                subject=_subject(card),
                cause=cause,
                measured=str(card.current),
                expected=want,
                remedy=remedy,
            )
    yield from missing(_NAME, len(cards), expected.sku.hca_count, "adapters")


def _poor(link: PciLink, limits: Limits) -> bool:
    return link.width < limits[PCIE_WIDTH_MIN].value or link.speed < limits[PCIE_SPEED_MIN].value


def _subject(card: PciDevice) -> str:
    return f"hca {card.address}"


CHECK = Check(
    _NAME,
    (NVIDIA_SMI, MELLANOX),
    _judge,
    area=Area.PCIE,
    limits=(
        PCIE_WIDTH_MIN,
        PCIE_SPEED_MIN,
    ),
)

"""pcie_width: GPUs and adapters run at their full PCIe width; adapters at full speed too. What is above: pcie_chain.

While a load runs, the kernel's AER counters of every PCIe device are read: an uncorrected error fails, corrected ones
are judged as a rate.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.finding import Finding, Verdict, not_applicable, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Quantity, exactly
from clusterctl.formats.host.load_samples import LoadSamples, SampledCounter
from clusterctl.formats.host.pci import PciDevice, PciLink, parse_lspci
from clusterctl.formats.nvidia.nvidia_smi import GpuReading
from clusterctl_burnin.chance import exceeds
from clusterctl_burnin.check import Area, Check, Expected, Watch, inconclusive, known
from clusterctl_burnin.limits.limit import LimitKey, Limits
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError
from clusterctl_burnin.probes.load_samples import LOAD_SAMPLES, require_all_sampled, sampled
from clusterctl_burnin.probes.lspci import PCIE_SPEED_MIN, PCIE_WIDTH_MIN, family
from clusterctl_burnin.probes.nvidia_smi import NVIDIA_SMI, each, missing, read

PCIE_CORRECTED_MAX = LimitKey(
    "pcie_corrected_max",
    "per minute",
    default=10,
    source="own choice, as for the kernel log's messages: a link that repeats oftener is slow",
)
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


def _judge_load(before: Readings, after: Readings, expected: Expected) -> Iterator[Finding]:
    """Judge what each device's AER counters gained, by the samples of the load."""
    del before
    samples = sampled(after)
    if not samples.read.get("pci") and "pci" not in samples.errors:
        yield not_applicable(_NAME, "the kernel counts no AER errors")
        return
    risen = samples.rises("pci")
    for pci in dict.fromkeys(one.part for one in risen):
        yield _aer([one for one in risen if one.part == pci], _part(pci, samples, after), samples, expected)
    require_all_sampled(samples, "pci")


def _part(pci: str, samples: LoadSamples, readings: Readings) -> tuple[str, str]:
    """Return subject and serial of the part at a PCI address."""
    try:
        gpu = next((gpu for gpu in read(readings).gpus if gpu.pci == pci), None)
    except (UnmeasuredError, ParseError):
        gpu = None
    if gpu is not None:
        return gpu.subject, gpu.serial or ""
    return samples.adapters.get(pci, f"pci {pci}"), ""


def _aer(risen: list[SampledCounter], part: tuple[str, str], samples: LoadSamples, expected: Expected) -> Finding:
    corrected = sum(one.rose for one in risen if one.counter == "correctable")
    uncorrected = sum(one.rose for one in risen) - corrected
    limit = expected.limits[PCIE_CORRECTED_MAX]
    bad = uncorrected > 0 or exceeds(corrected, samples.seconds, limit.value / 60)
    counted = ", ".join(f"{one.rose} {one.counter}" for one in risen)
    subject, serial = part
    first = min((at for one in risen for at, _ in one.rises), default=0.0)
    return Finding(
        check=_NAME,
        verdict=Verdict.FAIL if bad else Verdict.WARN,
        code=Code.PCIE_ERRORS,
        subject=subject,
        cause=f"the device at {risen[0].part} reports PCIe errors, first seen in second {first:.0f}: {counted}",
        measured=Quantity(uncorrected or corrected, "errors"),
        expected=exactly(0, "errors") if uncorrected else limit.at_most,
        remedy="power off, reseat the device and its riser or cable; if errors come back, replace the device",
        serial=serial,
        deterministic=False,
    )


CHECK = Check(
    _NAME,
    (NVIDIA_SMI, MELLANOX),
    _judge,
    area=Area.PCIE,
    limits=(
        PCIE_WIDTH_MIN,
        PCIE_SPEED_MIN,
        PCIE_CORRECTED_MAX,
    ),
    watch=Watch((LOAD_SAMPLES, NVIDIA_SMI), _judge_load),
)

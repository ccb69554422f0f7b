"""site_firmware: adapters and GPUs run firmware that the limits file names (`firmware`), by PSID and product name.

What another version means, and what a part that the list does not know, is the list's word: a warning or a failure.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.finding import Finding, not_applicable, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.infiniband.adapters import parse_adapter_boards
from clusterctl.formats.nvidia.nvidia_smi import GpuReading
from clusterctl_burnin.check import Area, Check, Expected, inconclusive, known
from clusterctl_burnin.limits.firmware import PartRequirements
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError
from clusterctl_burnin.probes.ibstat import IBSTAT, compute_adapters, serial_of
from clusterctl_burnin.probes.nvidia_smi import NVIDIA_SMI, each, missing

BOARDS = Probe("adapter_boards", ("adapter-boards",))
_NAME = "site_firmware"
_BURN = "burn the firmware of the limits' list (clusterctl firmware) and reboot, or correct the list"
_FLASH = "bring the GPU to a VBIOS of the limits' list with the machine vendor's update and reboot, or correct the list"
_STRANGER = "check that it is the ordered board; replace it, or add it to the limits' list"


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    requirements = expected.limits.firmware
    if not requirements:
        yield not_applicable(_NAME, "the limits name no firmware")
        return
    found: list[Finding] = []
    for wanted, look in ((requirements.hca, _adapters), (requirements.gpu_vbios, _gpus)):
        try:
            found += look(readings, expected, wanted) if wanted else ()
        except (UnmeasuredError, ParseError) as error:
            found.append(inconclusive(_NAME, error))
    yield from found or (passed(_NAME, "all firmware is in the limits' list"),)


def _adapters(readings: Readings, expected: Expected, wanted: PartRequirements) -> Iterator[Finding]:
    boards, adapters = parse_adapter_boards(readings.text(BOARDS)), compute_adapters(readings, expected.sku)
    for adapter in adapters:
        serial = serial_of(adapter, expected)
        try:
            psid = known(boards.get(adapter.name), f"the PSID of {adapter.name}")
            version = known(adapter.firmware or None, f"{adapter.name}'s firmware")
        except UnmeasuredError as error:
            yield inconclusive(_NAME, error, adapter.name, serial)
        else:
            yield from _part(wanted, (adapter.name, serial), "the adapter's firmware", (psid, version), _BURN)
    yield from missing(_NAME, len(adapters), expected.sku.hca_count, "adapters")


def _gpus(readings: Readings, expected: Expected, wanted: PartRequirements) -> Iterator[Finding]:
    def one(gpu: GpuReading) -> Iterator[Finding]:
        kind, version = known(gpu.model, "the GPU's product name"), known(gpu.vbios, "the GPU's VBIOS")
        yield from _part(wanted, (gpu.subject, gpu.serial or ""), "the GPU's VBIOS", (kind, version), _FLASH)

    return each(_NAME, readings, expected, one)


def _part(
    wanted: PartRequirements, part: tuple[str, str], what: str, is_now: tuple[str, str], update: str
) -> Iterator[Finding]:
    """Return the finding. `part`: name and serial; `is_now`: kind and version."""
    (subject, serial), (kind, version) = part, is_now
    wish = wanted.wanted.get(kind)
    if wish is None:
        cause, listed = f"the limits' list of firmware knows no {kind}", ", ".join(wanted.wanted)
        yield Finding(
            check=_NAME,
            verdict=wanted.stranger,
            code=Code.PART_NOT_LISTED,
            subject=subject,
            cause=cause,
            measured=kind,
            expected=listed,
            remedy=_STRANGER,
            serial=serial,
        )
    elif version not in wish.versions:
        cause, listed = f"{what} is not in the limits' list for {kind}", " or ".join(wish.versions)
        yield Finding(
            check=_NAME,
            verdict=wish.verdict,
            code=Code.FIRMWARE_NOT_LISTED,
            subject=subject,
            cause=cause,
            measured=version,
            expected=listed,
            remedy=update,
            serial=serial,
        )


CHECK = Check(_NAME, (IBSTAT, BOARDS, NVIDIA_SMI), _judge, area=Area.INFINIBAND)

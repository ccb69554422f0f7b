"""Hardware errors in the kernel log: records of the firmware (APEI: GHES, BERT) and statuses of machine checks.

A record of the firmware is printed over several messages. Formats: the Linux kernel's drivers/acpi/apei/ghes.c and
bert.c, drivers/firmware/efi/cper.c, arch/x86/kernel/cpu/mce/core.c, drivers/edac. Fields: UEFI 2.10 appendix N; Intel
SDM volume 3B, chapter 16 (machine-check architecture).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from clusterctl.formats.host.kernel_log import Message

HARDWARE_ERROR = "[Hardware Error]: "
_LINE = re.compile(r"^(?:\{(?P<number>\d+)\})?\[Hardware Error\]: *(?P<body>.*)$")
_PREVIOUS_BOOT = "BERT: Error records from previous boot"
_SEVERITY = re.compile(r"^(?:event severity|severity): (?:\d+, )?(?P<severity>\w+)")
_ENTRY = re.compile(r"^Error \d+, type: (?P<severity>\w+)")
_SECTION = re.compile(r"^section[_ ]type: (?P<section>.+)")
_DIMM = re.compile(r"^(?:DIMM location: |fru_text: )(?P<dimm>(?!not present|unknown)\S.*)")
_DEVICE = re.compile(r"^device_id: (?P<pci>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])")
_CORRECTED = "It has been corrected by h/w"
_SOURCE = "Hardware error from APEI"
_EVENT = "event severity: "
"""Begins a record without its first line, which the kernel's buffer has lost."""
_MACHINE_CHECK = re.compile(
    r"CPU (?P<cpu>\d+): Machine Check(?: Event)?(?P<exception> Exception)?: (?:0x)?[0-9a-f]+ "
    r"Bank (?P<bank>\d+): (?:0x)?(?P<status>[0-9a-f]{16})\b"
)


@dataclass(slots=True)
class ErrorRecord:
    """One record of the firmware.

    severity       fatal, recoverable (uncorrected, the system went on), corrected, info; empty where it is missing
    section        what kind of error it is (`memory error`, `PCIe error`); empty where it is missing
    part           `memory DIMM` or `pci ADDRESS`; empty where the record names none
    previous_boot  True where the firmware kept it from before the reboot
    """

    at: str
    text: str
    previous_boot: bool = False
    severity: str = ""
    section: str = ""
    part: str = ""

    @property
    def uncorrected(self) -> bool:
        return self.severity in ("fatal", "recoverable")

    @property
    def vendors_own(self) -> bool:
        """True where the firmware wrote a record that only its vendor can read."""
        return self.section.startswith(("unknown", "Firmware Error Record"))


@dataclass(slots=True)
class _Reader:
    """Records by the number that GHES gives to each; without a number a line belongs to the previous boot's record."""

    records: list[ErrorRecord] = field(default_factory=list)
    current: dict[str, ErrorRecord] = field(default_factory=dict)
    previous_boot: bool = False

    def read(self, message: Message) -> None:
        if message.text.startswith(_PREVIOUS_BOOT):
            self.previous_boot = True
            self.current.pop("", None)
            return
        line = _LINE.match(message.text)
        if line is None:
            return
        number, body = line["number"] or "", line["body"].strip()
        if not (number or self.previous_boot or number in self.current or body.startswith(_EVENT)):
            return
        _add(self._record(number, body, message), body)

    def _record(self, number: str, body: str, message: Message) -> ErrorRecord:
        known = self.current.get(number)
        begins = body.startswith(_SOURCE) or (_SEVERITY.match(body) and known and known.severity and known.section)
        if known is None or begins:
            known = ErrorRecord(message.at, message.text, previous_boot=not number)
            self.current[number] = known
            self.records.append(known)
        return known


def _add(record: ErrorRecord, body: str) -> None:
    """Take the fields of a line over; the event's own severity outranks that of its entries."""
    if match := _SEVERITY.match(body):
        record.severity, record.text = match["severity"], body
    elif match := _ENTRY.match(body):
        record.severity = record.severity or match["severity"]
    elif body.startswith(_CORRECTED):
        record.severity = record.severity or "corrected"
    elif match := _SECTION.match(body):
        record.section = match["section"]
    elif match := _DIMM.match(body):
        record.part = f"memory {match['dimm'].rstrip()[:60]}"
    elif match := _DEVICE.match(body):
        record.part = f"pci {match['pci']}"


def error_records(messages: Iterable[Message]) -> tuple[ErrorRecord, ...]:
    """Return the records of the firmware, in order."""
    reader = _Reader()
    for message in messages:
        reader.read(message)
    return tuple(reader.records)


@dataclass(frozen=True, slots=True)
class MachineCheck:
    """The status of one bank, as a processor reports it.

    enabled      False where the bank's reporting is off: the error is from before a reset
    uncorrected  the hardware could not correct it
    """

    cpu: int
    bank: int
    exception: bool
    status: int
    at: str
    text: str

    @property
    def uncorrected(self) -> bool:
        return self.exception or bool(self.status >> 61 & 1)

    @property
    def enabled(self) -> bool:
        return self.exception or bool(self.status >> 60 & 1)

    @property
    def of_memory(self) -> bool:
        """True where the error code is that of a memory controller."""
        return self.status & 0xEF80 == 0x0080


def machine_checks(messages: Iterable[Message]) -> Iterator[MachineCheck]:
    """Yield the statuses that processors and EDAC drivers report."""
    for message in messages:
        if match := _MACHINE_CHECK.search(message.text):
            yield MachineCheck(
                int(match["cpu"]),
                int(match["bank"]),
                bool(match["exception"]),
                int(match["status"], 16),
                message.at,
                message.text,
            )

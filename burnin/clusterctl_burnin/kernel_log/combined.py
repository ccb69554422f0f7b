"""Messages that mean something only together.

Records of the firmware and machine checks, the rate of corrected PCIe errors, processes that were killed at the limit
of a container or job, and drives that are none of the node's (USB sticks, the BMC's virtual media, optical drives).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from clusterctl.fleet.finding import Verdict
from clusterctl.formats.host.hardware_errors import ErrorRecord, MachineCheck, error_records, machine_checks
from clusterctl.formats.host.kernel_log import Message


@dataclass(frozen=True, slots=True)
class Judgement:
    """What some messages mean for one part."""

    subject: str
    verdict: Verdict
    cause: str
    remedy: str


_REPLACE = "find the part in the BMC's event log and replace it"
_WATCH = "watch the part; if it is named again and again, replace it"
_VENDOR = "look for an error at the same time in the BMC's event log; ask the vendor to read the record"


def firmware_errors(messages: Sequence[Message]) -> Iterator[Judgement]:
    """Yield one judgement per part and severity of the firmware's records: a block of messages is one error."""
    groups: dict[tuple[str, str, bool], list[ErrorRecord]] = defaultdict(list)
    for record in error_records(messages):
        groups[record.part or "node", record.severity, record.previous_boot].append(record)
    for (subject, severity, previous), records in groups.items():
        first = records[0]
        verdict, remedy = _weight(first)
        when = " before the reboot" if previous else ""
        what = first.section or "an error of unknown kind"
        cause = f"the firmware reported{when}: {what}, severity {severity or 'unknown'} ({_times(records)})"
        yield Judgement(subject, verdict, cause, remedy)


def _weight(record: ErrorRecord) -> tuple[Verdict, str]:
    """Weigh a record; what only the vendor can read, from before the reboot, is for an operator to look at."""
    if not record.severity or (record.uncorrected and record.previous_boot and record.vendors_own):
        return Verdict.INCONCLUSIVE, _VENDOR
    return (Verdict.FAIL, _REPLACE) if record.uncorrected else (Verdict.WARN, _WATCH)


def processor_errors(messages: Iterable[Message]) -> Iterator[Judgement]:
    """Yield one judgement per processor, bank and weight of the machine checks."""
    groups: dict[tuple[int, int, Verdict], list[MachineCheck]] = defaultdict(list)
    for check in machine_checks(messages):
        groups[check.cpu, check.bank, _verdict(check)].append(check)
    for (cpu, bank, verdict), checks in groups.items():
        kind = "memory error" if checks[0].of_memory else "error"
        weight = {Verdict.FAIL: "an uncorrected", Verdict.WARN: "a corrected"}.get(verdict, "an old, unconfirmed")
        cause = f"processor {cpu} reports {weight} {kind} in bank {bank} ({_times(checks)})"
        yield Judgement("node", verdict, cause, {Verdict.FAIL: _REPLACE, Verdict.WARN: _WATCH}.get(verdict, _VENDOR))


def _verdict(check: MachineCheck) -> Verdict:
    if not check.uncorrected:
        return Verdict.WARN
    return Verdict.FAIL if check.enabled else Verdict.INCONCLUSIVE


def _times(errors: Sequence[ErrorRecord] | Sequence[MachineCheck]) -> str:
    first = errors[0]
    return f"{first.at}: {first.text[:160]}" + (f"; {len(errors)} times" if len(errors) > 1 else "")


_PCI = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
_CORRECTED = re.compile(
    rf"\[(?P<at>[^\[\]\n]+)\] \S+ (?P<pci>{_PCI}): (?:AER: )?(?:PCIe Bus Error: severity=Correct|"
    rf"(?:Multiple )?Correct(?:ed|able) error (?:message )?received(?: from|:) (?P<source>{_PCI}))"
)
A_MINUTE, MINUTES = 10, 3
"""More corrected errors a minute than this, in this many minutes: the link repeats so often that it is slow."""


def corrected_pcie(log: str) -> Iterator[Judgement]:
    """Yield the devices with so many corrected errors that their cable or slot is bad.

    The port and the device may each report an error: the larger number counts. A log of many megabytes may hold nothing
    else, so the text is searched as a whole.
    """
    if log.count("Correct") <= A_MINUTE * MINUTES:
        return
    minutes: dict[tuple[str, bool], Counter[str]] = defaultdict(Counter)
    for match in filter(None, map(_CORRECTED.search, _lines_with(log, "Correct"))):
        minutes[match["source"] or match["pci"], match["source"] is None][_minute(match["at"])] += 1
    often = {
        key: sum(counts.values())
        for key, counts in minutes.items()
        if sum(1 for times in counts.values() if times > A_MINUTE) >= MINUTES
    }
    for pci in dict.fromkeys(pci for pci, _ in often):
        total = max(often.get((pci, own), 0) for own in (True, False))
        cause = f"PCIe corrected {total} errors, more than {A_MINUTE} a minute in {MINUTES} minutes or more"
        yield Judgement(f"pci {pci}", Verdict.FAIL, cause, "power off, reseat the device and its cable or riser")


def _lines_with(text: str, word: str) -> Iterator[str]:
    """Yield the lines that hold the word."""
    at = text.find(word)
    while at >= 0:
        end = text.find("\n", at)
        yield text[text.rfind("\n", 0, at) + 1 : end if end >= 0 else len(text)]
        at = text.find(word, end) if end >= 0 else -1


def _minute(at: str) -> str:
    """Return the minute of a time as dmesg prints it: `Fri Jan  2 03:04:05 2026`, `2026-01-02T03:04:05`, `123.4`."""
    seconds = at.strip().partition(".")[0]
    return str(int(seconds) // 60) if seconds.isascii() and seconds.isdigit() else at[:16]


_NAMED = r"(?:slurm|kubepods|docker|libpod|containerd|crio-|lxc|machine\.slice|user\.slice|pbs|htcondor)"
OF_A_USER = rf"[^ ]*,oom_memcg=/[^, ]*{_NAMED}"
"""The control group whose limit was reached, in the kernel's line: one of a container, a job or a user's session."""
_USERS_LIMIT = re.compile(rf"^oom-kill:constraint=CONSTRAINT_MEMCG\b{OF_A_USER}[^ ]*,pid=(?P<pid>\d+)\b")
_KILLED = re.compile(r"^Memory cgroup out of memory: Kill(?:ed)? process (?P<pid>\d+) ")


def explained_kills(messages: Iterable[Message]) -> frozenset[str]:
    """Return the messages about kills that the line before explained: a container, a job or a user had that limit."""
    pids: set[str] = set()
    texts: set[str] = set()
    for message in messages:
        if found := _USERS_LIMIT.match(message.text):
            pids.add(found["pid"])
        elif (found := _KILLED.match(message.text)) and found["pid"] in pids:
            pids.discard(found["pid"])
            texts.add(message.text)
    return frozenset(texts)


MEDIA = re.compile(r"usb-storage|scsi host\d+: uas|\[sd[a-z]+\]|Attached SCSI removable|Direct-Access|CD-ROM|: ATAPI: ")
_USB_HOST = re.compile(r"scsi host(?P<host>\d+): (?:usb-storage|uas)\b")
_VIRTUAL = re.compile(
    r"scsi (?P<place>\d+:\d+:\d+:\d+): (?:CD-ROM|Direct-Access\s.*(?i:\bvirtual|\bremote|\bsdcard|\bLUN 0))"
)
_DISK = re.compile(r"sd (?P<place>(?P<host>\d+):\d+:\d+:\d+): \[(?P<disk>sd[a-z]+)\](?P<removable>.*removable disk)?")
_OPTICAL = re.compile(r"(?P<port>ata\d+\.\d\d): ATAPI: ")


def foreign_drives(messages: Sequence[Message]) -> frozenset[str]:
    """Return names and places of drives that are none of the node's: on USB, removable, virtual, optical."""
    texts = [message.text for message in messages]
    hosts = {match["host"] for match in _found(_USB_HOST, texts)}
    places = {match["place"] for match in _found(_VIRTUAL, texts)}
    disks = _found(_DISK, texts)
    places |= {match["place"] for match in disks if match["removable"] or match["host"] in hosts}
    names = {match["disk"] for match in disks if match["place"] in places}
    return frozenset(places | names | {match["port"] for match in _found(_OPTICAL, texts)})


def _found(pattern: re.Pattern[str], texts: Iterable[str]) -> list[re.Match[str]]:
    return list(filter(None, map(pattern.search, texts)))

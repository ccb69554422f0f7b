"""The reports of machines: their hardware before anything is written, and the progress of installers. Pure."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clusterctl.fleet.errors import EdgeError, ParseError, RootDiskUnclearError
from clusterctl.fleet.hardware.disk_contract import DiskContract, KernelDrive, same_identity
from clusterctl.fleet.node import Serial

MAX_LINES = 4096
MAX_DIGITS = 20
"""Digits of a number: 2^64 has 20."""
_DISK_FIELDS = 6


@dataclass(frozen=True, slots=True)
class MachineReport:
    """The machine by SMBIOS and the installer's kernel. `clock` is its own, in seconds since 1970; `booted` the card by
    which the deployer has its address, empty where it does not report it.
    """

    serial: str
    uuid: str = ""
    manufacturer: str = ""
    product: str = ""
    macs: tuple[str, ...] = ()
    drives: tuple[KernelDrive, ...] = ()
    clock: int | None = None
    booted: str = ""


@dataclass(frozen=True, slots=True)
class ReportRefusal:
    """The reason why the machine must not be written. `decide`: what an operator has to decide first, if anything."""

    why: str
    decide: str = ""


def parse(text: str) -> MachineReport:
    """Parse lines `name=value` as probe.sh prints them; unknown names are ignored. Raises `ParseError`."""
    lines = text.replace("\r", "").split("\n")
    if len(lines) > MAX_LINES:
        raise ParseError("the report is too long")
    values: defaultdict[str, list[str]] = defaultdict(list)
    for line in lines:
        name, equals, value = line.partition("=")
        if not equals and line.strip():
            raise ParseError(f"no line of a report: {line[:80]!r}")
        values[name].append(value)
    if not values["serial"]:
        raise ParseError("the report has no serial")
    clock = _single("clock", values)
    return MachineReport(
        serial=_single("serial", values),
        uuid=_single("uuid", values),
        manufacturer=_single("manufacturer", values),
        product=_single("product", values),
        macs=tuple(value.strip().lower() for value in values["mac"]),
        drives=tuple(map(_drive, values["disk"])),
        clock=_whole(clock) if clock else None,
        booted=_single("booted", values).lower(),
    )


def _single(name: str, values: Mapping[str, Sequence[str]]) -> str:
    """Return the one value of a field, empty where there is none. Raises `ParseError` where there are several."""
    found = values.get(name, ())
    if len(found) > 1:
        raise ParseError(f"the report has {name} twice")
    return found[0].strip() if found else ""


def judge(report: MachineReport, serial: Serial, disk: DiskContract) -> KernelDrive | ReportRefusal:
    """Return the drive that may be overwritten, if the serial is the expected one and one drive alone matches."""
    if not same_identity(report.serial, serial):
        return ReportRefusal(f"the machine that booted reports serial {report.serial or 'unknown'}, its BMC {serial}")
    try:
        return disk.choose(report.drives)
    except EdgeError as error:
        return ReportRefusal(error.message, error.remedy if isinstance(error, RootDiskUnclearError) else "")


def judge_erase(report: MachineReport, serial: Serial, drives: Sequence[Serial]) -> ReportRefusal | None:
    """Return why the machine may not be erased; None where it is the expected one, with exactly these drives.

    `drives`: the serials that its BMC reported and an operator confirmed.
    """
    if not same_identity(report.serial, serial):
        return ReportRefusal(f"the machine that booted reports serial {report.serial or 'unknown'}, its BMC {serial}")
    strange = [str(one) for one in report.drives if not any(same_identity(one.serial, known) for known in drives)]
    absent = [known for known in drives if not any(same_identity(one.serial, known) for one in report.drives)]
    if strange or absent or len(report.drives) != len(drives):
        seen = f"its kernel sees also {', '.join(strange)}" if strange else "its kernel sees other drives"
        lacking = f"; it does not see {', '.join(absent)}" if absent else ""
        return ReportRefusal(f"its drives are not those that its BMC reports: {seen}{lacking}; nothing was erased")
    return None


def _drive(value: str) -> KernelDrive:
    fields = [part.strip() for part in value.split("\t")]
    if len(fields) != _DISK_FIELDS or not fields[0].startswith("/dev/"):
        raise ParseError(f"a disk of a report has {_DISK_FIELDS} fields, separated by tabs: {value[:80]!r}")
    path, serial, wwn, size, model, fingerprint = fields
    return KernelDrive(path, serial, wwn, model, _whole(size), fingerprint)


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS):
        raise ParseError(f"no whole number: {text[:40]!r}")
    return int(text)


LONGEST = 300
_TOKEN = re.compile(r"/t/[0-9a-f]{16,}")
_ASKED = re.compile(r"_(GET|POST|PUT|DELETE)$")
"""Ends the names of requests that subiquity's own screen repeats."""


def message_of(body: bytes | str) -> str:
    """Return one line (`start subiquity/Late/run`) for a report of subiquity (curtin's web hook).

    Empty where the report cannot be parsed, or is the successful end of a step whose start was reported.

    The keys are curtin's: `event_type` (start, finish, …), `name` (where in the installer), `description` (the text of
    a command, too), `result` of what finished, `level`, `origin`, `timestamp`. Never raises: reports are best effort.
    """
    try:
        report = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(report, dict):
        return ""
    event, name, description, result = (_text(report, key) for key in ("event_type", "name", "description", "result"))
    if _ASKED.search(name) or (event, result) == ("finish", "SUCCESS"):
        return ""
    about = "" if description == name else description
    words = ": ".join(part for part in (f"{event} {name}".strip(), result, about) if part)
    return words if len(words) <= LONGEST else words[: LONGEST - 1] + "…"


def _text(report: dict[str, Any], key: str) -> str:
    """Return the first line of a value, printable and without tokens."""
    value = report.get(key)
    lines = value.strip().splitlines() if isinstance(value, str) else []
    line = "".join(letter if letter.isprintable() else " " for letter in lines[0][: 4 * LONGEST]) if lines else ""
    return _TOKEN.sub("/t/…", line)

"""What a sweep found, as text and JSON. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from clusterctl.fleet.bmc.observation import BmcObservation, SweepOutcome
from clusterctl.fleet.bmc.reconciliation import Entry, Reconciliation
from clusterctl.fleet.diagnosis import enumerated
from clusterctl.formats.certificate_pin import with_colons
from clusterctl.operations.documents import redacted
from clusterctl.operations.sweep import SheetChanges, SweepResult
from clusterctl_cli.formats import print_document
from clusterctl_cli.render import lab_note
from clusterctl_cli.text import columns, echo, terminal_width

_HEAD = ("ADDRESS", "NODE", "WHERE", "VENDOR", "MODEL", "SERIAL", "BMC MAC", "FIRMWARE", "WHAT")
_NAMED = 8
_WORDS = {
    SweepOutcome.IDENTIFIED: "identified",
    SweepOutcome.OTHER_DEVICE: "no machine",
    SweepOutcome.NO_LOGIN: "not logged in",
    SweepOutcome.REJECTED: "login rejected",
    SweepOutcome.CERTIFICATE_UNKNOWN: "answers, certificate unknown",
    SweepOutcome.NO_REDFISH: "no Redfish",
    SweepOutcome.NO_ANSWER: "does not answer",
    SweepOutcome.FAILED: "failed",
}


def sweep_text(result: SweepResult) -> str:
    """Return a line for each address that answers; below, what does not fit, what to do, and the counts."""
    addressing, update = result.addressing, result.update
    rows = [_row(entry) for entry in addressing.entries]
    parts = [columns(_HEAD, rows, width=terminal_width())] if rows else []
    parts += ["\n".join(_troubles(addressing))] if any(_troubles(addressing)) else []
    parts += ["\n".join(_written(update))] if update is not None else []
    return "\n\n".join([*parts, _counts(addressing, sum(result.ports.values()))])


def sweep_json(result: SweepResult) -> dict[str, Any]:
    """Return the document of `discover --sweep --json`."""
    addressing, update = result.addressing, result.update
    return {
        "networks": list(result.networks),
        "asked": sum(result.ports.values()),
        "ports": dict(result.ports),
        "bmcs": [_entry_json(entry) for entry in addressing.entries],
        "conflicts": [
            {"kind": found.kind.value, "subjects": list(found.subjects), "cause": found.cause, "remedy": found.remedy}
            for found in addressing.conflicts
        ],
        "written": None if update is None else {"file": str(update.file), "changes": list(update.changes)},
    }


def _entry_json(entry: Entry) -> dict[str, Any]:
    """Return what was found at one address; a text that is not known is null."""
    seen, identity, greeting = entry.observation, entry.observation.identity, entry.observation.greeting
    rack, unit = entry.place
    document = {
        "address": seen.address,
        "outcome": seen.outcome.value,
        "vendor": greeting.vendor,
        "product": greeting.product,
        "redfish_version": greeting.redfish_version,
        "uuid": identity.uuid or greeting.uuid,
        "manufacturer": identity.manufacturer,
        "model": identity.model,
        "serial": seen.serial,
        "claimed_serial": greeting.serial,
        "kind": identity.kind or greeting.kind or "machine",
        "sku": identity.sku,
        "bios": identity.bios,
        "bmc_firmware": identity.bmc_firmware,
        "bmc_mac": entry.mac,
        "certificate": seen.fingerprint,
        "login": seen.login,
        "requests": seen.requests,
        "simulated": greeting.simulated,
        "hostname": entry.hostname,
        "node": entry.name,
        "rack": rack,
        "unit": unit,
        "planned": entry.planned.where if entry.planned is not None else None,
        "listed": entry.listed.where if entry.listed is not None else None,
        "problems": list(identity.problems),
        "cause": seen.cause,
        "remedy": seen.remedy,
    }
    return {key: None if value == "" else value for key, value in document.items()}


def _row(entry: Entry) -> tuple[str, ...]:
    seen, identity = entry.observation, entry.observation.identity
    rack, unit = entry.place
    place = f"{rack} U{unit}" if unit is not None else rack
    product = f"({seen.greeting.product})" if seen.greeting.product else ""
    vendor, serial = seen.greeting.vendor or identity.manufacturer, seen.serial or seen.greeting.serial
    known = (entry.name, place, vendor, identity.model or product, serial, entry.mac)
    return (seen.address, *(word or "-" for word in (*known, identity.bmc_firmware)), _WORDS[seen.outcome])


def _troubles(addressing: Reconciliation) -> Iterator[str]:
    """Yield the failures; hosts with the same cause share one entry."""
    alike: dict[tuple[SweepOutcome, str, str], list[BmcObservation]] = {}
    for entry in addressing.entries:
        seen = entry.observation
        if seen.cause:
            alike.setdefault((seen.outcome, seen.cause, seen.remedy), []).append(seen)
    for (outcome, cause, remedy), observations in alike.items():
        yield f"{enumerated([seen.address for seen in observations], _NAMED)}: {_WORDS[outcome]}: {cause}"
        if outcome is SweepOutcome.CERTIFICATE_UNKNOWN:
            yield from (f"    {seen.address} shows SHA-256 {with_colons(seen.fingerprint)}" for seen in observations)
        yield f"    → {remedy}"
    for found in addressing.conflicts:
        yield f"{found.kind.value.replace('_', ' ')}: {found.cause}"
        yield f"    → {found.remedy}"


def _written(update: SheetChanges) -> Iterator[str]:
    yield f"{update.file}: {len(update.changes)} changes" if update.changes else f"{update.file} is up to date"
    for change in update.changes:
        yield f"    {change}"


def _counts(addressing: Reconciliation, asked: int) -> str:
    outcomes = Counter(entry.observation.outcome for entry in addressing.entries)
    tally = ", ".join(f"{outcomes[outcome]} {_WORDS[outcome]}" for outcome in SweepOutcome if outcomes[outcome])
    conflicts = f", {len(addressing.conflicts)} do not fit" if addressing.conflicts else ""
    note = lab_note(any(entry.observation.greeting.simulated for entry in addressing.entries))
    return f"{asked} addresses asked, {len(addressing.entries)} answer: {tally or 'no BMC'}{conflicts}{note}"


def print_sweep(result: SweepResult, *, as_json: bool) -> None:
    """Print what a sweep found."""
    if as_json:
        print_document(sweep_json(result))
    else:
        echo(redacted(sweep_text(result)))

"""A BMC's log, compared with the machine of today: failed parts, by slot and serial, and what is not in the table.

An entry holds for the time when it was written. What was repaired since, by the log itself or because the part is
healthy again, is history; what the table does not know is reported as new, and stops a node only where it is critical,
recent, and about a present part that is not reported as healthy.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from clusterctl.fleet.bmc.logs import UNREAD, LogEntry
from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.node import Fan, Inventory
from clusterctl.fleet.quantity import Quantity
from clusterctl_burnin.bmc_log.parts import CHECKS, Part, part_of, parts_of, well
from clusterctl_burnin.bmc_log.predecessor import of_its_predecessor
from clusterctl_burnin.bmc_log.table import LogComponent, LogMeaning, LogTable, Weight, shipped_table
from clusterctl_burnin.kernel_log.nvidia_codes import xid_table

CHECK = "event_log"
SHOWN = 3
_CLOCKS_RUN_SINCE = datetime(2015, 1, 1, tzinfo=UTC)
"""A BMC that writes an earlier year has no time set."""
_XID = re.compile(r"\bXID\D{0,3}(\d+)", re.IGNORECASE)
_CHANGING = re.compile(r"0x[0-9a-f]+|\d+", re.IGNORECASE)


_CLOCKS_DIFFER = timedelta(hours=14)
"""A BMC that writes local time without a zone may be off by so much, in either direction."""
IF_REPAIRED = (
    "; if that was repaired since, clear the log (clusterctl bmc clear-log NODE) or answer for it "
    "(clusterctl waive NODE --check event_log)"
)


@dataclass(frozen=True, slots=True)
class Past:
    """What is known of the machine apart from its BMC's answers of today.

    findings  of the last report, so that a new part is not blamed for the entries of the one it replaced
    host_at   when a step last had answers from the installed host; None: never
    """

    findings: Sequence[Finding] = ()
    host_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class _Kept:
    """The newest of the entries with one meaning about one part, and how many there are.

    disproved  a later boot completed, by the log itself
    """

    entry: LogEntry
    meaning: LogMeaning | None
    component: LogComponent
    part: Part | None
    count: int = 1
    disproved: bool = False

    @property
    def key(self) -> tuple[str, str]:
        kind = self.meaning.rule.name if self.meaning else _kind(self.entry)
        return kind, self.part.slot if self.part else self.meaning.part if self.meaning else ""

    @property
    def subject(self) -> str:
        if self.part is not None:
            return self.part.slot
        named = self.meaning.part if self.meaning else ""
        return f"{self.component.value} {named}".strip()


def judge_log(
    entries: Sequence[LogEntry],
    inventory: Inventory,
    found: Sequence[Finding],
    now: datetime,
    *,
    table: LogTable | None = None,
    past: Past = Past(),
) -> tuple[Finding, ...]:
    """Return `found` by the inventory, then the log's own; the same entry about a failing part is its consequence."""
    table = table or shipped_table()
    read = _without_unread(entries)
    if entries and not read:
        return (*found, _no_log(entries))
    kept = [_booted_since(one, inventory, past) for one in _standing(read, inventory, table)]
    findings = [(one, _finding(one, inventory, now, table.recent)) for one in kept]
    judged = [(one, finding) for one, finding in findings if finding is not None]
    own = [_linked(one, of_its_predecessor(finding, past.findings), found) for one, finding in judged]
    new = _not_judged(kept, {one.key for one, _ in judged})
    return (*_rolled_up(found, own), *own, _summary(read, new, now, table.recent))


def _without_unread(entries: Sequence[LogEntry]) -> list[LogEntry]:
    return [entry for entry in entries if entry.message_id != UNREAD]


def _not_judged(kept: Sequence[_Kept], judged: Collection[tuple[str, str]]) -> list[_Kept]:
    """Return what the table does not know and no finding is about."""
    return [one for one in kept if one.meaning is None and one.key not in judged]


def weighs(entry: LogEntry) -> bool:
    """Return whether an entry matters to an operator: fatal, degraded, or not in the table; an unread log does not."""
    meaning = shipped_table().meaning(entry)
    return entry.message_id != UNREAD if meaning is None else meaning.rule.weight in (Weight.FATAL, Weight.DEGRADED)


def _standing(entries: Sequence[LogEntry], inventory: Inventory, table: LogTable) -> list[_Kept]:
    """Return what is still in force, newest first; `entries` are newest first."""
    kept: dict[tuple[str, str], _Kept] = {}
    for entry in reversed(entries):
        one = _read(entry, inventory, table)
        weight = one.meaning.rule.weight if one.meaning else None
        if weight is Weight.REPAIRED:
            kept = {key: old for key, old in kept.items() if not _repairs(one, key)}
        elif weight is Weight.BOOTED:
            kept = {key: _disproved_by(old, entry) for key, old in kept.items()}
        elif entry.cleared:
            kept.pop(one.key, None)
        elif weight is not Weight.NOISE:
            before = kept.pop(one.key).count if one.key in kept else 0
            kept[one.key] = replace(one, count=before + 1)
    return list(reversed(kept.values()))


def _disproved_by(old: _Kept, boot: LogEntry) -> _Kept:
    """Return `old` as disproved where the boot is certainly later: an entry without a time may be of any time."""
    until_boot = old.meaning is not None and old.meaning.rule.until_boot
    later = _is_after(_time(boot.at), _time(old.entry.at))
    return replace(old, disproved=True) if until_boot and later else old


def _booted_since(one: _Kept, inventory: Inventory, past: Past) -> _Kept:
    """Return `one` as disproved where BMC or host prove that the machine has booted since.

    A BMC that reports the state of today without a time means today.
    """
    if one.meaning is None or not one.meaning.rule.until_boot or one.disproved:
        return one
    then = _time(one.entry.at)
    ended = _time(inventory.posted or "")
    now_up = inventory.posted is not None and (ended is None or _is_after(ended, then))
    answered = past.host_at - _CLOCKS_DIFFER if past.host_at is not None else None
    return replace(one, disproved=now_up or _is_after(answered, then))


def _is_after(later: datetime | None, then: datetime | None) -> bool:
    """Return whether both times are known, and in this order."""
    return later is not None and then is not None and later > then


def _repairs(one: _Kept, key: tuple[str, str]) -> bool:
    """Return whether `one` reports the repair of that kind and part: the same part, or one of either without a name."""
    kind, part = key
    known = one.meaning is not None and kind in one.meaning.rule.repairs
    return known and (not one.key[1] or not part or one.key[1] == part)


def _read(entry: LogEntry, inventory: Inventory, table: LogTable) -> _Kept:
    meaning = table.meaning(entry)
    kinds = [meaning.rule.component] if meaning else list(CHECKS)
    parts = [part for kind in kinds for part in parts_of(inventory, kind)]
    part = part_of(entry, meaning.part if meaning else "", parts)
    component = meaning.rule.component if meaning else _component(part, inventory)
    return _Kept(entry, meaning, component, part)


def _component(part: Part | None, inventory: Inventory) -> LogComponent:
    owners = (kind for kind in CHECKS if part is not None and part in parts_of(inventory, kind))
    return next(owners, LogComponent.SYSTEM)


def _finding(one: _Kept, inventory: Inventory, now: datetime, recent: timedelta) -> Finding | None:
    """Return the finding; None where it is history, or only counts as new."""
    age = _age(one.entry, now)
    today = well(inventory, one.component, one.part)
    certainly_fresh = age is not None and age <= recent
    fresh = age is None or certainly_fresh
    if one.meaning is None:
        return _diagnosed(one, Verdict.FAIL, "") if certainly_fresh and _is_dangerous(one, today) else None
    weight, meaning, remedy = _weighed(one)
    if one.disproved:
        return _diagnosed(one, Verdict.WARN, "the machine has booted since")
    if _is_history(weight, today=today, fresh=fresh):
        return None
    if today is True and not one.meaning.rule.lasting:
        return None if weight is Weight.DEGRADED else _diagnosed(one, Verdict.WARN, "healthy again by the BMC")
    stands = fresh if one.meaning.rule.lasting else today is False or certainly_fresh
    return _diagnosed(one, Verdict.FAIL if stands and weight is Weight.FATAL else Verdict.WARN, meaning, remedy)


def _is_dangerous(one: _Kept, today: bool | None) -> bool:
    """Return whether an entry outside the table stops the node, if it is recent."""
    return one.entry.severity == "Critical" and one.part is not None and today is not True


def _is_history(weight: Weight, *, today: bool | None, fresh: bool) -> bool:
    return weight is Weight.NOISE or (not fresh and (today is True or weight is Weight.DEGRADED))


def _weighed(one: _Kept) -> tuple[Weight, str, str]:
    """Return weight, meaning and remedy: the rule's, but for Xids, each of which has its own."""
    number = _XID.search(one.entry.message) if one.component is LogComponent.GPU else None
    row = xid_table().get(int(number[1])) if number else None
    rule = one.meaning.rule if one.meaning else None
    if row is None:
        return (rule.weight if rule else Weight.DEGRADED), "", ""
    weight = Weight.FATAL if row.action.verdict is Verdict.FAIL else Weight.DEGRADED
    return weight, f"Xid {row.code}, {row.meaning}", row.action.remedy


def _diagnosed(one: _Kept, verdict: Verdict, meaning: str, remedy: str = "") -> Finding:
    times = f", {one.count} times" if one.count > 1 else ""
    more = f" ({meaning})" if meaning else ""
    rule = one.meaning.rule if one.meaning else None
    rule_remedy = (
        rule.remedy.format(part=_label(one))
        if rule
        else ("look the entry up with the vendor, and repair what it names")
    )
    return Finding(
        check=CHECK,
        verdict=verdict,
        code=Code.LOG_ENTRY,
        subject=one.subject,
        cause=f"the BMC's log reports{times}, last at {one.entry.at or 'no time'}: {one.entry.message[:200]}{more}",
        measured=rule.name if rule else _kind(one.entry),
        remedy=remedy or rule_remedy or "check whether it comes back",
        serial=_serial(one.part),
        fault=_identity(one),
    )


def _identity(one: _Kept) -> str:
    """Return the identity, equal as long as the log adds nothing: its newest entry, and how many there are."""
    entry = one.entry
    content = "\n".join((entry.log, entry.at, entry.message_id, entry.message, str(one.count)))
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def _label(one: _Kept) -> str:
    if one.part is None:
        return one.subject
    serial = _serial(one.part)
    return f"{one.part.slot} (serial {serial})" if serial else one.part.slot


def _serial(part: Part | None) -> str:
    return "" if part is None or isinstance(part, Fan) else part.serial or ""


def _linked(one: _Kept, finding: Finding, found: Sequence[Finding]) -> Finding:
    """Link it to the part that fails by the inventory: the same, or any of its kind where it has no name."""
    for other in found:
        if other.verdict is Verdict.FAIL and _explains(other, one, finding):
            return replace(finding, root=other.root or other.key)
    return replace(finding, remedy=finding.remedy + IF_REPAIRED) if finding.verdict is Verdict.FAIL else finding


def _explains(other: Finding, one: _Kept, finding: Finding) -> bool:
    if one.part is None and other.check == CHECKS.get(one.component):
        return True
    return finding.subject == other.subject or bool(finding.serial and finding.serial == other.serial)


def _rolled_up(found: Sequence[Finding], own: Sequence[Finding]) -> Iterator[Finding]:
    """Yield each roll-up that no part explains as a consequence of the log."""
    failed = next((finding for finding in own if finding.verdict is Verdict.FAIL), None)
    for finding in found:
        unexplained = finding.check == "bmc_health" and finding.verdict is not Verdict.PASS and not finding.root
        yield replace(finding, root=failed.root or failed.key) if failed and unexplained else finding


def _no_log(lost: Sequence[LogEntry]) -> Finding:
    """Return unmeasured where the BMC has logs and gives none of them; a warning where it has none."""
    listed = any(entry.log for entry in lost)
    return Finding(
        check=CHECK,
        verdict=Verdict.INCONCLUSIVE if listed else Verdict.WARN,
        code=Code.NOT_REPORTED,
        subject="bmc",
        cause=f"no log could be read: {lost[0].message[:200]}",
        remedy="discover it again; if its logs stay unreadable, reset the BMC, then update its firmware"
        if listed
        else "ask the vendor where this BMC keeps its hardware log",
        deterministic=not listed,
    )


def _summary(entries: Sequence[LogEntry], new: Sequence[_Kept], now: datetime, recent: timedelta) -> Finding:
    """Return how much there is, and the kinds that the table does not know; those that BMCs call OK only count."""
    count = f"{len(entries)} entries"
    loud = [one for one in new if one.entry.severity != "OK" and ((_age(one.entry, now) or timedelta()) <= recent)]
    quiet = f", {len(new) - len(loud)} old or harmless kinds outside the table" if len(new) > len(loud) else ""
    if not loud:
        return passed(CHECK, f"{count}, none of them open{quiet}", subject="bmc")
    shown = "; ".join(f"{one.entry.at} {one.entry.severity} {one.entry.message[:120]}" for one in loud[:SHOWN])
    return Finding(
        check=CHECK,
        verdict=Verdict.WARN,
        code=Code.LOG_ENTRIES_UNKNOWN,
        subject="bmc",
        cause=f"{count}, {len(loud)} new kinds, newest: {shown}{quiet}",
        measured=Quantity(len(loud), "new kinds"),
        remedy="look them up with the vendor, repair what they name, and add them to the table of known entries",
    )


def _age(entry: LogEntry, now: datetime) -> timedelta | None:
    """Return None where the BMC's clock was not set, or what it wrote is no time."""
    at = _time(entry.at)
    return None if at is None else now - at


def _time(text: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return None if at < _CLOCKS_RUN_SINCE else at


def _kind(entry: LogEntry) -> str:
    """Return the message without its numbers: what entries of one kind have in common."""
    return _CHANGING.sub("#", entry.message)[:120]

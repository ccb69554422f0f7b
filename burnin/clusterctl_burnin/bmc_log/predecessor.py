"""Entries of a BMC's log about a part that was since replaced: the same entries, with another part in the slot.

No clock is read: a BMC's own may be hours off. Entries about the slot from the time of another part, with no later
entry, are that other part's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code

REMEDY = "clear the log once the repair is proven: clusterctl bmc clear-log"


def of_its_predecessor(finding: Finding, before: Sequence[Finding]) -> Finding:
    """Return `finding`, or a warning about the part that sat there when `before`, of the last report, was judged.

    It keeps that part's serial, so that the next look recognises it again.
    """
    if finding.verdict is not Verdict.FAIL or not finding.serial:
        return finding
    other = next((old.serial for old in before if _same_entries(old, finding) and old.serial != finding.serial), "")
    if not other:
        return finding
    cause = f"{finding.cause}; that was the part before it, serial {other}"
    code = Code.LOG_ENTRY_OF_PREDECESSOR
    return replace(finding, verdict=Verdict.WARN, code=code, serial=other, cause=cause, remedy=REMEDY)


def _same_entries(old: Finding, new: Finding) -> bool:
    same = (old.check, old.subject, old.measured, old.fault) == (new.check, new.subject, new.measured, new.fault)
    return same and bool(old.serial and old.fault)

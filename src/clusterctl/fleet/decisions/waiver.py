"""Waivers: an operator accepts a finding until a date. The gate takes it for a warning; it stays what it was."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from clusterctl.fleet.durations import utc_text
from clusterctl.fleet.finding import Finding, Report, Verdict

LONGEST = timedelta(days=90)

NEVER: Mapping[str, str] = {
    "identity": "which machine this is cannot be a matter of opinion",
    "bmc": "nothing is known of a machine with a BMC that cannot be read",
    "sku_model": "without a SKU it is unknown what to expect of the machine; add the SKU to the site",
    "root_disk": "it names the disk that is overwritten",
    "install": "later steps work on the OS that it puts there",
    "configure": "later steps work with what the roles put there",
    "admission": "it only repeats what the other reports are",
}
"""Checks that later steps rest on: a waiver would act on the unknown. Check → reason."""


@dataclass(frozen=True, slots=True)
class Waiver:
    """`by` answers for what `check` finds on `subject` (empty: on any part) from `at` `until` then."""

    check: str
    subject: str
    reason: str
    by: str
    at: datetime
    until: datetime

    def active(self, now: datetime) -> bool:
        return now < self.until

    def names(self, finding: Finding) -> bool:
        """Return whether this finding is meant."""
        subject = not self.subject or same_part(self.subject, finding.subject)
        return self.check == finding.check and subject and finding.check not in NEVER

    @property
    def what(self) -> str:
        """`gpu_ecc of gpu 3`."""
        return f"{self.check} of {self.subject}" if self.subject else self.check

    def __str__(self) -> str:
        return f"waived by {self.by} until {utc_text(self.until)}: {self.reason}"


def same_part(one: str, other: str) -> bool:
    """Compare names of parts: `gpu3` and `GPU 3` are one part."""
    return "".join(one.split()).casefold() == "".join(other.split()).casefold()


def waiver_of(finding: Finding, waivers: Iterable[Waiver], now: datetime) -> Waiver | None:
    """Return the waiver of a finding that keeps the node back: the finding's own, or that of its root."""
    if finding.verdict.admits or finding.check in NEVER:
        return None
    active = [waiver for waiver in waivers if waiver.active(now)]
    own = next((waiver for waiver in active if waiver.names(finding)), None)
    return own or next((waiver for waiver in active if waiver.names(_root(finding))), None)


def waived(report: Report, waivers: Iterable[Waiver], now: datetime) -> Report:
    """Return the report as the gate reads it: a waived finding counts as WARN, and names its verdict.

    A report in which nothing at all was measured stays as it is: a waiver covers only what was measured.
    """
    active = [waiver for waiver in waivers if waiver.active(now)]
    if not active or not _measured(report):
        return report
    findings = tuple(_warning(finding, waiver_of(finding, active, now)) for finding in report.findings)
    return replace(report, findings=findings)


def _measured(report: Report) -> bool:
    unmeasured = (Verdict.INCONCLUSIVE, Verdict.NOT_APPLICABLE)
    return any(finding.verdict not in unmeasured for finding in report.findings)


def _warning(finding: Finding, waiver: Waiver | None) -> Finding:
    if waiver is None:
        return finding
    return replace(finding, verdict=Verdict.WARN, cause=f"{waiver} (it is {finding.verdict.value}: {finding.cause})")


def _root(finding: Finding) -> Finding:
    """Return the check and subject that the finding follows from (`Finding.root` is their key)."""
    check, _, subject = finding.root.partition(":")
    return Finding(check=check, verdict=finding.verdict, code=finding.code, subject=subject)

"""Labelled lines of kernel logs (`data/kernel_log/lines`), and what the check makes of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from clusterctl.fleet.finding import Finding, Verdict, worst
from clusterctl_burnin.registry import CHECKS
from tests.burnin.kit import expected, readings

LINES = Path(__file__).parent / "data" / "kernel_log" / "lines"
_ADMITTED = frozenset({Verdict.PASS, Verdict.WARN})
LABELS = {
    "fail": frozenset({Verdict.FAIL}),
    "held": frozenset({Verdict.FAIL, Verdict.INCONCLUSIVE}),
    "unclear": frozenset({Verdict.INCONCLUSIVE}),
    "admit": _ADMITTED,
}
"""The verdicts that satisfy a label."""


@dataclass(frozen=True)
class Case:
    """Messages of one label; `subject` is empty where any will do."""

    label: str
    level: str
    source: str
    subject: str
    messages: tuple[str, ...]

    def findings(self) -> tuple[Finding, ...]:
        """Judge a healthy node's log with these messages at its end."""
        log = "".join(f"kern  :{self.level:6}: [Fri Jan  2 03:04:05 2026] {text}\n" for text in self.messages)
        return CHECKS["kernel_log"].findings(readings(dmesg=lambda healthy: healthy + log), expected(inventory=None))

    def mistake(self) -> str:
        """Return what the check makes of the case instead of its label; empty where it is right."""
        found = self.findings()
        verdict = worst(finding.verdict for finding in found)
        subjects = {finding.subject for finding in found if finding.verdict is verdict}
        if verdict not in LABELS[self.label]:
            return f"{self.label}, found {verdict.value}: {self.messages[-1]}"
        if self.subject and not any(self.subject in subject for subject in subjects) and verdict is not Verdict.PASS:
            return f"{self.subject}, found {', '.join(sorted(subjects))}: {self.messages[-1]}"
        return ""


def cases(file: Path) -> Iterator[Case]:
    """Yield the cases of a file; the README of the folder explains the layout."""
    header: list[str] = []
    messages: list[str] = []
    for line in [*file.read_text().splitlines(), "@"]:
        if line.startswith("+ "):
            messages.append(line[2:])
        elif not line.startswith("#"):
            if messages:
                yield _case(header, messages)
            messages = []
            if line.startswith("@ "):
                header = [field.strip() for field in line[2:].split(" | ")]
            elif line and line != "@":
                messages = [line]


def _case(header: list[str], messages: list[str]) -> Case:
    label, level, source, *subject = header
    return Case(label, level, source, subject[0] if subject else "", tuple(messages))

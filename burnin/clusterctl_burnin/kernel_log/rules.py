"""What a rule for kernel messages is, and which rule fits a message. The rules themselves: `rule_table`."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from clusterctl.fleet.blame import Blame, Certainty, Layer, Role
from clusterctl.fleet.finding import Verdict


@dataclass(frozen=True, slots=True)
class Rule:
    """What messages of one class mean. `kind` is the kind of part that the finding is about; `blame` is set where a job
    that fails with the message has another layer to blame than `kind` and `verdict` give. `pieces`: each pattern, in
    regular expressions that must all match: the first at the beginning of the message, the last one anywhere. Those
    after one that does not match are not compiled: a whole pattern takes up to 6 ms.
    """

    kind: str
    verdict: Verdict
    words: tuple[str, ...]
    patterns: tuple[str, ...]
    cause: str
    remedy: str = ""
    blame: Blame | None = None
    pieces: tuple[tuple[str, ...], ...] = ()

    @property
    def blamed(self) -> Blame:
        """Which layer the message blames where a job fails with it."""
        if self.blame is not None:
            return self.blame
        layer = Layer.FABRIC if self.kind in _OF_FABRIC else Layer.HARDWARE
        if self.verdict in (Verdict.PASS, Verdict.WARN):
            return Blame(layer, Certainty.UNKNOWN, Role.CONTEXT)
        return Blame(layer, Certainty.LIKELY, Role.CAUSE)

    def part(self, text: str) -> str | None:
        """Return the part that the message names, empty where it names none; None where the rule does not fit."""
        if not any(word in text for word in self.words):
            return None
        for *before, last in self.pieces or zip(self.patterns, strict=True):
            if not all(compiled(piece).match(text) for piece in before):
                continue
            if match := compiled(last).search(text):
                return match.groupdict().get("part") or ""
        return None


@dataclass(frozen=True, slots=True)
class Hit:
    """A rule that fits a message, and the part that the message names."""

    rule: Rule
    part: str

    @property
    def subject(self) -> str:
        return f"{self.rule.kind} {self.part}" if self.part else _SUBJECTS.get(self.rule.kind, self.rule.kind)


_OF_FABRIC = frozenset({"hca", "nic"})
_SUBJECTS = {"memory": "node", "drive": "node", "nvme": "node"}
"""The subject of a message that names no part: the node, where several parts of the kind are usual."""


@dataclass(frozen=True, slots=True)
class KernelLogRules:
    """All rules, in order. `suspicious`, `needed`: patterns, which few nodes have a message for."""

    rules: tuple[Rule, ...]
    suspicious: tuple[str, ...]
    needed: tuple[str, ...]

    def match(self, text: str) -> Hit | None:
        """Return the first rule that fits the message."""
        for rule in self.rules:
            part = rule.part(text)
            if part is not None:
                return Hit(rule, part)
        return None

    def suspects(self, text: str) -> bool:
        """Return True where a message that no rule knows reports an error of the hardware or of its driver."""
        return any(compiled(pattern).search(text) for pattern in self.suspicious)

    def concerns_training(self, text: str) -> bool:
        """Return True where a driver of a part that training needs has written the message."""
        return any(compiled(pattern).search(text) for pattern in self.needed)


@functools.cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern of a rule. Compiled for the first message that has the rule's words: few of 300 are needed."""
    return re.compile(pattern)

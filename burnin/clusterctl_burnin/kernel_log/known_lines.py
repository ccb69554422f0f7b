"""Kernel messages that are known to be harmless: the shipped ones (`data/kernel_lines.tsv`) and a site's."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from clusterctl.formats.host.kernel_log import Message, template
from clusterctl_burnin.package_data import text_of

SEVERE = ("emerg", "alert", "crit")
"""Levels at which a shipped row counts only where it is marked so. A site's entries count at any level."""
ANY_LEVEL = "any level"
"""The mark, in the third column."""


@dataclass(frozen=True, slots=True)
class KnownLines:
    """`templates` as a finding quotes them, and regular expressions that match anywhere in a message."""

    templates: frozenset[str] = frozenset()
    patterns: tuple[str, ...] = ()

    def test(self) -> KnownTest:
        """Return a test for these and the shipped ones."""
        usual, severe = ((*shipped_patterns(severe=severe), *self.patterns) for severe in (False, True))
        return KnownTest(self.templates, _combined(usual), functools.partial(_combined, severe))


@dataclass(frozen=True, slots=True)
class KnownTest:
    """Return True for a message that is known. `severe`: compiled for the first severe message; few nodes have one."""

    templates: frozenset[str]
    usual: re.Pattern[str]
    severe: Callable[[], re.Pattern[str]]

    def __call__(self, message: Message) -> bool:
        pattern = self.severe() if message.level in SEVERE else self.usual
        return pattern.search(message.text) is not None or template(message.text) in self.templates


@functools.cache
def shipped_patterns(*, severe: bool = False) -> tuple[str, ...]:
    """Return the shipped patterns; `severe`: only those that count at the severe levels, too."""
    lines = text_of("data/kernel_lines.tsv").splitlines()
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    return tuple(row[0] for row in rows if not severe or row[2:] == [ANY_LEVEL])


@functools.lru_cache(maxsize=16)
def _combined(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))

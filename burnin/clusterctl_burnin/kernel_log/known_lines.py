"""Kernel messages that are known to be harmless: the shipped ones (`data/kernel_lines.tsv`) and a site's."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass

from clusterctl.formats.host.kernel_log import template
from clusterctl_burnin.package_data import text_of


@dataclass(frozen=True, slots=True)
class KnownLines:
    """`templates` as a finding quotes them, and regular expressions that match anywhere in a message."""

    templates: frozenset[str] = frozenset()
    patterns: tuple[str, ...] = ()

    def test(self) -> KnownTest:
        """Return a test for these and the shipped ones."""
        return KnownTest(self.templates, _combined((*shipped_patterns(), *self.patterns)))


@dataclass(frozen=True, slots=True)
class KnownTest:
    """Return True for a message that is known."""

    templates: frozenset[str]
    pattern: re.Pattern[str]

    def __call__(self, text: str) -> bool:
        return self.pattern.search(text) is not None or template(text) in self.templates


@functools.cache
def shipped_patterns() -> tuple[str, ...]:
    lines = text_of("data/kernel_lines.tsv").splitlines()
    return tuple(line.split("\t")[0] for line in lines if line and not line.startswith("#"))


@functools.lru_cache(maxsize=16)
def _combined(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))

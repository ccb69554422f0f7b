"""Refuses YAML that is no settings file before any of it is built: bombs of aliases, bottomless nesting, tags.

Reads the parser's events one by one, without recursion, so that nothing a file holds can exhaust stack or memory.
"""

from __future__ import annotations

from collections.abc import Iterable

import yaml

from clusterctl.fleet.errors import UsageError

MAX_DEPTH = 32
MAX_VALUES = 200_000
"""Each alias counted as all that it stands for. A site file that lists 4,096 nodes one by one holds 60,000."""


def guard(events: Iterable[yaml.Event], file: str) -> None:
    """Raise `UsageError` naming file and line; `yaml.YAMLError` where it is not YAML at all."""
    counter = _Counter(file)
    documents = 0
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise _error(event, file, "a second document begins here", "keep one: take the line --- out")
        elif isinstance(event, yaml.AliasEvent):
            counter.alias(event)
        elif isinstance(event, yaml.NodeEvent):
            counter.node(event)
        elif isinstance(event, (yaml.SequenceEndEvent, yaml.MappingEndEvent)):
            counter.close()


class _Counter:
    """How many values there are, in each open collection and behind each anchor."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._open: list[tuple[str | None, int]] = []
        self._behind: dict[str, int] = {}
        self._total = 0

    def node(self, event: yaml.NodeEvent) -> None:
        if isinstance(event, (yaml.ScalarEvent, yaml.CollectionStartEvent)) and event.tag not in (None, "!"):
            raise _error(event, self._file, f"the tag {event.tag} is not understood", "write the plain value")
        self._add(event, 1)
        if isinstance(event, yaml.CollectionStartEvent):
            self._open.append((event.anchor, self._total))
            if len(self._open) > MAX_DEPTH:
                message = f"nests deeper than {MAX_DEPTH} levels"
                raise _error(event, self._file, message, "is it the right file? docs/site-file.md shows its shape")
        elif event.anchor:
            self._behind[event.anchor] = 1

    def close(self) -> None:
        anchor, before = self._open.pop()
        if anchor:
            self._behind[anchor] = self._total - before + 1

    def alias(self, event: yaml.AliasEvent) -> None:
        if any(anchor == event.anchor for anchor, _ in self._open):
            raise _error(event, self._file, f"*{event.anchor} stands within itself", "write the values out")
        self._add(event, self._behind.get(event.anchor or "", 1))

    def _add(self, event: yaml.Event, count: int) -> None:
        self._total += count
        if self._total > MAX_VALUES:
            message = f"holds more than {MAX_VALUES:,} values"
            raise _error(event, self._file, message, "write fewer values, and fewer aliases of aliases")


def _error(event: yaml.Event, file: str, message: str, remedy: str) -> UsageError:
    line = event.start_mark.line + 1 if event.start_mark else 1
    return UsageError(message, where=f"{file}:{line}", remedy=remedy)

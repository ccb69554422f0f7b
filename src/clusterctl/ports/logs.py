"""Lines of nodes' logs, and where they are read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from clusterctl.formats.node_logs import LogLine
from clusterctl.ports.deadline import Deadline


@dataclass(frozen=True, slots=True, kw_only=True)
class LogWindow:
    """Which lines are wanted: from `since` to `until`, with `text` in them where it is given; the newest `at_most`.

    Case is ignored in `text`, which is plain text and no pattern.
    """

    since: datetime
    until: datetime
    text: str = ""
    at_most: int = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLines:
    """Lines of a window, oldest first.

    cut         older lines of the window were left out, since there are more than `at_most`
    unreadable  lines that were not understood and are missing here
    complete    the log goes back to before the window; None where that is not known
    """

    lines: tuple[LogLine, ...] = ()
    cut: bool = False
    unreadable: int = 0
    complete: bool | None = None


class LogStore(Protocol):
    """A store to which the nodes send their logs. Raises `EdgeError` and `ParseError`."""

    def read(self, node: str, window: LogWindow, deadline: Deadline) -> LogLines: ...

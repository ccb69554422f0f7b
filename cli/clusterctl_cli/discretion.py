"""Keeps secrets out of what a process says beside its results: log lines, last words, core dumps."""

from __future__ import annotations

import logging
import resource
import sys
import threading
import traceback
from types import TracebackType

from clusterctl.operations.documents import redacted


class DiscreetFormatter(logging.Formatter):
    """Takes out of each line, its traceback included, every secret that this process has read."""

    def format(self, record: logging.LogRecord) -> str:
        return redacted(super().format(record))


def begin() -> None:
    """From now on no core is dumped, and an error that nobody caught repeats no secret."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    sys.excepthook = last_words
    threading.excepthook = lambda told: last_words(told.exc_type, told.exc_value, told.exc_traceback)


def last_words(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
    """A traceback on stderr: files, lines and messages, never the values of variables."""
    sys.stderr.write(redacted("".join(traceback.format_exception(kind, error, trace))))

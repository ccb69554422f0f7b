"""Secrets stay out of tracebacks and core dumps."""

from __future__ import annotations

import resource
import sys
import threading
import traceback
from types import TracebackType

from clusterctl.fleet.peer_text import visible
from clusterctl.operations.documents import redacted


def harden() -> None:
    """Switch core dumps off, and redact the tracebacks of uncaught errors."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    sys.excepthook = print_traceback
    threading.excepthook = lambda error: print_traceback(error.exc_type, error.exc_value, error.exc_traceback)


def print_traceback(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
    """Print a traceback on stderr: files, lines and messages, never the values of variables."""
    sys.stderr.write(visible(redacted("".join(traceback.format_exception(kind, error, trace)))))

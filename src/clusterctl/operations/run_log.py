"""The log file of a run, without secrets: what the program logs, and the lines that a front end prints."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from clusterctl.edges.tally import counts
from clusterctl.fleet.peer_text import visible
from clusterctl.operations.documents import redacted

if TYPE_CHECKING:
    from clusterctl.operations.context import SiteContext

FOLDER = "logs"
"""In the site's folder `state`."""
FORM = "%(asctime)s %(levelname)s %(threadName)s %(name)s: %(message)s"
PROGRESS = "clusterctl.progress"
"""Logger of the lines that a front end prints during a run."""


class RedactingFormatter(logging.Formatter):
    """Replaces each secret that this process has read, and shows what peers hide, in log lines and their tracebacks.

    Every line after the first is indented, also those of a traceback: no text of a peer looks like a line of the log.
    Times are UTC.
    """

    converter = staticmethod(time.gmtime)
    default_msec_format = "%s.%03dZ"

    def format(self, record: logging.LogRecord) -> str:
        return visible(redacted(super().format(record))).replace("\n", "\n    ")


def requests_made() -> str:
    """Return what this process has asked of others so far: `4 requests to BMCs, 1 commands on hosts`."""
    return ", ".join(f"{number} {asked}" for asked, number in counts().items()) or "nothing asked of any machine"


@contextmanager
def run_log(context: SiteContext) -> Iterator[Path]:
    """Yield the file that logs of level INFO go to while a run lasts; it is made for the first of them."""
    from clusterctl.edges.run_log import run_log_handler  # here, not above: --help has no use for it

    handler = run_log_handler(context.site.folder / "state" / FOLDER, context.run)
    handler.setFormatter(RedactingFormatter(FORM))
    handler.setLevel(logging.INFO)
    ours, root = logging.getLogger("clusterctl"), logging.getLogger()
    before = ours.level
    ours.setLevel(min(ours.getEffectiveLevel(), logging.INFO))
    root.addHandler(handler)
    try:
        yield Path(handler.baseFilename)
    finally:
        root.removeHandler(handler)
        ours.setLevel(before)
        handler.close()

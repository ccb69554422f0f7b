"""A signal stops a run whatever its terminal does."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress

STOPPED = """
import os, signal, threading
from clusterctl_cli.stopping import stoppable

with stoppable() as cancelled:
    threading.Thread(target=lambda: os._exit(0 if cancelled.wait(30) else 1)).start()
    os.kill(os.getpid(), signal.SIGTERM)
"""


def test_a_run_is_stopped_while_its_terminal_takes_no_output() -> None:
    """After Ctrl-S, or where nothing reads the pipe any more: the run stops before it prints that it does."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writer, bytes(4096))
    os.set_blocking(writer, True)
    try:
        assert subprocess.run([sys.executable, "-c", STOPPED], check=False, stderr=writer, timeout=60).returncode == 0
    finally:
        os.close(reader)
        os.close(writer)

"""The installer service as a process of its own: started, answered, started again when it is lost, ended with the run.

The service has an account of its own where the controller's user may give it one (root), and none of the run's files
but the listening socket and the channel. Its end, silence or nonsense changes no attempt: machines ask again.
"""

from __future__ import annotations

import collections
import logging
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO

from clusterctl.edges import processes
from clusterctl.edges.pxe.channel import Call, ChannelReply, Setup
from clusterctl.edges.pxe.exchange import ENDED, ChannelTimeouts, Exchange, LostError
from clusterctl.fleet.errors import EnvironmentBrokenError, InstallerUnavailableError
from clusterctl.fleet.peer_text import visible_line

PROGRAM = (sys.executable, "-I", "-m", "clusterctl.edges.pxe.web")
_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}
ERROR_BYTES = 4096
LOSSES = 16
"""So many reasons are kept."""
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ProcessTimes:
    """Seconds.

    start_s      in which the service must have started
    stop_s       that it has to finish requests at its end
    again_s      before it is started again; twice as long after each further loss, up to `most_again_s`
    most_again_s after so long a life the count of losses begins again
    channel      how long it may hang
    """

    start_s: float = 60.0
    stop_s: float = 12.0
    again_s: float = 0.5
    most_again_s: float = 30.0
    channel: ChannelTimeouts = field(default_factory=ChannelTimeouts)


USUAL = ProcessTimes()


class ServiceProcess:
    """Runs the service until `close`. Raises `EnvironmentBrokenError` where it does not start at all.

    `on_ready` is called whenever a process has started to serve.

    Thread-safe. One thread starts the process, answers it and waits for it: the kernel kills the process when that
    thread ends, and so when this process ends.
    """

    def __init__(
        self,
        setup: Setup,
        listener: socket.socket,
        answer: Callable[[Call], ChannelReply],
        on_ready: Callable[[], None],
        times: ProcessTimes = USUAL,
    ) -> None:
        self._setup = setup
        self._listener = listener
        self._answer = answer
        self._on_ready = on_ready
        self._times = times
        self._closing = threading.Event()
        self._ready = threading.Event()
        self._has_started = threading.Event()
        self._changed = threading.Event()
        self._channel: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self.lost: collections.deque[str] = collections.deque(maxlen=LOSSES)
        self._thread = threading.Thread(target=self._live, name="pxe-service", daemon=True)
        self._thread.start()
        self._changed.wait(times.start_s)
        if not self._has_started.is_set():
            self.close()
            raise EnvironmentBrokenError(
                f"the installer service did not start: {self.lost[-1] if self.lost else 'no sign of life'}",
                where=setup.base,
                remedy="run it again with -v",
            )

    @property
    def pid(self) -> int:
        return self._process.pid if self._process is not None else 0

    def check(self) -> None:
        """Raise `InstallerUnavailableError` while the service is lost; it is started again meanwhile."""
        if not self._ready.is_set():
            raise InstallerUnavailableError(
                f"installer service lost: {self.lost[-1] if self.lost else 'no reason known'}",
                where=self._setup.base,
                remedy="it is started again; look into the run's log if this repeats",
            )

    def close(self) -> None:
        """Let the service finish running requests for a few seconds. A machine that is interrupted asks again."""
        self._closing.set()
        channel = self._channel
        if channel is not None:
            with suppress(OSError):
                channel.shutdown(socket.SHUT_RDWR)
        self._thread.join(2 * self._times.stop_s)
        self._listener.close()

    def _live(self) -> None:
        wait_s = self._times.again_s
        while not self._closing.is_set():
            begun = time.monotonic()
            try:
                reason = self._one_process()
            except EnvironmentBrokenError as error:
                reason = str(error)
            if self._closing.is_set():
                return
            self._ready.clear()
            self.lost.append(reason)
            self._changed.set()
            _LOG.warning("installer service lost: %s; it is started again", reason)
            if time.monotonic() - begun >= self._times.most_again_s:
                wait_s = self._times.again_s
            self._closing.wait(wait_s)
            wait_s = min(2 * wait_s, self._times.most_again_s)

    def _one_process(self) -> str:
        """Run one process to its end; return why it ended."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            numbers = (self._listener.fileno(), theirs.fileno())
            process = processes.start(
                (*PROGRAM, *map(str, numbers)),
                _ENVIRONMENT,
                missing="install clusterctl again",
                errors=True,
                descriptors=numbers,
            )
            theirs.close()
            self._process, self._channel = process, ours
            errors = _ErrorOutput(process.stderr)
            lost = ENDED
            try:
                if not self._closing.is_set():
                    Exchange(ours, self._answer, self._times.channel).run(self._setup, self._is_ready)
            except LostError as error:
                lost = str(error)
            finally:
                ours.close()
                processes.end(process, self._times.stop_s if self._closing.is_set() else self._times.again_s)
        return _why(lost, process.returncode, errors.end())

    def _is_ready(self) -> None:
        """Note a sign of life; the first one of a process is its start."""
        if not self._ready.is_set():
            self._on_ready()
        self._ready.set()
        self._has_started.set()
        self._changed.set()


class _ErrorOutput:
    """Reads the service's error output to its end; keeps the last of it."""

    def __init__(self, stream: IO[bytes] | None) -> None:
        self._stream = stream
        self._last = b""
        self._thread = threading.Thread(target=self._read, name="pxe-service-errors", daemon=True)
        self._thread.start()

    def end(self) -> str:
        """Return its last line."""
        self._thread.join(1)
        lines = self._last.decode(errors="replace").strip().splitlines()
        return visible_line(lines[-1], 300) if lines else ""

    def _read(self) -> None:
        if self._stream is None:
            return
        with self._stream as stream:
            while chunk := os.read(stream.fileno(), ERROR_BYTES):
                self._last = (self._last + chunk)[-ERROR_BYTES:]
                _LOG.debug("installer service: %s", visible_line(chunk.decode(errors="replace")))


def _why(lost: str, status: int, last_line: str) -> str:
    """Return why the service is lost, in one line: what ended it, or what it did before it was ended."""
    if lost != ENDED:
        return lost
    return f"it {processes.ending(status)}{': ' if last_line else ''}{last_line}"

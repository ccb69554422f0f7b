"""One supervised ansible-runner job as a context: yields its events, and leaves nothing of it behind."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from clusterctl.edges import processes
from clusterctl.edges.ansible import supervisor
from clusterctl.edges.ansible.workspace import BEATS, require_time
from clusterctl.fleet.errors import EdgeError, EnvironmentBrokenError
from clusterctl.ports import Deadline

POLL_SECONDS = 0.1
STOP_SECONDS = 30.0
Message = Mapping[str, Any]


class SupervisedJob:
    """Runs `supervisor.py` in a session of its own; leaving the context ends all that it started."""

    def __init__(self, job: Mapping[str, str], environment: Mapping[str, str], silence_s: float) -> None:
        self._job = {**job, "silence_s": silence_s}
        self._environment = dict(environment)
        self._process: subprocess.Popen[bytes] | None = None
        self._beat_s = silence_s / BEATS
        self._over = threading.Event()
        self._heartbeat = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> Self:
        argv = [sys.executable, "-I", str(Path(supervisor.__file__).resolve())]
        self._process = processes.start(argv, self._environment, missing="install clusterctl again", errors=False)
        return self

    def __exit__(self, *exc: object) -> None:
        process = self._process
        if process is None or process.stdout is None:
            return
        self._over.set()
        if self._heartbeat.ident is not None:
            self._heartbeat.join()
        process.stdout.close()
        if not processes.end(process, STOP_SECONDS):
            raise EdgeError(
                f"a process of this Ansible run could not be killed within {STOP_SECONDS:.0f} s",
                where=f"pid {process.pid}",
                remedy="look for processes in state D (uninterruptible) on the controller",
            )

    def messages(self, deadline: Deadline, doing: str) -> Iterator[Message]:
        """Yield the supervisor's messages until `end`.

        Raises `OutOfTimeError`, `CancelledError`, and `EdgeError` if the supervisor dies.
        """
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise EdgeError("the job was not started", where=doing)
        self._send(process)
        self._heartbeat.start()
        pending = b""
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while True:
                require_time(deadline, doing)
                if not selector.select(min(POLL_SECONDS, deadline.remaining)):
                    continue
                chunk = os.read(process.stdout.fileno(), 65536)
                if not chunk:
                    raise EdgeError("Ansible's supervisor died", where=doing, remedy="look for the kernel's OOM killer")
                *lines, pending = (pending + chunk).split(b"\n")
                for line in lines:
                    message: Message = json.loads(line)
                    yield message
                    if message["event"] == "end":
                        return

    def _beat(self) -> None:
        """Send signs of life, so that the supervisor knows that this process is not stopped."""
        while not self._over.wait(self._beat_s) and self._process is not None and self._process.stdin is not None:
            try:
                self._process.stdin.write(b"\n")
            except OSError:  # the supervisor has ended; `messages` notices that
                return

    def _send(self, process: subprocess.Popen[bytes]) -> None:
        if process.stdin is None:
            raise EdgeError("the job was not started")
        try:
            process.stdin.write(json.dumps(self._job).encode() + b"\n")
        except BrokenPipeError as error:
            raise EnvironmentBrokenError(
                "Ansible's supervisor ended at once", where=sys.executable, remedy="install clusterctl again"
            ) from error

"""Runs a program on the controller: bounded by a deadline, cancellable, and ended together with clusterctl."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from clusterctl.fleet.errors import EdgeError, EnvironmentBrokenError
from clusterctl.ports import Deadline
from clusterctl_burnin.package_data import text_of

REMEDY = "run the command by hand on the controller and correct what it reports"
_POLL_SECONDS = 0.2
_GRACE_SECONDS = 5.0
_INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "SSH_AUTH_SOCK", "TMPDIR", "LD_LIBRARY_PATH")
"""The only variables that a tool inherits: our environment may hold the site's secrets."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """Exit status and output of one run."""

    exit_status: int
    stdout: str
    stderr: str

    @property
    def error_output(self) -> str:
        """The beginning of stderr, for messages."""
        return self.stderr.strip()[:300]

    def failure(self, argv: Sequence[str]) -> EdgeError:
        """Return the error for a run that failed."""
        message = f"exit status {self.exit_status}: {self.error_output or 'no message'}"
        return EdgeError(message, where=" ".join(argv), remedy=REMEDY)


def run_tool(
    argv: Sequence[str],
    deadline: Deadline,
    *,
    lacking: str = "apt-get install infiniband-diags",
    also: Sequence[str] = (),
) -> ToolResult:
    """Run a program without a shell, in a session of its own, and return its result.

    `lacking` is the remedy where there is no such program; `also` names further environment variables that it inherits.

    `supervise.py` runs in front of it and ends the whole session when its output is no longer read: out of time,
    cancelled, or clusterctl was killed.
    """
    doing = f"running {argv[0]}"
    deadline.check(doing)
    if shutil.which(argv[0]) is None:
        raise EnvironmentBrokenError("cannot run it: there is no such program", where=argv[0], remedy=lacking)
    seconds = f"{deadline.remaining + _GRACE_SECONDS:.0f}"
    with subprocess.Popen(
        [sys.executable, "-I", "-c", text_of("node/supervise.py"), seconds, *argv],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**{name: os.environ[name] for name in (*_INHERITED, *also) if name in os.environ}, "LC_ALL": "C"},
        start_new_session=True,
    ) as process:
        stdout, stderr = _wait(process, deadline, doing)
    return ToolResult(process.returncode, _decoded(stdout, argv), stderr.decode(errors="replace"))


def _wait(process: subprocess.Popen[bytes], deadline: Deadline, doing: str) -> tuple[bytes, bytes]:
    while True:
        try:
            return process.communicate(timeout=min(_POLL_SECONDS, deadline.remaining))
        except subprocess.TimeoutExpired:
            deadline.check(doing)


def _decoded(output: bytes, argv: Sequence[str]) -> str:
    try:
        return output.decode()
    except UnicodeDecodeError as error:
        message = f"output is not UTF-8 at byte {error.start}"
        raise EdgeError(message, where=" ".join(argv), remedy=REMEDY) from error

"""Programs on the controller: bounded by a deadline, cancellable, and ended together with clusterctl.

`run` is for a program that ends by itself; `start` for one that works in parallel over its pipes. Secrets reach a
program over stdin or in a file of mode 0600, never in its arguments: other users can read those.
"""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from clusterctl.edges.tally import Asked, count
from clusterctl.fleet.errors import EdgeError, EnvironmentBrokenError
from clusterctl.ports import Deadline
from clusterctl_burnin.node.processes import MARKER
from clusterctl_burnin.package_data import text_of

REMEDY = "run the command by hand on the controller and correct what it reports"
OUTPUT_BYTES = 256 << 20
"""More than this of stdout or stderr is an error."""
_POLL_SECONDS = 0.2
_GRACE_SECONDS = 5.0
_CHUNK = 1 << 16
_INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "SSH_AUTH_SOCK", "TMPDIR", "LD_LIBRARY_PATH")
"""The only variables that a program inherits: our environment may hold the site's secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a program gets in addition to its arguments.

    missing    the remedy where the program is not installed
    inherited  further environment variables that it inherits
    variables  environment variables that are set for it
    """

    missing: str = "install it on the controller"
    inherited: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    folder: Path | None = None

    @property
    def environment(self) -> dict[str, str]:
        """Return all its environment variables."""
        inherited = {name: os.environ[name] for name in (*_INHERITED, *self.inherited) if name in os.environ}
        return {**inherited, "LC_ALL": "C", **self.variables}


DEFAULT = Surroundings()


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """Exit status and output of one run."""

    exit_status: int
    stdout: str
    stderr: str

    @property
    def error_output(self) -> str:
        """Return the beginning of stderr, for messages."""
        return self.stderr.strip()[:300]

    def failure(self, argv: Sequence[str]) -> EdgeError:
        """Return the error for a run that failed."""
        message = f"exit status {self.exit_status}: {self.error_output or 'no message'}"
        return EdgeError(message, where=" ".join(argv), remedy=REMEDY)


def run(argv: Sequence[str], deadline: Deadline, surroundings: Surroundings = DEFAULT) -> ProcessResult:
    """Run a program without a shell, in a session of its own, and return its result.

    The node's supervisor runs in front of it. It ends the whole session when its output is no longer read: out of time,
    cancelled, or clusterctl was killed. Raises what the deadline raises, `EnvironmentBrokenError` where the program is
    not installed, and `EdgeError` where its output is too long or is not UTF-8.
    """
    doing = f"running {argv[0]}"
    deadline.check(doing)
    environment = surroundings.environment
    if shutil.which(argv[0], path=environment.get("PATH")) is None:
        raise EnvironmentBrokenError(
            "cannot run it: there is no such program", where=argv[0], remedy=surroundings.missing
        )
    count(Asked.PROGRAM)
    seconds = f"{deadline.remaining + _GRACE_SECONDS:.0f}"
    with tempfile.TemporaryFile() as stdin:
        stdin.write(surroundings.stdin)
        stdin.seek(0)
        with subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", text_of("node/processes.py"), seconds, *argv],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=surroundings.folder,
            start_new_session=True,
        ) as process:
            stdout, stderr = _read(process, deadline, argv)
    errors = stderr.decode(errors="replace").removeprefix(MARKER)
    return ProcessResult(process.returncode, _decoded(stdout, argv), errors)


def _read(process: subprocess.Popen[bytes], deadline: Deadline, argv: Sequence[str]) -> tuple[bytes, bytes]:
    """Return stdout and stderr when both have ended."""
    output = {pipe.fileno(): bytearray() for pipe in (process.stdout, process.stderr) if pipe is not None}
    with selectors.DefaultSelector() as selector:
        for descriptor in output:
            selector.register(descriptor, selectors.EVENT_READ)
        while selector.get_map():
            deadline.check(f"running {argv[0]}")
            for key, _ in selector.select(min(_POLL_SECONDS, deadline.remaining)):
                chunk = os.read(key.fd, _CHUNK)
                if not chunk:
                    selector.unregister(key.fd)
                output[key.fd] += chunk
                if len(output[key.fd]) > OUTPUT_BYTES:
                    message = f"the program wrote more than {OUTPUT_BYTES >> 20} MiB"
                    raise EdgeError(message, where=" ".join(argv), remedy=REMEDY)
    stdout, stderr = map(bytes, output.values())
    return stdout, stderr


def _decoded(output: bytes, argv: Sequence[str]) -> str:
    try:
        return output.decode()
    except UnicodeDecodeError as error:
        message = f"output is not UTF-8 at byte {error.start}"
        raise EdgeError(message, where=" ".join(argv), remedy=REMEDY) from error


def start(
    argv: Sequence[str],
    variables: Mapping[str, str],
    *,
    missing: str,
    errors: bool,
    descriptors: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, with unbuffered pipes at stdin, stdout and (with `errors`) stderr.

    `variables` is its whole environment, `missing` the remedy where it is not installed. It inherits `descriptors` and
    no other file of ours. The caller ends it with `end`.
    A program that does not end when its stdin is closed needs `killed_with_us` in front of it.
    """
    try:
        return subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if errors else subprocess.DEVNULL,
            env=variables,
            cwd="/",
            start_new_session=True,
            bufsize=0,
            pass_fds=descriptors,
        )
    except OSError as error:
        raise EnvironmentBrokenError(
            f"cannot start it: {error.strerror or error}", where=argv[0], remedy=missing
        ) from error


def killed_with_us(*argv: str, options: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the command that the kernel kills (PR_SET_PDEATHSIG) when the thread that started it ends.

    `options` are further ones of setpriv(1).
    """
    return ("setpriv", "--pdeathsig", "KILL", *options, "--", *argv)


def ending(status: int) -> str:
    """Return how a process ended, by its `returncode`: `was killed by signal 9 (Killed)`."""
    if status < 0:
        return f"was killed by signal {-status} ({signal.strsignal(-status)})"
    return f"has ended with exit status {status}"


def end(process: subprocess.Popen[bytes], seconds: float, *, terminate: bool = False) -> bool:
    """Close stdin (`terminate`: send SIGTERM too) and wait, then kill the group; return whether it ended in time."""
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()
    if terminate:
        process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return False
    return True

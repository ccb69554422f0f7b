"""Runs on a node, in front of every command that comes over SSH: the command dies when nobody listens any more.

Standard library only, Python 3.9. `python3 -c <this file> SECONDS ARGV…` runs ARGV in a session of its own. When the
controller closes the channel (cancelled, out of time, or dead), our stdout hangs up; then, or after SECONDS, the
command gets SIGTERM and, when it has ended or two seconds later, all that it started gets SIGKILL, in whatever session
(we adopt what it leaves: a subreaper, prctl(2)). Exits as the command did, 128 + n for signal n. What a command that
ended by itself has left running stays.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

GRACE = 2.0
CHASE = 5.0  # seconds for killing what forks while it is being killed
SET_CHILD_SUBREAPER = 36  # linux/prctl.h
STDOUT = 1
SIMULATED = Path("/etc/clusterctl/simulated")  # marks a host whose parts are simulated
MARKER = "\x1eclusterctl: this host is simulated\n"  # then the first line of our stderr; the controller takes it out


class Watch:
    """Wakes up when our stdout has lost its reader, or a child has ended."""

    def __init__(self) -> None:
        self.woken, signalled = os.pipe()
        os.set_blocking(self.woken, False)
        os.set_blocking(signalled, False)
        signal.set_wakeup_fd(signalled)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.poll = select.poll()
        self.poll.register(STDOUT, 0)
        self.poll.register(self.woken, select.POLLIN)

    def nobody_listens(self, seconds: float) -> bool:
        """Whether our stdout has hung up; waits for that, or for the end of a child, so long at most."""
        events = self.poll.poll(seconds * 1000)
        with contextlib.suppress(BlockingIOError):
            os.read(self.woken, 4096)
        return any(fd == STDOUT and event & (select.POLLERR | select.POLLHUP) for fd, event in events)


def descendants() -> set[int]:
    """The pids of all that we, or what we adopted, have started and that nobody has reaped."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended while we looked
            parent = int(stat.read_bytes().rpartition(b")")[2].split()[1])
            children.setdefault(parent, []).append(int(stat.parent.name))
    found: set[int] = set()
    waiting = [os.getpid()]
    while waiting:
        of_this = children.get(waiting.pop(), [])
        found.update(of_this)
        waiting.extend(of_this)
    return found


def end(child: subprocess.Popen[bytes]) -> int:
    """SIGTERM to the command's first group, then SIGKILL to all that is left; what the kernel holds fast, it keeps."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(GRACE)
    killed: set[int] = set()
    until = time.monotonic() + CHASE
    while time.monotonic() < until and (alive := descendants() - killed):
        for pid in alive:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        killed |= alive
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(1.0)
    return -signal.SIGKILL if child.returncode is None else child.returncode


def run(argv: list[str], limit: float) -> int:
    """The command's exit code, negative for a signal; it is ended at `limit` (`time.monotonic()`)."""
    watch = Watch()
    ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    child = subprocess.Popen(argv, start_new_session=True)
    while child.poll() is None:
        if watch.nobody_listens(1.0) or time.monotonic() > limit:
            return end(child)
    return child.returncode


def main(argv: list[str]) -> int:
    if SIMULATED.exists():
        sys.stderr.write(MARKER)
        sys.stderr.flush()
    try:
        code = run(argv[1:], time.monotonic() + float(argv[0]))
    except OSError as error:
        print(f"{argv[1]}: {error.strerror}", file=sys.stderr)
        return 127
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Runs on a node, in front of every command that comes over SSH: the command dies when nobody listens any more.

Standard library only, Python 3.9. `python3 -c <this file> SECONDS ARGV…` runs ARGV in a session of its own. When the
controller closes the channel (cancelled, out of time, or dead), our stdout hangs up; then, or after SECONDS, the whole
session gets SIGTERM and, two seconds later, SIGKILL. Exits as the command did, 128 + n for signal n.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time

GRACE = 2.0


STDOUT = 1


def watch() -> select.poll:
    """Wakes up when our stdout has lost its reader, or a child has ended."""
    ended, signalled = os.pipe()
    os.set_blocking(signalled, False)
    signal.set_wakeup_fd(signalled)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    poll = select.poll()
    poll.register(STDOUT, 0)
    poll.register(ended, select.POLLIN)
    return poll


def hung_up(events: list[tuple[int, int]]) -> bool:
    return any(fd == STDOUT and event & (select.POLLERR | select.POLLHUP) for fd, event in events)


def end(child: subprocess.Popen[bytes]) -> None:
    """SIGTERM to the session's first group, then SIGKILL."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(GRACE)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


def main(argv: list[str]) -> int:
    limit = time.monotonic() + float(argv[0])
    poll = watch()
    try:
        child = subprocess.Popen(argv[1:], start_new_session=True)
    except OSError as error:
        print(f"{argv[1]}: {error.strerror}", file=sys.stderr)
        return 127
    while child.poll() is None:
        if hung_up(poll.poll(1000)) or time.monotonic() > limit:
            end(child)
    code = child.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

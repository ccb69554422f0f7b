"""Runs programs on a node: with a time limit, with bounded output, and with no process left behind.

Standard library only, Python 3.9. The built-in programs and `bundle.py` import this module; the controller sends it
with them. The module is also a program of its own, the supervisor in front of every command that comes over SSH and of
every tool that the controller runs: `python3 -c <this file> SECONDS ARGV…` runs ARGV in a session of its own. The
program of `python3 -I -S -` runs in a copy of the supervisor: a second start of Python would cost as much again. The
supervisor ends the command after SECONDS, or when its own stdout has no reader any more: the controller has cancelled
the command, or has died. The command gets SIGTERM. When it has ended, or two seconds later, all that it started gets
SIGKILL, in whatever session: the supervisor adopts orphans (a subreaper, prctl(2)). It exits as the command did, with
128 + n for signal n. What a command that ended by itself has left running stays.

A process that cannot be killed (it sleeps in the kernel, or forks faster than it is killed) is left behind.
"""

from __future__ import annotations

import contextlib
import os
import select
import selectors
import signal
import subprocess
import sys
import threading
import time
import types

TYPE_CHECKING = False  # the import of typing costs 2 ms at each start
if TYPE_CHECKING:
    from typing import IO, Any, Callable, Iterable, Iterator, Mapping, Optional, Protocol, Sequence

    class Started(Protocol):
        """A process that was started with pipes: `subprocess.Popen`, or one like it."""

        pid: int
        returncode: Any

        @property
        def stdout(self) -> Optional[IO[bytes]]: ...
        @property
        def stderr(self) -> Optional[IO[bytes]]: ...
        def kill(self) -> None: ...
        def wait(self, timeout: Optional[float] = None) -> Any: ...


GRACE = 2.0  # seconds between SIGTERM and SIGKILL
REAP = 1.0  # seconds that a killed process may take to be gone
CHASE = 5.0  # seconds for killing what forks while it is being killed
FLUSH = 1.0  # seconds for what is left in the pipes of a program that has ended
MAX_BYTES = 16 << 20  # of stdout and of stderr each; what a program writes beyond that is dropped
SET_CHILD_SUBREAPER = 36  # linux/prctl.h
STDOUT = 1
SIMULATED = "/etc/clusterctl/simulated"  # marks a host with simulated parts
MARKER = "\x1eclusterctl: this host is simulated\n"  # then the first line of our stderr; the controller takes it out
NOT_FOUND, TIMED_OUT = 127, 124  # exit codes of a shell and of timeout(1)
PYTHON_ON_STDIN = ["python3", "-I", "-S", "-"]  # runs the program that comes over stdin
Result = tuple[int, str, str]  # exit code, stdout, stderr
LATE: Result = (TIMED_OUT, "", "it did not answer in time")


class Ended:
    """How a program ended. `code` is None when it did not end in time and was killed."""

    def __init__(self, code: Optional[int], stdout: str, stderr: str) -> None:
        self.code, self.stdout, self.stderr = code, stdout, stderr


def run(
    argv: Sequence[str],
    limit: float,
    *,
    max_bytes: int = MAX_BYTES,
    environment: Optional[Mapping[str, str]] = None,
    session: bool = False,
    all_groups: bool = True,
) -> Ended:
    """Run `argv` until it ends or `time.monotonic()` passes `limit`; then kill it. Raises `OSError`.

    `session`: it runs in a session of its own, and all that is left of that session is killed with it. Without
    `all_groups` only what is left of its process group, where it has ended in time: this reads no table of processes.
    """
    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=session,
    )
    return attend(process, limit, max_bytes=max_bytes, session=session, all_groups=all_groups)


def attend(process: Started, limit: float, *, max_bytes: int, session: bool, all_groups: bool = True) -> Ended:
    """Read what a process that was started with pipes writes, until it ends or is killed; the rest as `run`."""
    stdout, stderr = drain(process, limit, max_bytes)
    while not has_ended(process) and time.monotonic() < limit:
        time.sleep(0.02)  # it has closed its output and goes on
    in_time = has_ended(process)
    if session:
        kill_rest = kill_session if all_groups or not in_time else kill_group
        kill_rest(process.pid)
    for pipe in pipes(process):
        pipe.close()
    end([process])
    return Ended(process.returncode if in_time else None, stdout, stderr)


def ask(*argv: str, seconds: float = 1e9) -> Result:
    """Run a tool; return its exit code and output: 127 when there is no such tool, 124 when it does not end in time."""
    try:
        ended = run(argv, time.monotonic() + seconds)
    except OSError as error:
        return NOT_FOUND, "", f"{argv[0]}: {error.strerror}\n"
    if ended.code is None:
        return TIMED_OUT, "", f"{argv[0]} did not answer within {seconds:g} s\n"
    return ended.code, ended.stdout, ended.stderr


def ask_all(look: Callable[[str], Result], names: Iterable[str], seconds: float) -> dict[str, Result]:
    """Call `look` for all names at once, each in a thread. A thread that waits for a dead drive is left behind."""
    answers = dict.fromkeys(names, LATE)

    def one(name: str) -> None:
        answers[name] = look(name)

    threads = [threading.Thread(target=one, args=(name,), daemon=True) for name in answers]
    until = time.monotonic() + seconds
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return dict(answers)


def start(
    argv: Sequence[str],
    *,
    environment: Optional[Mapping[str, str]] = None,
    log: Optional[IO[str]] = None,
    dialogue: bool = False,
) -> subprocess.Popen[str]:
    """Start a program that runs in parallel with others. The caller ends it with `end`.

    `log` takes its stdout and stderr. With `dialogue`, its stdin and stdout are pipes, and its stderr is dropped.
    """
    pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
    return subprocess.Popen(
        argv,
        stdin=pipe if dialogue else nowhere,
        stdout=pipe if dialogue else log,
        stderr=nowhere if dialogue else log and subprocess.STDOUT,
        env=environment,
        text=True,
        errors="replace",
    )


def end(processes: Iterable[subprocess.Popen[str] | Started], seconds: float = REAP) -> None:
    """Kill the processes and wait for them, at most `seconds` for each."""
    killed = list(processes)
    for process in killed:
        process.kill()
    for process in killed:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)


def wait(process: subprocess.Popen[str], until: float) -> Optional[int]:
    """Return the exit code; None when the process has not ended at `until` (`time.monotonic()`) and was killed."""
    try:
        return process.wait(max(0.0, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        end([process])
        return None


def has_ended(process: Started) -> bool:
    """Return whether it has ended, and leave it unreaped: no other process can take the number of its session."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def reading(descriptors: Iterable[int]) -> selectors.BaseSelector:
    """Return a selector that waits for text on any of them."""
    selector = selectors.DefaultSelector()
    for descriptor in descriptors:
        os.set_blocking(descriptor, False)
        selector.register(descriptor, selectors.EVENT_READ)
    return selector


def keep(kept: bytearray, chunk: bytes, most: int) -> None:
    """Add what there is room for; the rest is dropped."""
    kept += chunk[: max(0, most - len(kept))]


def drain(process: Started, limit: float, max_bytes: int) -> tuple[str, str]:
    """Read both pipes until the process has ended or `limit` is reached; return at most `max_bytes` of each.

    A grandchild may hold the pipes open. Once the process itself has ended, reading goes on until the pipes are silent,
    for `FLUSH` seconds at most.
    """
    kept = {pipe.fileno(): bytearray() for pipe in pipes(process)}
    flushing = False
    with reading(kept) as selector:
        while selector.get_map():
            left = limit - time.monotonic()
            if left <= 0:
                break
            ended = has_ended(process)
            if ended and not flushing:
                flushing, limit = True, min(limit, time.monotonic() + FLUSH)
            ready = selector.select(0 if ended else min(left, 0.1))
            for key, _ in ready:
                chunk = os.read(key.fd, 65536)
                if not chunk:
                    selector.unregister(key.fd)
                keep(kept[key.fd], chunk, max_bytes)
            if ended and not ready:
                break
    stdout, stderr = (bytes(text).decode("utf-8", "replace") for text in kept.values())
    return stdout, stderr


def pipes(process: Started) -> tuple[IO[bytes], IO[bytes]]:
    """Return its stdout and stderr."""
    if process.stdout is None or process.stderr is None:
        raise RuntimeError("the program was started without pipes")
    return process.stdout, process.stderr


def all_processes() -> Iterator[tuple[int, int, int]]:
    """Yield pid, parent and session of every process."""
    for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 — pathlib costs as much as the reading
        with contextlib.suppress(OSError):  # it has just ended
            with open(f"/proc/{name}/stat", "rb", buffering=0) as stat:  # noqa: PTH123
                fields = stat.read(4096).rpartition(b")")[2].split(None, 4)
            yield int(name), int(fields[1]), int(fields[3])


def simulated() -> bool:
    """Return whether this host has simulated parts."""
    return os.path.exists(SIMULATED)  # noqa: PTH110 — the import of pathlib costs 3 ms


def childless() -> bool:
    """Return whether this process has no child, not even one that waits to be reaped."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return False


def descendants() -> set[int]:
    """Return the pids of all that this process has started or adopted and that have not been reaped."""
    if childless():
        return set()  # the table of processes costs 10 ms
    children: dict[int, list[int]] = {}
    for pid, parent, _ in all_processes():
        children.setdefault(parent, []).append(pid)
    found: set[int] = set()
    waiting = [os.getpid()]
    while waiting:
        of_this = children.get(waiting.pop(), [])
        found.update(of_this)
        waiting.extend(of_this)
    return found


def adopt_orphans() -> None:
    """Become the parent of processes that their own parents leave behind."""
    import ctypes  # noqa: PLC0415 — most programs of the node do not need it, and its import costs time

    ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def kill(pid: int) -> None:
    with contextlib.suppress(OSError):  # it has ended, or it is not ours to kill
        os.kill(pid, signal.SIGKILL)


def kill_group(leader: int) -> None:
    """Kill every process of the group that the process leads."""
    with contextlib.suppress(OSError):  # the group is empty
        os.killpg(leader, signal.SIGKILL)


def kill_session(leader: int) -> None:
    """Kill every process of the session, whatever groups it has made in it."""
    for pid, _, session in all_processes():
        if session == leader:
            kill(pid)


def kill_descendants() -> None:
    """Kill all descendants until there is no new one, for `CHASE` seconds at most."""
    killed: set[int] = set()
    until = time.monotonic() + CHASE
    while time.monotonic() < until and (alive := descendants() - killed):
        for pid in alive:
            kill(pid)
        killed |= alive


class Forked:
    """A copy of this process, by fork(2). It is made before the first thread is started: only then has a copy no lock
    that stays closed.
    """

    def __init__(self) -> None:
        self.returncode: Optional[int] = None
        self.pid = os.fork()

    def kill(self) -> None:
        if self.returncode is None:
            kill(self.pid)

    def poll(self) -> Optional[int]:
        """Return its exit code, negative for a signal; None while it runs."""
        if self.returncode is None:
            found, status = os.waitpid(self.pid, os.WNOHANG)
            if found:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: Optional[float] = None) -> int:
        """Return its exit code, negative for a signal. Raises `subprocess.TimeoutExpired`."""
        until = time.monotonic() + (float("inf") if timeout is None else timeout)
        while (code := self.poll()) is None:
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired("a copy of this program", timeout or 0.0)
            time.sleep(0.005)
        return code


def be_program(text: str | bytes) -> int:
    """Run the program in place of this one; return its exit code as Python would."""
    program = sys.modules["__main__"] = types.ModuleType("__main__")
    code = _ended_with(text, program)
    for thread in threading.enumerate():  # they end first, as in any Python
        if not thread.daemon and thread is not threading.current_thread():
            thread.join()
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def _ended_with(text: str | bytes, program: types.ModuleType) -> int:
    try:
        exec(text, program.__dict__)  # noqa: S102 — it came with us
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return (end.code or 0) & 0xFF
        sys.stderr.write(f"{end.code}\n")
        return 1
    except BaseException:  # noqa: BLE001 — as Python does
        import traceback  # noqa: PLC0415 — its import costs 2 ms

        traceback.print_exc()
        return 1
    return 0


class ReaderWatch:
    """Waits for the end of a child, or until our stdout has lost its reader."""

    def __init__(self) -> None:
        self.wakeup, self.signalled = os.pipe()
        os.set_blocking(self.wakeup, False)
        os.set_blocking(self.signalled, False)
        signal.set_wakeup_fd(self.signalled)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.poll = select.poll()
        self.poll.register(STDOUT, 0)
        self.poll.register(self.wakeup, select.POLLIN)

    def reader_closed(self, seconds: float) -> bool:
        """Wait at most `seconds`; return whether our stdout has hung up."""
        events = self.poll.poll(seconds * 1000)
        with contextlib.suppress(BlockingIOError):
            os.read(self.wakeup, 4096)
        return any(fd == STDOUT and event & (select.POLLERR | select.POLLHUP) for fd, event in events)

    def leave(self) -> None:
        """Take back what was set: a copy of this process watches nothing."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.close(self.wakeup)
        os.close(self.signalled)


def program_on_stdin(watch: ReaderWatch) -> Forked:
    """Start what `python3 -I -S -` would run, in a session of its own. It has this module under its own name."""
    copy = Forked()
    if copy.pid:
        return copy
    code = 1
    try:
        os.setsid()
        watch.leave()
        sys.argv[:] = ["-"]
        sys.modules["clusterctl_burnin.node.processes"] = sys.modules["__main__"]
        code = be_program(sys.stdin.buffer.read())
    finally:
        os._exit(code)


def supervise(argv: Sequence[str], limit: float) -> int:
    """Run `argv` until `time.monotonic()` passes `limit`; return its exit code, negative for a signal."""
    watch = ReaderWatch()
    adopt_orphans()
    ours = list(argv) == PYTHON_ON_STDIN
    child = program_on_stdin(watch) if ours else subprocess.Popen(argv, start_new_session=True)
    while (code := child.poll()) is None:
        if not watch.reader_closed(1.0) and time.monotonic() <= limit:
            continue
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(GRACE)
        kill_descendants()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(REAP)
        return -signal.SIGKILL if child.returncode is None else child.returncode
    return code


def main(argv: Sequence[str]) -> int:
    if simulated():
        sys.stderr.write(MARKER)
        sys.stderr.flush()
    try:
        code = supervise(argv[1:], time.monotonic() + float(argv[0]))
    except OSError as error:
        print(f"{argv[1]}: {error.strerror}", file=sys.stderr)
        return NOT_FOUND
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    ended_as = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(ended_as)  # nothing is left to be done: the end of a Python costs 2 ms

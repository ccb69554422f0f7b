"""The program in front of every command on a node. It runs a Python program that comes over stdin in a copy of itself."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from clusterctl_burnin.package_data import text_of
from clusterctl_burnin.probe import argv_for
from tests.processes import started_as, unique_seconds

LEFT = unique_seconds(4733)
SUPERVISOR = (sys.executable, "-I", "-S", "-c", text_of("node/processes.py"))


def supervised(text: str, *, seconds: float = 60.0) -> subprocess.CompletedProcess[str]:
    """Run the program as a session does."""
    argv = (*SUPERVISOR, f"{seconds:g}", *argv_for("root", privileged=True))
    return subprocess.run(argv, input=text, capture_output=True, text=True, check=False, timeout=120)


def test_it_needs_no_second_python() -> None:
    """A start of Python with its imports costs a node as much as all that the program does."""
    ran = supervised("print(open('/proc/self/cmdline').read().split(chr(0))[4][:3])")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, '"""\n', "")


@pytest.mark.parametrize(
    ("text", "code", "output", "error"),
    [
        ("print('ü')", 0, "ü\n", ""),
        ("import sys; print(sys.argv, repr(sys.stdin.read()))", 0, "['-'] ''\n", ""),
        ("import sys; sys.exit(7)", 7, "", ""),
        ("import sys; sys.exit('no GPU')", 1, "", "no GPU\n"),
        ("import os; os.kill(os.getpid(), 9)", 137, "", ""),
        ("import threading; threading.Timer(0.2, print, ['late']).start()", 0, "late\n", ""),
        ("if __name__ == '__main__': print('main')", 0, "main\n", ""),
        ("import os; print(os.getsid(0) == os.getpid(), len(os.listdir('/proc/self/fd')))", 0, "True 4\n", ""),
        ("import signal as s; print(s.getsignal(s.SIGCHLD) == s.SIG_DFL, s.set_wakeup_fd(-1))", 0, "True -1\n", ""),
        ("from clusterctl_burnin.node.processes import ask; print(ask('echo', 'x'))", 0, "(0, 'x\\n', '')\n", ""),
    ],
)
def test_the_program_behaves_as_in_a_python_of_its_own(text: str, code: int, output: str, error: str) -> None:
    """Exit code, outputs, arguments, empty stdin, threads, session, signals, no stray descriptor."""
    ran = supervised(text)
    assert (ran.returncode, ran.stdout, ran.stderr) == (code, output, error)


def test_a_traceback_is_on_stderr() -> None:
    ran = supervised("raise ValueError('bad')")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.endswith("ValueError: bad\n")


def test_past_its_time_it_is_killed_with_all_that_it_started() -> None:
    """Also with what has a session of its own."""
    text = f"import subprocess\nsubprocess.Popen(['sleep', '{LEFT}'], start_new_session=True).wait()"
    ran = supervised(text, seconds=2.0)
    assert ran.returncode == 128 + 15
    until = time.monotonic() + 30
    while started_as("sleep", LEFT) and time.monotonic() < until:
        time.sleep(0.05)
    assert started_as("sleep", LEFT) == []


def test_a_program_without_a_reader_is_killed() -> None:
    """The controller has cancelled the session, or has died."""
    argv = (*SUPERVISOR, "600", *argv_for("root", privileged=True))
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as session:
        assert session.stdin is not None
        assert session.stdout is not None
        session.stdin.write(b"import time\nprint('begun', flush=True)\ntime.sleep(600)\n")
        session.stdin.close()
        assert session.stdout.readline() == b"begun\n"
        session.stdout.close()
        assert session.wait(60) == 128 + 15


def test_a_process_without_children_has_no_descendants() -> None:
    """Then the table of processes is not read; one that has ended, and was not reaped, is still a child."""
    text = """
import subprocess
from clusterctl_burnin.node.processes import childless, descendants, kill_descendants
print(childless(), descendants())
child = subprocess.Popen(["sleep", "600"])
print(childless(), descendants() == {child.pid})
kill_descendants()
print(childless(), child.wait(), childless())
"""
    ran = supervised(text)
    assert (ran.stdout, ran.stderr) == ("True set()\nFalse True\nFalse -9 True\n", "")

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import paramiko
import pytest

from clusterctl.edges.ssh import ParamikoShell
from clusterctl.fleet.errors import (
    AuthenticationError,
    CancelledError,
    EdgeError,
    EnvironmentBrokenError,
    OutcomeUnknownError,
    UnreachableError,
    UsageError,
)
from clusterctl.fleet.finding import Origin
from clusterctl.ports import Deadline, HostAddress
from clusterctl_burnin.node.processes import MARKER
from clusterctl_burnin.probe import Probe, script
from tests.edges.ssh.sshd import SSHD, Sshd
from tests.fake_timer import FakeTimer
from tests.processes import gone, started_as, unique_seconds

pytestmark = pytest.mark.skipif(SSHD is None or os.geteuid() != 0, reason="needs root and the openssh-server package")

PROBES, LEFT = unique_seconds(4803), unique_seconds(4804)


class FixedClock:
    def now(self) -> datetime:
        return datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with Sshd(tmp_path_factory.mktemp("sshd")) as server:
        yield server


@pytest.fixture
def shell() -> Iterator[ParamikoShell]:
    with ParamikoShell(FixedClock(), Origin.SIMULATED) as shell:
        yield shell


def connected(sshd: Sshd, shell: ParamikoShell) -> HostAddress:
    """The server's address, when the shell's connection to it stands: a deadline is the command's alone."""
    shell.run(sshd.address(), ["true"], b"", Deadline.after(60))
    return sshd.address()


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.05)
    return False


def test_a_command_answers_with_status_outputs_and_evidence(sshd: Sshd, shell: ParamikoShell) -> None:
    """Exit status, stdout, stderr and stdin travel unharmed, and the evidence has the command and the host."""
    argv = ["sh", "-c", "cat; echo 'it is \"bad\"' >&2; exit 3"]
    observed = shell.run(sshd.address(), argv, b"hello\n", Deadline.after(60))
    assert (observed.value.exit_status, observed.value.stdout) == (3, "hello\n")
    assert observed.value.stderr == 'it is "bad"\n'
    (evidence,) = observed.evidence
    assert (evidence.where, evidence.origin, evidence.content) == ("node001", Origin.SIMULATED, b"hello\n")
    assert evidence.source.startswith("sh -c")


def test_evidence_of_a_marked_host_is_simulated(sshd: Sshd) -> None:
    """The supervisor reports the marker on stderr; the site's own word is `real`, and the command's stderr is unharmed."""
    argv = ["sh", "-c", 'printf "%s" "$0" >&2; echo "a warning" >&2', MARKER]
    with ParamikoShell(FixedClock(), Origin.REAL) as shell:
        marked = shell.run(sshd.address(), argv, b"", Deadline.after(60))
        plain = shell.run(sshd.address(), ["true"], b"", Deadline.after(60))
    assert (marked.value.stderr, marked.evidence[0].origin) == ("a warning\n", Origin.SIMULATED)
    assert plain.evidence[0].origin is Origin.REAL


def test_what_a_server_sends_for_debugging_is_dropped(
    tmp_path: Path, shell: ParamikoShell, caplog: pytest.LogCaptureFixture
) -> None:
    """OpenSSH reports at the login which options of the authorized key it follows; no operator needs that in the log."""
    caplog.set_level(logging.DEBUG, "paramiko")
    with Sshd(tmp_path, command="true") as server:
        assert shell.run(server.address(), ["true"], b"", Deadline.after(60)).value.exit_status == 0
    assert "userauth is OK" in caplog.text
    assert "Debug msg" not in caplog.text


def test_large_input_and_output_do_not_block_each_other(sshd: Sshd, shell: ParamikoShell) -> None:
    """A megabyte in and eight times as much out."""
    data = b"x" * 1_000_000
    argv = ["sh", "-c", "cat > /dev/null; head -c 8000000 /dev/zero"]
    observed = shell.run(sshd.address(), argv, data, Deadline.after(60))
    assert len(observed.value.stdout) == 8_000_000
    assert len(observed.evidence[0].content) == 1 << 20


def test_one_connection_serves_many_threads(sshd: Sshd, shell: ParamikoShell) -> None:
    """Eight threads at once share the host's one connection."""
    parent = ["sh", "-c", 'echo "$SSH_CONNECTION"']
    with ThreadPoolExecutor(8) as pool:
        runs = pool.map(lambda _: shell.run(sshd.address(), parent, b"", Deadline.after(60)), range(8))
        assert len({run.value.stdout for run in runs}) == 1


def test_another_host_key_is_refused(sshd: Sshd, shell: ParamikoShell) -> None:
    """A host that holds another key than the pinned one gets neither our login nor a command."""
    with pytest.raises(EdgeError, match="does not hold the key that was pinned") as caught:
        shell.run(sshd.address(host_key="stranger"), ["true"], b"", Deadline.after(60))
    assert not isinstance(caught.value, UnreachableError)


def test_a_refused_login_key_is_an_authentication_error(sshd: Sshd, shell: ParamikoShell) -> None:
    """A key that the host does not know is distinguished from a host that does not answer."""
    with pytest.raises(AuthenticationError, match="refuses the key"):
        shell.run(sshd.address(key="stranger"), ["true"], b"", Deadline.after(60))


def test_no_server_listens(sshd: Sshd, shell: ParamikoShell) -> None:
    """A closed port is unreachable."""
    with pytest.raises(UnreachableError, match="no SSH"):
        shell.run(sshd.address(port=9), ["true"], b"", Deadline.after(60))


def test_a_host_that_accepts_and_sends_nothing_is_unreachable_in_time(sshd: Sshd, shell: ParamikoShell) -> None:
    """A frozen host (its kernel accepts, its sshd is silent) costs the deadline and no more."""
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(UnreachableError):
        shell.run(sshd.address(port=silent.getsockname()[1]), ["true"], b"", Deadline.after(1))


def test_past_the_deadline_the_command_is_killed(sshd: Sshd, shell: ParamikoShell, tmp_path: Path) -> None:
    """Its output so far is kept, its status is None, and neither it nor its child is left on the host."""
    timer, started = FakeTimer(), tmp_path / "started"
    argv = ["sh", "-c", f"sleep 300 & echo $! $$; touch {started}; wait"]
    timer.advance_when(started.exists)
    observed = shell.run(connected(sshd, shell), argv, b"", Deadline.after(300, timer=timer))
    assert observed.value.exit_status is None
    pids = [int(word) for word in observed.value.stdout.split()]
    assert len(pids) == 2
    assert within(600, lambda: all(gone(pid) for pid in pids))


def test_a_command_that_ignores_sigterm_is_killed_too(sshd: Sshd, shell: ParamikoShell, tmp_path: Path) -> None:
    """SIGKILL follows SIGTERM."""
    timer, started = FakeTimer(), tmp_path / "started"
    argv = ["sh", "-c", f"trap '' TERM; echo $$; touch {started}; while :; do sleep 1; done"]
    timer.advance_when(started.exists)
    observed = shell.run(connected(sshd, shell), argv, b"", Deadline.after(300, timer=timer))
    assert within(600, lambda: gone(int(observed.value.stdout)))


def test_cancelling_stops_at_once(sshd: Sshd, shell: ParamikoShell, tmp_path: Path) -> None:
    """Ctrl-C in the middle of a command: CancelledError, and the command dies."""
    file, cancelled = tmp_path / "pid", threading.Event()
    argv = ["sh", "-c", f"echo $$ > {file}; sleep 300"]
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(shell.run, sshd.address(), argv, b"", Deadline.after(120, cancelled))
        assert within(600, lambda: file.exists() and bool(file.read_text().strip()))
        cancelled.set()
        with pytest.raises(CancelledError):
            run.result(timeout=600)
    assert within(600, lambda: gone(int(file.read_text())))


def test_what_a_cancelled_command_started_in_other_sessions_dies_with_it(sshd: Sshd, shell: ParamikoShell) -> None:
    """As a burn-in's bundle starts its probes: else their servers hold their ports when the next burn-in comes."""
    cancelled = threading.Event()
    probes = [
        Probe("server", ("sh", "-c", f"sleep {PROBES}"), timeout=600.0),
        Probe("left its session", ("sh", "-c", f"setsid -f sleep {PROBES}; sleep {PROBES}"), timeout=600.0),
    ]
    with ThreadPoolExecutor(1) as pool:
        deadline = Deadline.after(120, cancelled)
        run = pool.submit(shell.run, sshd.address(), ["python3", "-"], script(probes), deadline)
        assert within(600, lambda: len(started_as("sleep", PROBES)) == 3)
        cancelled.set()
        with pytest.raises(CancelledError):
            run.result(timeout=600)
    assert within(600, lambda: not started_as("sleep", PROBES))


def test_what_a_command_leaves_running_by_intent_stays(sshd: Sshd, shell: ParamikoShell) -> None:
    """A command that ended by itself: what it started in the background is the host's."""
    observed = shell.run(sshd.address(), ["sh", "-c", f"setsid -f sleep {LEFT} > /dev/null"], b"", Deadline.after(60))
    left = started_as("sleep", LEFT)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert (observed.value.exit_status, len(left)) == (0, 1)


def test_closing_ends_the_threads_that_read(sshd: Sshd, shell: ParamikoShell) -> None:
    """They check an idle connection each 60 s only, so they are asked to."""
    others = set(threading.enumerate())
    connected(sshd, shell)
    readers = [one for one in threading.enumerate() if isinstance(one, paramiko.Transport) and one not in others]
    assert readers
    shell.close()
    assert within(600, lambda: not any(reader.is_alive() for reader in readers))


def test_a_background_child_does_not_hold_the_command(sshd: Sshd, shell: ParamikoShell) -> None:
    """A command that is over is over, though a child that it left holds its output open."""
    observed = shell.run(sshd.address(), ["sh", "-c", "sleep 3000 & echo $!"], b"", Deadline.after(2000))
    os.kill(int(observed.value.stdout), signal.SIGKILL)
    assert observed.value.exit_status == 0


def test_a_dropped_connection_is_opened_again(sshd: Sshd, shell: ParamikoShell) -> None:
    """A host that rebooted since is simply connected to again; one that dies under a command is reported."""
    with pytest.raises(OutcomeUnknownError):
        shell.run(sshd.address(), ["sh", "-c", "kill -9 $(ps -o ppid= -p $PPID)"], b"", Deadline.after(60))
    assert shell.run(sshd.address(), ["echo", "again"], b"", Deadline.after(60)).value.stdout == "again\n"


@pytest.mark.parametrize(
    ("address", "error"),
    [
        (HostAddress("n", "127.0.0.1", "u", "ssh-ed25519 !!", "/nowhere"), UsageError),
        (HostAddress("n", "127.0.0.1", "u", "", "/nowhere"), UsageError),
    ],
)
def test_a_broken_pin_is_refused_before_anything_is_sent(
    shell: ParamikoShell, address: HostAddress, error: type[Exception]
) -> None:
    """Without a readable pinned key nothing is connected to."""
    with pytest.raises(error):
        shell.run(address, ["true"], b"", Deadline.after(60))


def test_a_missing_login_key_is_the_controllers_fault(sshd: Sshd, shell: ParamikoShell) -> None:
    """The error names the file and the setting to check."""
    with pytest.raises(EnvironmentBrokenError, match="cannot be read"):
        shell.run(sshd.address(key="nowhere"), ["true"], b"", Deadline.after(60))

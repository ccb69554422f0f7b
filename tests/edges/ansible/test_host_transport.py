"""Hosts that play by themselves, as the controller sees them; the hosts are small programs on this machine."""

from __future__ import annotations

import json
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from clusterctl.edges.ansible.host_transport.bundle import Bundle
from clusterctl.edges.ansible.host_transport.plays import Declined, HostPlays, PlayRequest
from clusterctl.edges.ansible.host_transport.sessions import SOURCE
from clusterctl.edges.ansible.transcript import HostResult
from clusterctl.edges.ansible.workspace import PlayLimits
from clusterctl.edges.redaction import Redaction
from clusterctl.fleet.errors import CancelledError
from clusterctl.ports import Deadline, HostAddress, PlayOutcome
from tests.edges.ansible.support import DATA, host, run_settings
from tests.fake_timer import FakeTimer
from tests.processes import commands

SECRET = "kq7Zt-41-Xw"


class FakeHosts:
    """Each host behaves as its name describes."""

    def __call__(self, host: HostAddress, options: Sequence[str]) -> Sequence[str]:
        assert "StrictHostKeyChecking=yes" in options
        return [sys.executable, "-I", str(DATA / "fake_host.py"), host.name, host.name, str(len(SOURCE))]


@pytest.fixture
def work_dir() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="oh", dir="/tmp") as path:
        yield Path(path)
        assert list(Path(path).iterdir()) == []


def plays(work_dir: Path, *names: str, at_once: int = 8) -> HostPlays:
    settings = replace(run_settings(work_dir), limits=PlayLimits(at_once))
    request = PlayRequest("p.yml", SECRET.encode(), Bundle(b"b" * 200_000, "0" * 64, (3, 11)), settings)
    return HostPlays(request, [host(name) for name in names], Redaction([SECRET]), FakeHosts())


def results(work_dir: Path, *names: str, at_once: int = 8) -> dict[str, HostResult | Declined]:
    found = list(plays(work_dir, *names, at_once=at_once).run(Deadline.after(900)))
    by_name = {one.outcome.host if isinstance(one, HostResult) else one.host.name: one for one in found}
    assert len(found) == len(names) == len(by_name)
    return by_name


def outcome(work_dir: Path, name: str) -> PlayOutcome:
    one = results(work_dir, name)[name]
    assert isinstance(one, HostResult)
    return one.outcome


def test_each_host_has_its_own_result_and_secrets_stay_out(work_dir: Path) -> None:
    """More hosts than go at once; one failure affects no other host; a secret that a host repeats is masked."""
    found = results(work_dir, "good", "fails", "empty", at_once=1)
    good, fails, empty = (found[name] for name in ("good", "fails", "empty"))
    assert isinstance(good, HostResult)
    assert isinstance(fails, HostResult)
    assert isinstance(empty, HostResult)

    assert good.outcome == PlayOutcome("good", ok=True, changed=1, changes=("r : One",))
    assert fails.outcome == PlayOutcome(
        "fails", ok=False, changed=1, failed_task="r : Two", message="no", changes=("r : One",)
    )
    assert SECRET.encode() not in good.tasks
    assert [json.loads(line)["status"] for line in good.tasks.splitlines()] == ["changed", "ok"]
    assert json.loads(good.tasks.splitlines()[0])["stdout"] == f"0 {len(SECRET)}"
    assert json.loads(empty.tasks.splitlines()[0])["stdout"] == f"200000 {len(SECRET)}"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("old", "its Python is 3.10, and Ansible needs 3.11"),
        ("no-python", "sudo: /usr/bin/python3: command not found"),
        ("no-ansible", "Ansible does not run there: ModuleNotFoundError: No module named 'ctypes'"),
    ],
)
def test_a_host_that_cannot_declines_in_words(work_dir: Path, name: str, reason: str) -> None:
    """Before anything was done on it, so that another way may be taken."""
    assert results(work_dir, name)[name] == Declined(host(name), reason)


def test_a_host_that_cannot_be_entered_is_unreachable(work_dir: Path) -> None:
    """With ssh's own reason, after three tries."""
    found = outcome(work_dir, "gone")

    assert (found.ok, found.unreachable) == (False, True)
    assert "Connection refused" in found.message


def test_a_host_that_dies_in_the_middle_is_unreachable_in_its_task(work_dir: Path) -> None:
    """It is not played again in another way: something was done on it."""
    found = outcome(work_dir, "dies")

    assert (found.unreachable, found.failed_task, found.changed) == (True, "r : Two", 1)
    assert "Broken pipe" in found.message


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("killed", "the play was ended on the host"),
        ("busy", "another play still runs there (42)"),
        ("liar", "the host sent a message that no play sends"),
        ("nonsense", "surprise"),
    ],
)
def test_what_is_no_result_is_a_failure(work_dir: Path, name: str, message: str) -> None:
    """A host that reports about others, or nonsense, or not to the end, is never good."""
    found = outcome(work_dir, name)

    assert not found.ok
    assert not found.unreachable
    assert message in found.message


def test_at_the_deadline_the_hanging_host_is_separated_from_the_waiting_one(work_dir: Path) -> None:
    """As over SSH."""
    timer = FakeTimer()
    timer.advance_when(lambda: any("fake_host.py hangs in its second task" in command for command in commands()))
    found = list(plays(work_dir, "hangs", "good", at_once=1).run(Deadline.after(600, timer=timer)))
    late = {one.outcome.host: one.outcome for one in found if isinstance(one, HostResult)}

    assert late["hangs"].failed_task == "r : Two"
    assert late["hangs"].message == "not finished at the deadline"
    assert "waiting" in late["good"].message


def test_cancel_and_a_caller_that_stops_listening_end_every_client(work_dir: Path) -> None:
    """Within seconds; the host notices it by the end of its input."""
    cancelled = threading.Event()
    running = plays(work_dir, "hangs", "fails").run(Deadline.after(120, cancelled))
    assert isinstance(next(running), HostResult)
    cancelled.set()
    with pytest.raises(CancelledError):
        next(running)

    listened = plays(work_dir, "hangs", "fails").run(Deadline.after(900))
    next(listened)
    listened.close()
    assert not [command for command in commands() if "fake_host.py hangs" in command]

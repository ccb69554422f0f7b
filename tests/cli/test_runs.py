"""Detached runs: they outlive what orders them, are found lost where they were killed, and go on by a retry."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from clusterctl.fleet.errors import ConflictError, UsageError
from clusterctl.fleet.node import Stage
from clusterctl.fleet.payloads.runs import ProcessIdentity, RunAbandoned, RunBegun, RunEnded, RunOrdered
from clusterctl.operations import detached
from clusterctl.operations.operation import ignore
from clusterctl.operations.runs import RunState, this_process
from clusterctl.operations.serial import to_data
from lab.tests.lab_kit import eventually
from tests.busy_site import DISCOVER, PATIENCE_S, Place, busy_site
from tests.cli.site_of_three import run
from tests.edges.site.ready import BMC_PASSWORD
from tests.processes import status_of


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with busy_site(tmp_path) as found:
        yield found


@pytest.fixture
def other() -> Iterator[subprocess.Popen[bytes]]:
    """A process that is no run: it waits for its stdin to end."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def ended_process() -> ProcessIdentity:
    """The identity of a process of this boot that is gone."""
    return replace(this_process(), pid=2**22 + 1)


def ordered(by: ProcessIdentity, **fields: str) -> RunOrdered:
    return RunOrdered(operation="bootstrap", command="discover", request=to_data(DISCOVER), by=by, **fields)


def test_a_run_outlives_what_ordered_it_and_is_cancelled_cleanly(place: Place) -> None:
    """Kill -9 of the ordering command ends nothing. The run has a session of its own, no terminal, and a log of mode
    0600; `cancel` asks its own process to stop: 130, and what is done is kept.
    """
    command = [
        sys.executable,
        "-m",
        "clusterctl_cli.main",
        "discover",
        "--yes",
        "--detach",
        "--site",
        str(place.folder),
    ]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=quiet, stderr=quiet, stdin=quiet, start_new_session=True) as ordering:
        assert eventually(lambda: bool(place.runs()) and place.works(place.runs()[0].name), PATIENCE_S)
        os.killpg(ordering.pid, signal.SIGKILL)
        ordering.wait()
    (record,) = place.runs()
    assert record.state is RunState.RUNNING
    assert record.process is not None
    pid = record.process.pid
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    assert (int(stat[3]), int(stat[4])) == (pid, 0), "its own session, and no terminal"
    assert BMC_PASSWORD not in Path(f"/proc/{pid}/cmdline").read_text()
    assert status_of(pid)["State"].startswith(("S", "R", "D"))
    log = place.folder / "state" / "logs" / f"{record.name}.log"
    assert log.stat().st_mode & 0o777 == 0o600
    shown = run(place.folder, "runs", "show")
    assert "discover runs" in shown.output
    assert run(place.folder, "runs", "cancel", record.name, "--yes").return_value == 0
    record = place.until(record.name, RunState.ENDED)
    assert record.exit_code == 130
    assert record.cancelled_by
    context = place.open()
    with closing(context.journal):
        assert [node.stage for node in context.nodes()] == [Stage.SEEN]
        assert not context.journal.health().claims


def test_a_killed_run_is_lost_and_a_retry_goes_on(place: Place) -> None:
    """Kill -9 of a run: `list` has it as lost, `show` prints how to go on, and `retry` orders the same request again."""
    record = place.order()
    assert eventually(lambda: place.works(record.name), PATIENCE_S)
    assert record.process is not None
    os.kill(record.process.pid, signal.SIGKILL)
    place.until(record.name, RunState.LOST)
    assert "lost" in run(place.folder, "runs", "list").output
    assert f"runs retry {record.name}" in run(place.folder, "runs", "show", record.name).output
    with pytest.raises(UsageError, match="gone"):
        run(place.folder, "runs", "cancel", record.name, "--yes")
    again = run(place.folder, "runs", "retry", record.name, "--yes", "--json")
    assert again.return_value == 0
    found = json.loads(again.stdout)
    assert (found["earlier"], found["request"]) == (record.name, to_data(DISCOVER))
    assert eventually(lambda: place.works(found["name"]), PATIENCE_S), "the lost run's claim kept the node"


def test_an_approval_holds_for_the_preview_that_was_shown(place: Place) -> None:
    """A preview that has changed before the run begins: nothing is done, and the run ends with exit code 1."""
    record = place.until(place.order(approved="0" * 64).name, RunState.ENDED)
    assert record.exit_code == ConflictError.exit_code
    assert not place.works(record.name)
    assert record.actor == "ann"


def test_nothing_is_ordered_without_an_answer(place: Place) -> None:
    """`--dry-run` only previews; without a terminal and without `--yes` the exit code is 2."""
    assert run(place.folder, "discover", "--detach", "--dry-run").return_value == 0
    with pytest.raises(UsageError) as refused:
        run(place.folder, "discover", "--detach")
    assert refused.value.exit_code == 2
    assert place.runs() == ()
    assert "--detach" in run(place.folder, "runs", "list").output


def test_each_state_has_its_events(place: Place) -> None:
    """Waiting and running while the process lives, lost where it is gone, ended with the exit code that it wrote."""
    alive, gone = this_process(), ended_process()
    place.write("r1", ordered(alive))
    place.write("r2", ordered(gone))
    place.write("r3", ordered(gone), RunBegun(process=alive))
    place.write("r4", ordered(alive), RunBegun(process=gone))
    place.write("r5", ordered(gone), RunBegun(process=gone), RunEnded(exit_code=1, text="n1: it failed"))
    place.write("r6", ordered(gone), RunAbandoned(reason="it was cancelled", exit_code=130), RunBegun(process=alive))
    place.write("r7", ordered(gone), RunBegun(process=alive), RunAbandoned(reason="too late", exit_code=130))
    place.write("r8", ordered(gone), RunBegun(process=gone), RunBegun(process=alive))
    states = {record.name: (record.state, record.exit_code) for record in place.runs()}
    assert states == {
        "r1": (RunState.WAITING, None),
        "r2": (RunState.LOST, None),
        "r3": (RunState.RUNNING, None),
        "r4": (RunState.LOST, None),
        "r5": (RunState.ENDED, 1),
        "r6": (RunState.ENDED, 130),
        "r7": (RunState.RUNNING, None),
        "r8": (RunState.LOST, None),
    }
    assert run(place.folder, "runs", "list", "-o", "name").output.split() == sorted(states, reverse=True)
    document = json.loads(run(place.folder, "runs", "list", "--json").output)
    assert {one["name"]: (RunState(one["state"]), one["exit_code"]) for one in document["runs"]} == states
    assert run(place.folder, "runs", "show", "r5", "--watch").return_value == 1
    with pytest.raises(UsageError, match="8 runs"):
        run(place.folder, "runs", "show", "r")
    with pytest.raises(UsageError, match="no detached run"):
        run(place.folder, "runs", "cancel", "r9", "--yes")


def test_a_run_begins_once_and_never_after_it_was_abandoned(place: Place) -> None:
    """A second process of a run does nothing; neither does one whose run was cancelled before it began."""
    place.write("r1", ordered(this_process()))
    assert run(place.folder, "runs", "cancel", "r1", "--yes").return_value == 0
    place.write("r2", ordered(this_process()), RunBegun(process=ended_process()))
    for name in ("r1", "r2"):
        with pytest.raises(ConflictError):
            detached.execute(place.folder, name, threading.Event(), ignore)
        assert not place.works(name)
    assert place.find("r1").exit_code == 130


def test_a_lost_run_that_never_began_is_closed_by_its_retry(place: Place) -> None:
    """Its own process, should it come late, finds the run abandoned and does nothing."""
    place.write("r1", ordered(ended_process()))
    context = place.open()
    with closing(context.journal):
        record, request = detached.again(context, "r1")
        assert request == DISCOVER
        detached.close_lost(context, record)
    with pytest.raises(ConflictError):
        detached.execute(place.folder, "r1", threading.Event(), ignore)


def test_only_the_proven_process_gets_the_signal(place: Place, other: subprocess.Popen[bytes]) -> None:
    """A process with the number of the run's, started at another time, gets none; neither does one elsewhere."""
    place.write("r1", ordered(ended_process()), RunBegun(process=replace(this_process(), pid=other.pid, started="1")))
    assert place.find("r1").state is RunState.LOST
    away = ProcessIdentity(host="far.example", pid=other.pid, started="1", boot="another")
    place.write("r2", ordered(away), RunBegun(process=away))
    assert place.find("r2").state is RunState.RUNNING, "from here it cannot be known"
    with pytest.raises(UsageError, match="elsewhere"):
        run(place.folder, "runs", "cancel", "r2", "--yes")
    assert other.poll() is None


def test_what_still_runs_is_not_repeated(place: Place) -> None:
    """`retry` of a run that waits or runs is refused; so is one that another version wrote."""
    place.write("r1", ordered(this_process()))
    with pytest.raises(UsageError, match="waiting"):
        run(place.folder, "runs", "retry", "r1", "--yes")
    unknown = RunOrdered(operation="unheard_of", command="x", request={}, by=ended_process())
    place.write("r2", unknown)
    with pytest.raises(UsageError, match="detached"):
        run(place.folder, "runs", "retry", "r2", "--yes")
    assert {record.name for record in place.runs()} == {"r1", "r2"}

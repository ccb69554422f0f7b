"""The program that runs on the node, against real processes that hang in every way we can make: it ends and reports."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clusterctl_burnin.node import bundle
from clusterctl_burnin.probe import Probe, Readings, Status, UnmeasuredError, parse_readings, script
from tests.processes import started_as, unique_seconds

GOOD = Probe("good", ("sh", "-c", "echo fine"), timeout=250.0)
MIB = 1 << 20
BOUND = 60.0
HUNG = unique_seconds(4801)
"""Seconds, on a busy machine, for what takes two or three alone."""


def run(*probes: Probe, parallel: int = 8, budget: float | None = None) -> Readings:
    done = subprocess.run(
        [sys.executable, "-"],
        input=script(probes, parallel=parallel, budget=budget),
        capture_output=True,
        check=True,
        timeout=BOUND,
    )
    assert len(done.stdout) < 16 * MIB
    return parse_readings(done.stdout.decode())


def hanging(text: str, timeout: float = 1.5, **rest: Any) -> Probe:
    return Probe("hang", ("sh", "-c", text), timeout=timeout, **rest)


VFORK = f"{sys.executable} -c 'import ctypes, time; ctypes.CDLL(None).vfork() or time.sleep(600)'"
"""The parent of vfork(2) sleeps in the kernel, in state D, until its child is gone."""

WAYS = {
    "ignores every signal that can be": f"trap '' TERM HUP INT QUIT PIPE USR1; echo before; sleep {HUNG} & wait; sleep {HUNG}",
    "stops itself": f"echo before; kill -STOP $$; sleep {HUNG}",
    "stops its child": f"echo before; sleep {HUNG} & kill -STOP $!; wait",
    "leaves its session and waits for what left": f"echo before; setsid -w sleep {HUNG}",
    "waits for its input": f"echo before; cat <&1; sleep {HUNG}",
    "sleeps in the kernel": f"echo before; {VFORK}; sleep {HUNG}",
}


def test_a_budget_ends_probes_before_their_own_time_is_over() -> None:
    """Two hang, though they had hours, and the last one has no time left: three time-outs, and the program ends."""
    long = hanging(f"echo before; sleep {HUNG}", timeout=7200.0)
    others = (replace(long, name=name) for name in ("second", "third"))
    readings = run(replace(long, waits=True), *others, parallel=1, budget=3.0)
    assert {name: one.status for name, one in readings.probes.items()} == dict.fromkeys(
        ("hang", "second", "third"), Status.TIMEOUT
    )


@pytest.mark.parametrize("way", WAYS)
def test_a_probe_that_hangs_is_a_timeout_and_the_others_answer(way: str) -> None:
    """Its output so far is kept; nothing of it is left; the neighbour's result is whole."""
    readings = run(hanging(WAYS[way]), GOOD)
    hang = readings.probes["hang"]
    assert (hang.status, hang.rc, hang.stdout) == (Status.TIMEOUT, None, "before\n")
    assert readings.probes["good"].stdout == "fine\n"
    assert started_as("sleep", HUNG) == []


@pytest.mark.parametrize(("noise", "stream"), [("yes", "stdout"), ("yes >&2", "stderr")])
def test_endless_output_is_cut_off(noise: str, stream: str) -> None:
    """At `max_bytes`, in memory and in the answer; the probe never ends by itself and is a time-out."""
    hang = run(hanging(noise, max_bytes=5000), GOOD).probes["hang"]
    assert hang.status is Status.TIMEOUT
    assert len(getattr(hang, stream)) == 5000


def test_both_pipes_may_be_flooded_at_once() -> None:
    """A tool that writes megabytes to stderr before its one line to stdout is not stuck on a full pipe."""
    probe = hanging("head -c 5000000 /dev/zero | tr '\\0' e >&2; echo last", timeout=250.0, max_bytes=1000)
    found = run(probe).probes["hang"]
    assert (found.status, found.stdout, found.stderr) == (Status.OK, "last\n", "e" * 1000)


def test_output_after_the_end_of_a_probe_delays_no_other_probe() -> None:
    """The probe has ended: a child that never stops writing into its pipe does not use up the time-out."""
    found = run(hanging("setsid yes & echo over; exit 3", timeout=250.0), GOOD).probes["hang"]
    assert (found.status, found.rc) == (Status.OK, 3)
    assert found.seconds < 200


def test_many_that_hang_take_turns() -> None:
    """More hanging probes than places: the last in the queue still gets its answer."""
    hangs = [Probe(f"hang{i}", ("sleep", "4802"), timeout=0.5) for i in range(4)]
    readings = run(*hangs, GOOD, parallel=2)
    assert {readings.probes[probe.name].status for probe in hangs} == {Status.TIMEOUT}
    assert readings.probes["good"].stdout == "fine\n"


HOLD = """
import fcntl, os, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
held = os.open(sys.argv[1], os.O_RDWR)
fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("held", flush=True)
signal.pause()
signal.pause()
"""
"""Holds a write lease (fcntl(2)): a process that opens or runs the file waits in the kernel for 45 seconds."""


@pytest.fixture
def unreachable(tmp_path: Path) -> Iterator[Path]:
    """A program whose file cannot be opened, as on a file server that is gone."""
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\necho started\n")
    tool.chmod(0o755)
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tool)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        if holder.stdout.readline() != b"held\n":
            pytest.skip("this file system knows no leases")
        yield tool
        holder.kill()


def test_a_tool_with_a_hanging_file_stops_no_other_probe(unreachable: Path) -> None:
    """Starting it hangs in the kernel: it is a time-out like any other, and the rest of the sweep goes on meanwhile."""
    began = time.monotonic()
    readings = run(Probe("hang", (str(unreachable),), timeout=2.0), GOOD)
    assert time.monotonic() - began < 40
    assert readings.probes["hang"].status is Status.TIMEOUT
    assert readings.probes["good"].stdout == "fine\n"
    assert readings.probes["good"].seconds < 40


def test_what_respawns_faster_than_it_is_killed_is_not_chased_for_ever(tmp_path: Path) -> None:
    """A chain of processes, each in a session of its own: the answer comes all the same."""
    link = tmp_path / "link"
    link.write_text('#!/bin/sh\n[ "$1" -gt 0 ] && [ ! -e "$0.end" ] && setsid "$0" $(($1 - 1)) &\n')
    link.chmod(0o755)
    try:
        found = run(hanging(f"{link} 20000 >/dev/null 2>&1; echo over", timeout=10.0), GOOD)
    finally:
        (tmp_path / "link.end").touch()
    assert found.probes["hang"].stdout == "over\n"
    assert found.probes["good"].stdout == "fine\n"


def probe(name: str, timeout: float, *, waits: bool = False) -> dict[str, Any]:
    return {"name": name, "argv": [name], "timeout": timeout, "max_bytes": 100, "waits": waits}


def test_a_probe_that_only_waits_keeps_no_place() -> None:
    """It is begun first, also where it stands last, and one place is enough for all the others meanwhile."""
    begun: list[str] = []
    others_are_over = threading.Event()

    def run_one(one: dict[str, Any]) -> dict[str, Any]:
        begun.append(one["name"])
        if one["waits"]:
            assert others_are_over.wait(BOUND)
        if one["name"] == "last":
            others_are_over.set()
        return bundle.result_of(one, time.time(), "ok", rc=0)

    probes = [probe("first", BOUND), probe("last", BOUND), probe("watch", BOUND, waits=True)]
    results = bundle.Sweep(1, run_one).results(probes)
    assert begun == ["watch", "first", "last"]
    assert [(name, result["status"]) for name, result in results.items()] == [
        ("first", "ok"),
        ("last", "ok"),
        ("watch", "ok"),
    ]


def test_a_probe_that_holds_its_thread_is_given_up() -> None:
    """A call that never returns (a directory on a dead file server) costs its own result and its place in the queue."""
    forever = threading.Event()

    def stuck(one: dict[str, Any]) -> dict[str, Any]:
        if one["name"] == "stuck":
            forever.wait()
        return bundle.result_of(one, time.time(), "ok", rc=0, stdout="fine")

    results = bundle.Sweep(1, stuck, give_up=0.2).results([probe("stuck", 0.1), probe("next", 5.0)])
    forever.set()
    assert list(results) == ["stuck", "next"]
    assert (results["stuck"]["status"], results["stuck"]["stderr"]) == ("timeout", "it cannot be killed")
    assert results["next"]["stdout"] == "fine"


def test_a_probe_that_cannot_be_started_is_reported() -> None:
    """It is not "not installed"; and no other result is lost for it."""
    readings = run(Probe("odd", ("sh", "-c", "echo \0")), GOOD)
    with pytest.raises(UnmeasuredError, match=r"could not be started: ValueError"):
        readings.text(Probe("odd", ("sh", "-c", "echo \0")))
    assert readings.probes["good"].stdout == "fine\n"

"""The reader runs a command and fails closed. The commands here are small scripts in place of the real tools."""

from __future__ import annotations

import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from clusterctl.edges.infiniband import IbnetdiscoverReader
from clusterctl.fleet.errors import CancelledError, EdgeError, EnvironmentBrokenError, UnreachableError
from clusterctl.fleet.finding import Origin
from clusterctl.ports import Deadline
from lab.tests.lab_kit import eventually
from tests.fake_timer import FakeTimer
from tests.paths import ROOT
from tests.processes import descendants

NOW = datetime(2025, 3, 3, 10, tzinfo=UTC)


class StoppedClock:
    def now(self) -> datetime:
        return NOW


def reader(script: str, sminfo: str = "") -> IbnetdiscoverReader:
    return IbnetdiscoverReader(
        StoppedClock(),
        Origin.SIMULATED,
        command=("/bin/sh", "-c", script),
        sminfo=("/bin/sh", "-c", sminfo) if sminfo else (),
    )


def test_text_and_evidence():
    """The whole text is value and evidence, with command, time and origin; the master's answer is evidence too."""
    observed = reader("echo 'Switch 1'", "echo 'sminfo: state 3 SMINFO_MASTER'").ibnetdiscover(Deadline.after(60))
    assert observed.value == "Switch 1\n"
    fabric, master = observed.evidence
    assert (fabric.content, fabric.at, fabric.origin) == (b"Switch 1\n", NOW, Origin.SIMULATED)
    assert b"SMINFO_MASTER" in master.content


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo text; echo 'no port' >&2; exit 3", "exit status 3: no port"),
        ("true", "no output"),
        ("echo text; echo 'Duplicate Port: Port with guid 0x1' >&2", "it reports an error: Duplicate Port"),
        ("echo text; echo 'no SM found' >&2", "it reports an error: no SM"),
        (r"printf 'a\377b'", "not UTF-8"),
    ],
)
def test_what_is_not_a_fabric_is_an_error(script, message):
    """Non-zero exit status, empty output, printed errors and garbage never pass for a healthy fabric."""
    with pytest.raises(EdgeError, match=message) as caught:
        reader(script).ibnetdiscover(Deadline.after(60))
    assert caught.value.remedy


@pytest.mark.parametrize("crash", ["kill -SEGV $$", "exit 139"], ids=["it", "behind a shell"])
def test_a_tool_that_crashed_is_run_once_more(tmp_path: Path, crash: str) -> None:
    """And no more often: the second crash is an error."""
    seen = tmp_path / "seen"
    once = f"[ -e {seen} ] || {{ touch {seen}; {crash}; }}; echo 'Switch 1'"
    assert reader(once).ibnetdiscover(Deadline.after(600)).value == "Switch 1\n"
    with pytest.raises(EdgeError):
        reader(crash).ibnetdiscover(Deadline.after(600))


TIMED_OUT = "src/query_smp.c:197; umad (DR path slid 0; dlid 0; 0,1,2 Attr 0x11:0) bad status 110; Connection timed out"


@pytest.mark.parametrize(("times", "readings", "reported"), [(0, 1, False), (1, 2, False), (2, 3, False), (9, 3, True)])
def test_a_device_that_was_too_slow_is_asked_again(tmp_path: Path, times: int, readings: int, reported: bool) -> None:
    """The tool leaves it out and ends with 0: so the fabric is read again, three times at most, and the messages about
    the last reading stands in the evidence.
    """
    count = tmp_path / "count"
    script = f"echo x >> {count}; echo text; [ $(wc -l < {count}) -gt {times} ] || echo '{TIMED_OUT}' >&2"
    observed = reader(script).ibnetdiscover(Deadline.after(60))
    assert (observed.value, len(count.read_text().split())) == ("text\n", readings)
    assert (b"# stderr: src/query_smp.c:197" in observed.evidence[0].content) is reported


@pytest.mark.parametrize("answer", ["echo 'state 2 SMINFO_STANDBY'", "exit 1"])
def test_no_master_no_reading(answer):
    """Without a master subnet manager the fabric is not read."""
    with pytest.raises(EdgeError):
        reader("echo text", answer).ibnetdiscover(Deadline.after(60))


def test_missing_tool():
    """A tool that is not installed is the environment's fault, with the package to install."""
    with pytest.raises(EnvironmentBrokenError, match="infiniband-diags"):
        IbnetdiscoverReader(StoppedClock(), Origin.REAL, command=("/nonexistent/tool",)).ibnetdiscover(
            Deadline.after(60)
        )


def test_deadline_kills_the_whole_command(tmp_path: Path):
    """A command that hangs is killed with its children at the deadline."""
    timer, pid = FakeTimer(), tmp_path / "pid"
    timer.advance_when(lambda: pid.exists() and pid.read_text().strip())
    with pytest.raises(UnreachableError):
        reader(f"echo $$ > {pid}; sleep 600 & wait").ibnetdiscover(Deadline.after(600, timer=timer))
    session = pid.read_text().strip()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        assert fields[3] != session or fields[0] == "Z"


def test_the_command_dies_with_us(tmp_path: Path):
    """Killed with -9 while it reads, the controller leaves no tool behind that waits for an answer for ever."""
    script = f"""
from clusterctl.ports import Deadline
from tests.fabric.test_reader import reader
reader("echo $$ > {tmp_path}/pid; sleep 1000 & wait").ibnetdiscover(Deadline.after(1000))
"""
    with subprocess.Popen([sys.executable, "-c", script], cwd=ROOT) as controller:
        assert eventually((tmp_path / "pid").exists)
        tools = descendants(controller.pid)
        assert any("sleep 1000" in tool.command for tool in tools)
        controller.kill()
    assert eventually(lambda: not [tool for tool in tools if tool.lives])


def test_cancel():
    """A cancelled run stops the command at once."""
    cancelled = threading.Event()
    timer = threading.Timer(0.3, cancelled.set)
    timer.start()
    with pytest.raises(CancelledError):
        reader("sleep 60").ibnetdiscover(Deadline.after(60, cancelled))
    timer.join()

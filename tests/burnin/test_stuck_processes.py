"""stuck_processes and the program that it reads: only a process that never runs is stuck; the finding has the place."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.host.linux import parse_stuck_processes
from clusterctl_burnin.node.programs import stuck_processes
from clusterctl_burnin.registry import CHECKS
from clusterctl_burnin.roots import link_roots
from tests.burnin.kit import expected, readings, result


def found(*stuck: tuple[str, bool, str], looked_at: int = 200) -> tuple[Finding, ...]:
    rows = [{"pid": 7 + at, "name": name, "kernel": own, "waits_in": fn} for at, (name, own, fn) in enumerate(stuck)]
    text = json.dumps({"seconds": 10.1, "looked_at": looked_at, "stuck": rows})
    return CHECKS["stuck_processes"].findings(readings(stuck_processes=result("stuck_processes", text)), expected())


@pytest.mark.parametrize(
    ("function", "remedy"),
    [
        ("rpc_wait_bit_killable", "file servers"),
        ("nfs_wait_bit_killable", "file servers"),
        ("io_schedule", "I/O errors"),
        ("nvidia_ioctl", "Xid"),
        ("", "/proc/PID/stack"),
        ("wait_for_completion", "/proc/PID/stack"),
    ],
)
def test_a_stuck_process_fails_with_what_it_waits_for(function: str, remedy: str) -> None:
    """Named with its number; a second look may come out otherwise."""
    (finding,) = found(("python3", False, function))
    assert (finding.verdict, finding.subject) == (Verdict.FAIL, "python3 (process 7)")
    assert function in finding.cause
    assert remedy in finding.remedy
    assert not finding.deterministic


def test_a_thread_of_the_kernel_is_a_warning() -> None:
    """Some drivers' threads wait so when they have nothing to do."""
    assert [finding.verdict for finding in found(("nv_queue", True, "nv_wait"))] == [Verdict.WARN]


def test_a_reading_without_any_process_is_no_reading() -> None:
    """There is always a process: the one that looks."""
    assert [finding.verdict for finding in found(looked_at=0)] == [Verdict.INCONCLUSIVE]


def test_what_it_leaves_unmeasured_points_at_it() -> None:
    """A driver that hangs explains the time-outs, and an Xid explains the hang."""
    xid = Finding(
        check="kernel_log",
        verdict=Verdict.FAIL,
        code=Code.XID,
        subject="gpu 0",
        cause="x",
        measured="Xid 119",
    )
    hang, late = (
        Finding(check="stuck_processes", verdict=Verdict.FAIL, code=Code.PROCESS_HUNG, subject="p"),
        Finding(
            check="docker", verdict=Verdict.INCONCLUSIVE, code=Code.PROBE_TIMED_OUT, cause="x did not answer within 9 s"
        ),
    )
    assert [finding.root for finding in link_roots((hang, late))] == ["", hang.key]
    missing = Finding(
        check="nvlink",
        verdict=Verdict.INCONCLUSIVE,
        code=Code.TOOL_MISSING,
        cause="nvidia-smi is not installed on the node",
    )
    assert [finding.root for finding in link_roots((hang, missing))] == ["", ""]
    assert [finding.root for finding in link_roots((hang, late, xid))] == [xid.key, xid.key, ""]


def process(root: Path, pid: int, *, name: str = "tool", state: str = "D", parent: int = 1, switches: int = 5) -> None:
    folder = root / str(pid)
    folder.mkdir(exist_ok=True)
    zeros = " ".join(["0"] * 17)
    (folder / "stat").write_text(f"{pid} ({name}) {state} {parent} {zeros} 4242 0\n")
    (folder / "status").write_text(
        f"Name:\t{name}\nvoluntary_ctxt_switches:\t{switches}\nnonvoluntary_ctxt_switches:\t1\n"
    )
    (folder / "wchan").write_text("io_schedule")


def test_the_second_look_decides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names may hold brackets and blanks; who sleeps otherwise, has ended or is a thread of the kernel is known."""
    process(tmp_path, 11, name="a) D (b")
    process(tmp_path, 12, state="S")
    process(tmp_path, 13, parent=2)
    (tmp_path / "14").mkdir()
    stuck_processes.main(0.0, tmp_path)
    first, second = parse_stuck_processes(capsys.readouterr().out)
    assert (first.pid, first.name, first.kernel, first.waits_in) == (11, "a) D (b", False, "io_schedule")
    assert (second.pid, second.kernel) == (13, True)


def test_a_process_that_ran_in_between_is_not_stuck(tmp_path: Path) -> None:
    """Busy with a slow drive is in state D at every look, and works."""
    process(tmp_path, 11)
    process(tmp_path, 12)
    before = sorted(stuck_processes.look(tmp_path))
    process(tmp_path, 11, switches=6)
    assert [one.pid for one in stuck_processes.watch(before, 0.0, tmp_path)] == [12]


def test_the_program_does_not_wait_where_no_process_sleeps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On a sound node the probe is over after its first look; a day would be too long for this test."""
    process(tmp_path, 11, state="S")
    stuck_processes.main(86_400.0, tmp_path)
    assert parse_stuck_processes(capsys.readouterr().out) == ()


def test_a_process_that_wakes_up_ends_the_watch(tmp_path: Path) -> None:
    """It need not be watched to the end of the time, and no other process is."""
    process(tmp_path, 11)
    before = stuck_processes.look(tmp_path)
    process(tmp_path, 11, switches=6)
    assert stuck_processes.watch(before, time.monotonic() + 86_400.0, tmp_path) == []


def test_a_real_one_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    """The parent of a vfork(2) that never goes on, in the very /proc of this machine."""
    program = "import ctypes, time; ctypes.CDLL(None).vfork() or time.sleep(3600)"
    with subprocess.Popen([sys.executable, "-c", program], start_new_session=True) as real:
        stat = Path(f"/proc/{real.pid}/stat")
        until = time.monotonic() + 600
        while stat.read_text().rpartition(")")[2].split()[0] != "D" and time.monotonic() < until:
            time.sleep(0.05)
        stuck_processes.main(0.3)
        children = Path(f"/proc/{real.pid}/task/{real.pid}/children").read_text().split()
        subprocess.run(["kill", "-KILL", str(real.pid), *children], check=True)
    assert real.pid in {one.pid for one in parse_stuck_processes(capsys.readouterr().out)}

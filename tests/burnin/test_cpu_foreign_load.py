"""cpu_foreign_load: what uses the processors of an idle node. The program reads a /proc that is made here (proc(5))."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.host.linux import parse_cpu_load
from clusterctl_burnin.node.programs import cpu_load
from clusterctl_burnin.registry import CHECKS
from tests.burnin.kit import expected, healthy_text, readings

TICKS = os.sysconf("SC_CLK_TCK")


def found(*processes: tuple[str, float, bool]) -> list[tuple[str, Verdict, Code, str]]:
    listed = [
        {"pid": 100 + at, "name": name, "user": "alice", "kernel": kernel, "percent": percent}
        for at, (name, percent, kernel) in enumerate(processes)
    ]
    text = json.dumps({"seconds": 4.0, "looked_at": 300, "processes": listed})
    judged = CHECKS["cpu_foreign_load"].findings(readings(cpu_load=lambda _: text), expected())
    return [(one.subject, one.verdict, one.code, one.cause) for one in judged]


def test_a_healthy_node() -> None:
    """Its own services take a few percent of one processor."""
    assert len(parse_cpu_load(healthy_text("cpu_load"))) == 2
    assert [one[1] for one in found(("nv-hostengine", 1.7, False), ("kworker/3:1", 1.2, True))] == [Verdict.PASS]
    assert [one[1] for one in found()] == [Verdict.PASS]


def test_the_greatest_is_named() -> None:
    """With its user, and the next two; arguments are not read."""
    ((subject, verdict, code, cause),) = found(
        ("a", 30, False), ("python3", 99.4, False), ("b", 20, False), ("c", 5, False)
    )
    assert (subject, verdict, code) == ("python3 (process 101)", Verdict.FAIL, Code.CPU_FOREIGN_LOAD)
    assert cause.endswith("python3 of alice 99 %, a of alice 30 %, b of alice 20 %")


def test_many_small_ones_count_together() -> None:
    assert [one[1] for one in found(*[(f"p{at}", 10.5, False) for at in range(10)])] == [Verdict.FAIL]
    assert [one[1] for one in found(("p", 100.0, False))] == [Verdict.PASS]


def test_a_thread_of_the_kernel() -> None:
    ((subject, verdict, _, cause),) = found(("kswapd0", 101, True))
    assert (subject, verdict) == ("kswapd0 (process 100)", Verdict.FAIL)
    assert "kswapd0 of the kernel 101 %" in cause


@pytest.mark.parametrize("text", ["", "{}", '{"seconds": 4, "looked_at": 0, "processes": []}'])
def test_nothing_measured_is_no_pass(text: str) -> None:
    judged = CHECKS["cpu_foreign_load"].findings(readings(cpu_load=lambda _: text), expected())
    assert [one.verdict for one in judged] == [Verdict.INCONCLUSIVE]


class Proc:
    """A /proc: process → (name, parent, ticks)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, **processes: tuple[str, int, float]) -> None:
        for pid, (name, parent, seconds) in processes.items():
            one = self.folder / pid.removeprefix("p")
            one.mkdir(exist_ok=True)
            ticks = int(seconds * TICKS)
            (one / "stat").write_text(f"{one.name} ({name}) S {parent} {'0 ' * 9}{ticks} 0 0 0 20 0 1 0 77 0 0\n")


def measured(proc: Proc, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """Run the program: between its two looks each process works as `proc` orders, for one second."""
    clock = iter([10.0, 11.0])
    monkeypatch.setattr(cpu_load.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(cpu_load.os, "getpid", lambda: 50)
    assert cpu_load.main(1.0, proc.folder) == 0
    answer: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["processes"]
    return answer


def test_the_burn_in_itself_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All of its SSH session is; another session of the same server, and a name with blanks and brackets, are not."""
    proc = Proc(tmp_path)
    proc.write(
        p1=("systemd", 0, 0), p2=("kthreadd", 0, 0), p3=("kswapd0", 2, 0), p30=("sshd", 1, 0), p40=("sshd", 30, 0)
    )
    proc.write(p45=("python3", 40, 0), p50=("python3", 45, 0), p51=("turbostat", 45, 0), p60=("sshd", 30, 0))
    proc.write(p61=("a ) b", 60, 2.0), p70=("gone", 1, 5))

    def works(_: float) -> None:
        proc.write(p51=("turbostat", 45, 3), p50=("python3", 45, 1), p61=("a ) b", 60, 2.5), p3=("kswapd0", 2, 0.25))
        proc.write(p80=("new", 1, 0.4))

    monkeypatch.setattr(cpu_load.time, "sleep", works)
    answer = measured(proc, monkeypatch, capsys)
    assert [(one["pid"], one["name"], one["kernel"]) for one in answer] == [
        (61, "a ) b", False),
        (80, "new", False),
        (3, "kswapd0", True),
    ]
    assert [round(one["percent"]) for one in answer] == [50, 40, 25]


def test_a_service_of_the_system_is_left_out_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Started by a timer or by Slurm, it has no SSH server above it."""
    proc = Proc(tmp_path)
    proc.write(p1=("systemd", 0, 0), p45=("clusterctl-node", 1, 0), p50=("python3", 45, 0), p60=("cron", 1, 0))
    monkeypatch.setattr(cpu_load.time, "sleep", lambda _: proc.write(p45=("clusterctl-node", 1, 1), p60=("cron", 1, 1)))
    assert [one["pid"] for one in measured(proc, monkeypatch, capsys)] == [60]

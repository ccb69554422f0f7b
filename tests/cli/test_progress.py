"""What a run prints while it works: plain lines without a terminal, a table that cuts no name or stage on one."""

from __future__ import annotations

import errno
import io
import logging
import os
from collections.abc import Callable
from contextlib import suppress

import pytest
from rich.console import Console

from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.gate import Advance, Quarantine
from clusterctl.fleet.node import NodeId, Stage, Step
from clusterctl.fleet.state import NodeState, NodeSummary, summarise
from clusterctl.operations.bootstrap import RunStarted, StepProgress, StepStopped
from clusterctl.operations.operation import Control, Event
from clusterctl.operations.run_log import PROGRESS
from clusterctl_cli.console import VisibleConsole
from clusterctl_cli.progress import ProgressView

CAUSE = "cables are on the wrong rail: found leaf-p1-r2 port 7 – node099 mlx5_0, the plan has mlx5_1 there"
FAILED = Finding(check="cable", verdict=Verdict.FAIL, code=Code.GPU_COUNT, cause=CAUSE)


def node(name: str, stage: Stage, cause: str = "", stopped_at: Step | None = None) -> NodeSummary:
    return summarise(NodeState(NodeId(name), name, stage, cause=cause, stopped_at=stopped_at))


@pytest.mark.parametrize("quiet", [False, True])
def test_a_stopped_step_is_printed_at_once(capsys: pytest.CaptureFixture[str], quiet: bool) -> None:
    """The stop of a step's waves is one line on stderr during the run, with the reason; a timer gets no lines."""
    with ProgressView(table_only=quiet) as view:
        view.on_event(StepStopped(step=Step.INSTALL, reason="2 of the last 2 machines failed"))
        printed = capsys.readouterr()
    line = "install STOPPED for all nodes that have not begun: 2 of the last 2 machines failed"
    assert printed.out == ""
    assert [text.split("s  ", 1)[1] for text in printed.err.splitlines()] == ([] if quiet else [line])


def test_a_reader_that_has_gone_ends_no_run() -> None:
    """As with `2>&1 | head`: what follows is not printed, stdout stays what it was, and the thread works on."""
    reader, writer = os.pipe()
    os.close(reader)
    before = os.fstat(1)
    with suppress(BrokenPipeError), os.fdopen(writer, "w", buffering=1) as gone:  # whose end flushes it once more
        view = ProgressView(console=VisibleConsole(file=gone))
        view.on_event(Event(node="n1", text="goes on"))
        view.on_event(Event(node="n1", text="goes on"))
    assert os.fstat(1) == before


def test_a_full_disk_under_the_output_ends_no_run() -> None:
    """As with `2> file`: the line is lost."""

    def full(_event: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    Control(on_event=full).waiting("goes on")


def test_without_a_terminal_each_event_is_one_plain_line(capsys: pytest.CaptureFixture[str]) -> None:
    """No table, no colour, no cursor: a log of lines, with the time that the step took."""
    with ProgressView() as view:
        view.on_event(RunStarted(nodes=(node("n1", Stage.SEEN),), steps=tuple(Step)))
        view.on_event(StepProgress(node=node("n1", Stage.SEEN), step=Step.DISCOVER))
        view.on_event(StepProgress(node=node("n1", Stage.SEEN), step=Step.DISCOVER, text="reads\x1b[2J its BMC"))
        advance = Advance(Stage.DISCOVERED, Verdict.PASS)
        view.on_event(StepProgress(node=node("n1", Stage.DISCOVERED), step=Step.DISCOVER, decision=advance))
    lines = [line.split("s  ", 1)[1] for line in capsys.readouterr().err.splitlines()]
    assert lines == ["n1  discover: reads\\x1b[2J its BMC", "n1  discovered after 0:00"]


def on_terminal(fill: Callable[[ProgressView], None], *, width: int = 80, height: int = 24) -> list[str]:
    """Return the lines of the table as a terminal shows them."""
    console = Console(file=io.StringIO(), force_terminal=True, width=width, height=height, color_system=None)
    with ProgressView(console=console) as view:
        fill(view)
    with console.capture() as captured:
        console.print(view)
    return captured.get().splitlines()


def at_work(*names: str) -> Callable[[ProgressView], None]:
    """Return what fills a view with nodes: the first in quarantine at cable, the others in configure."""

    def fill(view: ProgressView) -> None:
        nodes = tuple(node(name, Stage.INSTALLED) for name in names)
        view.on_event(RunStarted(nodes=nodes, steps=tuple(Step), expected_s={Step.CONFIGURE: 1090.0}))
        for name in names[1:]:
            view.on_event(StepProgress(node=node(name, Stage.INSTALLED), step=Step.CONFIGURE))
        stopped = node(names[0], Stage.QUARANTINED, CAUSE, Step.CABLE)
        view.on_event(StepProgress(node=stopped, step=Step.CABLE, decision=Quarantine(FAILED)))

    return fill


@pytest.mark.parametrize("name", ["node007", "gpu-h100-rack17-unit042.cluster.example.org"])
@pytest.mark.parametrize("width", [80, 100, 200])
def test_names_stages_and_causes_are_whole(name: str, width: int) -> None:
    """At 80 columns, too: no name and no stage is cut, each word of the cause is there, no line is too long."""
    lines = on_terminal(at_work(name, "node008"), width=width)
    assert max(map(len, lines)) <= width
    row = next(line for line in lines if line.startswith(name))
    assert row.split()[1:3] == ["✓✓✓✗··", "quarantined"]
    words = " ".join(lines).split()
    assert [word for word in words if word in CAUSE.split()] == CAUSE.split()


@pytest.mark.parametrize("width", [20, 40, 60])
def test_a_terminal_that_is_too_narrow_for_a_row(width: int) -> None:
    """Name, progress, stage and cause have lines of their own: nothing is cut, and no line is wider than the screen."""
    name = "gpu-h100-rack17-unit042.cluster.example.org"
    lines = on_terminal(at_work(name, "node008"), width=width, height=200)
    shown = "".join(line.strip() for line in lines).replace(" ", "")
    assert max(map(len, lines)) <= width
    for text in (name, "✓✓✓✗··quarantined", "configure0:00of~18:10", CAUSE.replace(" ", "")):
        assert text in shown
    counts = on_terminal(at_work(*(f"node{n:03}" for n in range(100))), width=width)
    assert max(map(len, counts)) <= width


def test_a_step_shows_how_long_it_has_run_and_how_long_it_takes() -> None:
    """The time of this node, and what the step took for others before."""
    row = next(line for line in on_terminal(at_work("node007", "node008")) if line.startswith("node008"))
    assert row.split() == ["node008", "✓✓▶···", "configure", "0:00", "of", "~18:10"]


def test_more_nodes_than_lines_are_counted_by_step() -> None:
    """Nothing is hidden below the end of the screen: counts per step, with the longest and the expected time."""
    lines = on_terminal(at_work(*(f"node{n:03}" for n in range(100))))
    assert len(lines) <= 24
    assert next(line for line in lines if line.startswith("configure")).split() == [
        "configure", "99", "1", "0", "0:00", "~18:10",
    ]  # fmt: skip
    assert next(line for line in lines if line.startswith("cable")).split() == ["cable", "0", "0", "1"]


def test_a_night_shows_its_nodes_on_a_terminal() -> None:
    """Batch after batch in one table; what was measured stays in it."""
    console = Console(file=io.StringIO(), force_terminal=True, width=80, height=24, color_system=None)
    with ProgressView(table_only=True, console=console) as view:
        view.on_event(RunStarted(nodes=(node("node001", Stage.CABLED),), steps=(Step.BURNIN, Step.ADMIT)))
        advance = Advance(Stage.GOLD, Verdict.PASS)
        view.on_event(StepProgress(node=node("node001", Stage.GOLD), step=Step.ADMIT, decision=advance))
        view.on_event(RunStarted(nodes=(node("node002", Stage.CABLED),), steps=(Step.BURNIN, Step.ADMIT)))
        view.on_event(StepProgress(node=node("node002", Stage.CABLED), step=Step.BURNIN))
        with console.capture() as captured:
            console.print(view)
    rows = [line.split() for line in captured.get().splitlines()]
    assert ["node001", "✓★", "gold"] in rows
    assert ["node002", "▶·", "burnin", "0:00"] in rows


def test_each_line_is_in_the_runs_log(caplog: pytest.LogCaptureFixture) -> None:
    """Those that a terminal shows in its table alone, too."""
    with caplog.at_level(logging.INFO, logger=PROGRESS):
        on_terminal(at_work("node007", "node008"))
    assert [record.getMessage().split("s  ", 1)[1] for record in caplog.records] == [
        f"node007  QUARANTINED at cable: {CAUSE}"
    ]

"""What a run prints while it works, without a terminal."""

from __future__ import annotations

import pytest

from clusterctl.fleet.node import Step
from clusterctl.operations.bootstrap import StepStopped
from clusterctl_cli.progress import ProgressView


@pytest.mark.parametrize("quiet", [False, True])
def test_a_stopped_step_is_printed_at_once(capsys: pytest.CaptureFixture[str], quiet: bool) -> None:
    """The stop of a step's waves is one line on stderr during the run, with the reason; --quiet omits it."""
    with ProgressView(quiet=quiet) as view:
        view.on_event(StepStopped(step=Step.INSTALL, reason="2 of the last 2 machines failed"))
        printed = capsys.readouterr()
    line = "install STOPPED for all nodes that have not begun: 2 of the last 2 machines failed"
    assert printed.out == ""
    assert [text.split("s  ", 1)[1] for text in printed.err.splitlines()] == ([] if quiet else [line])

"""What a command prints of its outcomes: whole in a pipe, no wider than the terminal on one."""

from __future__ import annotations

from clusterctl.operations.operation import Failure, Outcome
from clusterctl_cli.output import outcomes_table

LONG = "back to before burnin, since its cable was replaced; clusterctl bootstrap goes on with it from there"
OUTCOMES = (
    Outcome(node="node001", text=LONG),
    Outcome(node="node002", failure=Failure(kind="claim", message="held by another run of ops, since 02:00")),
)


def test_a_terminal_of_80_columns_shows_all_words() -> None:
    """No line is longer, and text and error are whole."""
    lines = outcomes_table(OUTCOMES, 80).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == ["NODE", "RESULT"]
    words = " ".join(" ".join(lines).split())
    assert LONG in words
    assert "node002 held by another run of ops, since 02:00" in words


def test_a_pipe_gets_a_line_for_each_node() -> None:
    head, *rows = outcomes_table(OUTCOMES, None).splitlines()
    assert head.split() == ["NODE", "RESULT", "ERROR"]
    assert len(rows) == len(OUTCOMES)

"""What commands print: previews, events and results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from clusterctl.operations.operation import Event, Failure, Outcome, Preview, Result, current_time
from clusterctl.operations.serial import to_data
from clusterctl_cli.formats import print_document
from clusterctl_cli.text import ago, columns, echo, terminal_width, wrapped

UNCHANGED = "Nothing was changed."


def preview_lines(preview: Preview) -> Iterator[str]:
    """Return a preview as text, one line per node."""
    for effect in preview.effects:
        yield f"{effect.node}: {effect.text}" if effect.node else effect.text
    for name, reason in preview.skipped.items():
        yield f"left alone: {name}: {reason}"


def print_preview(preview: Preview, *, as_json: bool) -> None:
    """Print what an operation would do; as JSON `{"dry_run": true, …}` with the keys of `Preview`."""
    if as_json:
        print_document({"dry_run": True, **to_data(preview)})
        return
    for warning in preview.warnings:
        echo(f"warning: {warning}", err=True)
    for line in (*preview_lines(preview), "", UNCHANGED):
        echo(wrapped(line, terminal_width()))


def event_line(event: Event) -> str:
    """Return an event as one line."""
    text = f"{event.text}: {event.failure}" if event.text and event.failure else event.text or str(event.failure)
    return f"{event.node}: {text}" if event.node else text


def print_result(result: Result, *, as_json: bool) -> None:
    """Print what became of each node; as JSON with the keys of `Result`, and `nodes` for its outcomes."""
    if as_json:
        document = to_data(result)
        del document["outcomes"]
        print_document({**document, "dry_run": False, "nodes": [outcome_json(outcome) for outcome in result.outcomes]})
        return
    if result.outcomes:
        echo(outcomes_table(result.outcomes, terminal_width()))
    for name, reason in result.skipped.items():
        echo(f"left alone: {name}: {reason}")
    if result.stopped:
        echo(result.stopped)


def outcomes_table(outcomes: Sequence[Outcome], width: int | None) -> str:
    """Return a line per node; on a terminal of this width the error stands behind the text, wrapped, in one column."""
    rows = [(item.node, item.text, item.failure.message if item.failure else "") for item in outcomes]
    if width is None:
        return columns(("NODE", "RESULT", "ERROR"), rows)
    joined = [(node, ": ".join(part for part in (text, error) if part)) for node, text, error in rows]
    return columns(("NODE", "RESULT"), joined, width=width)


def outcome_json(outcome: Outcome) -> dict[str, Any]:
    """Return one node of a result: its name, text, error or null, and the operation's own values."""
    error = failure_json(outcome.failure) if outcome.failure else None
    return {"name": outcome.node, "text": outcome.text, "error": error, **outcome.values}


def failure_json(failure: Failure) -> dict[str, str]:
    """Return `{"kind", "message", "where", "remedy"}`."""
    found: dict[str, str] = to_data(failure)
    return found


def print_accounts(result: Result, *, as_json: bool) -> None:
    """Print which password each BMC accepts."""
    if as_json:
        print_result(result, as_json=True)
        return
    rows = []
    for item in result.outcomes:
        values, failure = item.values, item.failure.message if item.failure else ""
        since = datetime.fromisoformat(values["since"]) if values["since"] else None
        limits = length_limits(values["min_length"], values["max_length"])
        rows.append((item.node, item.text, values["login"], ago(since, current_time()), limits, failure))
    echo(columns(("NODE", "ACCEPTS", "LOGIN", "CHANGED", "LENGTH", "ERROR"), rows, width=terminal_width()))


def length_limits(shortest: int | None, longest: int | None) -> str:
    """Return how long a password may be; empty where the BMC reports no limit."""
    if shortest and longest:
        return f"{shortest} to {longest}"
    return f"at least {shortest}" if shortest else f"at most {longest}" if longest else ""

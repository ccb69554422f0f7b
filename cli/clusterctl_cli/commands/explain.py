"""`clusterctl explain TEXT…|-`: what a line of a log means, what is to blame, what to do."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from clusterctl.fleet.errors import UsageError
from clusterctl_cli.formats import DOCUMENTS, format_option, print_document
from clusterctl_cli.text import brief, echo, terminal_width

if TYPE_CHECKING:
    from clusterctl.operations.line_explanation import ExplainedLine, ExplainResult

_INDENT = 10
_ROLES = {
    "cause": "it may be the first error",
    "consequence": "another error came first",
    "context": "it ends no job by itself",
}


@click.command("explain")
@click.argument("text", nargs=-1, required=True)
@format_option(*DOCUMENTS)
@click.pass_context
def explain(ctx: click.Context, text: tuple[str, ...], as_json: bool) -> None:
    """Explain one line of a log: Xid, SXid, NCCL, CUDA, PyTorch, MLX5, AER, EDAC, NVMe, NFS, Lustre, OOM killer, Slurm.

    TEXT is the line, in quotes or not. `-` reads lines from stdin, and explains each kind of line once.

    Exit code 0: at least one line is known; 1: no rule knows any; 2: wrong usage.
    """
    from clusterctl.operations import line_explanation

    result = line_explanation.run(_lines(text))
    if as_json:
        print_document({"lines": [_json(line) for line in result.lines], "unknown": result.unknown})
    else:
        _print(result)
    ctx.exit(result.exit_code)


def _lines(text: tuple[str, ...]) -> Iterator[str]:
    """Yield the lines that were asked for; a line may have any length and any bytes."""
    if text != ("-",):
        joined = " ".join(text)
        if not joined.strip():
            raise UsageError("there is no text in it", where="TEXT", remedy="give the line of the log, or - for stdin")
        yield joined
        return
    while line := sys.stdin.buffer.readline(1 << 16):
        yield line.decode(errors="replace")


def _json(line: ExplainedLine) -> dict[str, Any]:
    meaning = line.meaning
    return {
        "line": line.line,
        "times": line.times,
        "rule": meaning.rule,
        "layer": meaning.blame.layer.value,
        "certainty": meaning.blame.certainty.value,
        "role": meaning.blame.role.value,
        "failure": meaning.failure.value,
        "persistence": meaning.blame.persistence.value,
        "meaning": meaning.meaning,
        "remedy": meaning.remedy,
        "parts": dict(meaning.parts),
        "source": meaning.source,
    }


def _print(result: ExplainResult) -> None:
    for line in result.lines:
        meaning, blame = line.meaning, line.meaning.blame
        times = f" ({line.times} lines)" if line.times > 1 else ""
        echo(f"{brief(line.line, (terminal_width() or 120) - len(times) - 1)}{times}")
        _field("meaning", meaning.meaning)
        _field("blame", f"{blame.layer.value}, {blame.certainty.value}")
        _field("role", f"{blame.role.value}: {_ROLES[blame.role.value]}")
        _field("failure", f"{meaning.failure.value}; persistence {blame.persistence.value}")
        if meaning.parts:
            _field("names", ", ".join(f"{name} {value}" for name, value in meaning.parts.items()))
        _field("do", meaning.remedy)
        _field("rule", f"{meaning.rule} ({meaning.source})")
        echo()
    if result.unknown:
        echo(f"{result.unknown} {'line' if result.unknown == 1 else 'lines'} that no rule knows", err=True)


def _field(name: str, value: str) -> None:
    head = f"  {name:<{_INDENT - 2}}"
    width = terminal_width()
    if width is None:
        echo(head + value)
        return
    for number, part in enumerate(textwrap.wrap(value, max(20, width - _INDENT)) or [""]):
        echo((head if number == 0 else " " * _INDENT) + part)

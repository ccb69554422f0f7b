"""No text of a peer reaches a terminal, a document or a log as anything but visible text."""

from __future__ import annotations

import ast
import csv
import io
import json
import logging
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.text import Text

import clusterctl_cli
from clusterctl.fleet.event import Kind
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.peer_text import has_unseen, visible, visible_json, visible_line
from clusterctl.operations.run_log import FORM, RedactingFormatter
from clusterctl_cli import main
from clusterctl_cli.console import VisibleConsole
from tests.cli.site_of_three import append, quarantined, run, write
from tests.events import new_event

TITLE = "\x1b]0;owned\x07"
EVIL = f"{TITLE}\x9b2J\u202egold\u200b\x00\x7f\ufeff<script>x</script> ![x](http://evil) |\r\nn9  gold  now\u2028n9"
FORMULA = "=HYPERLINK(0)"
COMMANDS = (
    ("nodes",),
    ("nodes", "-o", "wide"),
    ("nodes", "-o", "json"),
    ("nodes", "-o", "yaml"),
    ("nodes", "-o", "name"),
    ("nodes", "n2"),
    ("nodes", "n2", "-o", "json"),
    ("why", "n2"),
    ("why", "n2", "-o", "yaml"),
    ("report",),
    ("report", "-o", "terminal"),
    ("report", "-o", "html"),
    ("report", "-o", "json"),
    ("report", "-o", "yaml"),
    ("report", "n2"),
    ("report", "n2", "-o", "html"),
    ("report", "--work-orders"),
    ("report", "--work-orders", "-o", "csv"),
    ("report", "--work-orders", "-o", "json"),
    ("inventory", "--list"),
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site whose journal has hostile text in each field that a peer fills; some of it as an older program kept it."""
    folder = write(tmp_path_factory.mktemp("site"))
    finding = Finding(
        check="gpu_ecc",
        verdict=Verdict.FAIL,
        code=Code.GPU_ECC_UNCORRECTABLE,
        subject=f"gpu {EVIL}",
        cause=EVIL,
        measured=EVIL,
        expected=EVIL,
        remedy=EVIL,
        serial=FORMULA + EVIL,
    )
    append(folder, quarantined("n2", "burnin", finding))
    stop = {"step": "burnin", "cause": EVIL, "remedy": EVIL, "verdict": "fail", "serial": EVIL, "subject": EVIL}
    append(folder, [new_event("node", "id-n2", Kind.NODE_QUARANTINED, stop)])
    append(folder, [new_event("node", "id-n2", Kind.NODE_ADDRESSED, {"address": EVIL})])
    return folder


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_hostile_journal(site: Path, words: tuple[str, ...]) -> None:
    """Each command shows it, hides nothing, and no line of it is forged."""
    text = run(site, *words).output
    assert not has_unseen(text.replace("\n", "").replace("\t", ""))
    assert not any(line.startswith("n9") for line in text.splitlines())
    assert text


@pytest.mark.parametrize("words", [("report",), ("report", "n2"), ("report", "--work-orders")])
def test_markdown_and_html(site: Path, words: tuple[str, ...]) -> None:
    """No HTML, link or picture of a peer."""
    for form in ("markdown", "html")[: 1 if "--work-orders" in words else 2]:
        text = run(site, *words, "-o", form).output
        assert "<script>x" not in text
        assert form == "html" or "](http" not in text


def test_a_spreadsheet_runs_no_cell(site: Path) -> None:
    """Also not one that a machine's serial begins."""
    (order,) = csv.DictReader(io.StringIO(run(site, "report", "--work-orders", "-o", "csv").output))
    assert order["part_serial"].startswith(f"'{FORMULA}")
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in order.values())


def test_documents_keep_the_text(site: Path) -> None:
    """JSON and YAML have what was kept."""
    output = run(site, "nodes", "-o", "json").output, run(site, "nodes", "-o", "yaml").output
    causes = [next(node["cause"] for node in form["nodes"] if node["name"] == "n2") for form in _parsed(*output)]
    assert causes == [visible_line(EVIL)] * 2


def _parsed(as_json: str, as_yaml: str) -> tuple[dict, dict]:
    return json.loads(as_json), yaml.safe_load(as_yaml)


def test_a_file(site: Path, tmp_path: Path) -> None:
    """A report that is written to a file holds the same."""
    run(site, "report", "-o", "html", "--output", str(tmp_path / "report.html"))
    assert not has_unseen((tmp_path / "report.html").read_text().replace("\n", ""))


def test_an_error(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An error that repeats what was typed."""
    assert main.run(["why", EVIL, "--site", str(site)]) == 2
    assert not has_unseen(capsys.readouterr().err.replace("\n", ""))


def test_a_log() -> None:
    """A message of several lines forges no line of the log."""
    record = logging.LogRecord("clusterctl.x", logging.INFO, "x.py", 1, "%s", (EVIL,), None)
    first, *others = RedactingFormatter(FORM).format(record).split("\n")
    assert TITLE not in first
    assert all(line.startswith("    ") for line in others)
    assert not has_unseen(first)


def test_a_traceback_in_a_log() -> None:
    """The message of an exception repeats a peer's text of several lines; with a stack that was asked for, too."""
    error = ValueError(f"x\n{EVIL}\n2026-11-28 GOLD")
    record = logging.LogRecord("clusterctl.x", logging.INFO, "x.py", 1, "%s", (EVIL,), (ValueError, error, None))
    record.stack_info = "Stack\n2026-11-28 GOLD"
    _, *others = RedactingFormatter(FORM).format(record).split("\n")
    assert len([line for line in others if "GOLD" in line]) == 2
    assert all(line.startswith("    ") for line in others)


def test_colours_are_ours_alone() -> None:
    """On a terminal a table has colours; a text in it has none of its own."""
    console = VisibleConsole(force_terminal=True, color_system="standard", width=200)
    with console.capture() as captured:
        console.print(Text(EVIL, style="red"))
    shown = captured.get()
    assert "\x1b[31m" in shown
    assert TITLE not in shown
    assert "\\x1b]0;owned" in shown


def test_there_is_no_other_way_out() -> None:
    """Commands print by `echo`, `echo_rendered` and `VisibleConsole` alone."""
    found = [
        f"{file.name}:{node.lineno}"
        for file in Path(clusterctl_cli.__file__).parent.rglob("*.py")
        if file.name not in ("text.py", "console.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("click.echo", "click.secho", "print", "Console")
    ]
    assert found == []


@settings(derandomize=True, deadline=None, max_examples=300)
@given(st.text(max_size=300))
def test_visible(text: str) -> None:
    """Nothing is hidden, once is enough, and JSON keeps its values."""
    shown = visible(text)
    assert not has_unseen(shown)
    assert visible(shown) == shown
    assert shown.encode().decode() == shown
    line = visible_line(text, 50)
    assert len(line) <= 50
    assert "\n" not in line
    assert json.loads(visible_json(json.dumps(text, ensure_ascii=False))) == json.loads(json.dumps(text))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("25 °C, 8 µs, Gerät", "25 °C, 8 µs, Gerät"),
        ("25\u00a0°C", "25 °C"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\x9b2J", "\\x9b2J"),
        ("\u202egold", "\\u202egold"),
        ("a\u200bb", "a\\u200bb"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("a\tb\nc", "a\tb\nc"),
        ("a\rb", "a\\x0db"),
        ("a\r\nb", "a\nb"),
        ("e" + "\u0301" * 50, "e" + "\u0301" * 4),
    ],
)
def test_what_visible_shows(text: str, shown: str) -> None:
    """By hand."""
    assert visible(text) == shown

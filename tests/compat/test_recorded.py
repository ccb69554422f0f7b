"""What an older version wrote: its journal and site files are read, and scripts that read its output still work.

`data/VERSION/` is made by scripts/record-compat and never changed afterwards.
"""

from __future__ import annotations

import json
import runpy
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from clusterctl_cli.main import run
from tests.paths import ROOT

DATA = Path(__file__).parent / "data"
RECORDED = sorted(DATA.iterdir())
SCRIPT = runpy.run_path(str(ROOT / "scripts/record-compat"))
COMMANDS: dict[str, list[str]] = SCRIPT["COMMANDS"]
CASES = [(recorded, file.stem) for recorded in RECORDED for file in sorted((recorded / "output").iterdir())]


@pytest.fixture
def site(tmp_path: Path, recorded: Path) -> Path:
    SCRIPT["restore"](recorded, tmp_path / "site")
    return tmp_path / "site"


def missing(old: Any, new: Any, at: str = "") -> Iterator[str]:
    """Yield each key, item or kind of value of `old` that `new` lacks. A value may be null in either."""
    if old is None or new is None:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        yield from (f"{at}.{key}" for key in old.keys() - new.keys())
        for key in old.keys() & new.keys():
            yield from missing(old[key], new[key], f"{at}.{key}")
    elif isinstance(old, list) and isinstance(new, list):
        if len(new) < len(old):
            yield f"{at}: {len(new)} items instead of {len(old)}"
        for number, (one, other) in enumerate(zip(old, new, strict=False)):
            yield from missing(one, other, f"{at}[{number}]")
    elif _kind(old) is not _kind(new):
        yield f"{at}: {type(new).__name__} instead of {type(old).__name__}"


def _kind(value: object) -> type:
    return float if type(value) is int else type(value)


def printed(command: list[str], site: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    capsys.readouterr()
    code = run([*command, "--site", str(site)])
    text = capsys.readouterr()
    assert code in (0, 1), text.err
    return json.loads(text.out)


@pytest.mark.parametrize(("recorded", "command"), CASES, ids=[f"{path.name}-{name}" for path, name in CASES])
def test_output_has_every_recorded_key(
    recorded: Path, command: str, site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Keys are only added, and a value keeps its type."""
    old = json.loads((recorded / "output" / f"{command}.json").read_text())

    assert list(missing(old, printed(COMMANDS[command], site, capsys))) == []


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda path: path.name)
def test_the_journal_is_read_and_amounts_to_the_same_fleet(
    recorded: Path, site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`journal verify` folds every event again; each node has the stage and the verdict that it had."""
    assert run(["journal", "verify", "--site", str(site)]) == 0
    old = json.loads((recorded / "output/nodes.json").read_text())["nodes"]
    new = printed(COMMANDS["nodes"], site, capsys)["nodes"]

    assert {node["name"]: (node["stage"], node["verdict"]) for node in new} == {
        node["name"]: (node["stage"], node["verdict"]) for node in old
    }
    assert {node["stage"] for node in old} >= {"gold"}


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda path: path.name)
def test_states_computed_again_are_the_recorded_ones(
    recorded: Path, site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`journal compact` computes all node states from the events alone."""
    assert run(["journal", "compact", "--site", str(site), "--yes"]) == 0
    old = json.loads((recorded / "output/nodes.json").read_text())

    assert list(missing(old, printed(COMMANDS["nodes"], site, capsys))) == []


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda path: path.name)
def test_exit_codes_stay(recorded: Path) -> None:
    """A kind of error keeps its exit code; new kinds may be added."""
    old, new = json.loads((recorded / "exit_codes.json").read_text()), SCRIPT["exit_codes"]()

    assert {kind: new.get(kind) for kind in old} == old


@pytest.mark.parametrize(
    ("old", "new", "lacks"),
    [
        ({"a": 1}, {"a": 2.5, "b": 1}, []),
        ({"a": 1}, {"b": 1}, [".a"]),
        ({"a": [{"b": "x"}]}, {"a": [{"c": "x"}]}, [".a[0].b"]),
        ({"a": [1, 2]}, {"a": [1]}, [".a: 1 items instead of 2"]),
        ({"a": "1"}, {"a": 1}, [".a: int instead of str"]),
        ({"a": {}}, {"a": None}, []),
    ],
)
def test_what_counts_as_missing(old: Any, new: Any, lacks: list[str]) -> None:
    """A renamed key, a lost item and another type are found; a new key is none."""
    assert list(missing(old, new)) == lacks


def test_the_first_recording_holds_what_a_site_goes_through() -> None:
    """0.2.0: installs, gold, a quarantine, a hold, a night, a work order and the fabric's cables."""
    with closing(sqlite3.connect(f"file:{DATA / '0.2.0/journal.db'}?mode=ro&immutable=1", uri=True)) as journal:
        kinds = {kind for (kind,) in journal.execute("SELECT DISTINCT kind FROM event")}
    orders = json.loads((DATA / "0.2.0/output/work-orders.json").read_text())["orders"]

    assert kinds >= {"report.recorded", "stage.advanced", "node.quarantined", "hold.set", "fabric.link_seen"}
    assert kinds >= {"night.started", "night.ended"}
    assert orders

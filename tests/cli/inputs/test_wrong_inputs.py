"""Wrong input ends in exit code 2 and one sentence that names file, line and field, with what to do; nothing changes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from clusterctl.operations.context import open_site
from clusterctl_cli.command_groups import COMMANDS
from clusterctl_cli.main import run
from tests.cli.inputs.prepare import Case, cases
from tests.edges.site.ready import SECRETS, write_ready_site

CASES = cases()
AS_ROOT = os.geteuid() == 0
UNPRIVILEGED = ("setpriv", "--inh-caps=-all", "--bounding-set=-dac_override,-dac_read_search")
"""Root without the right to read what its mode forbids."""


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site in which all is right, its journal made."""
    folder = write_ready_site(tmp_path_factory.mktemp("inputs") / "site")
    open_site(folder).journal.close()
    return folder


@pytest.fixture
def site(right: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(right, tmp_path / "site"))


def _content(file: Path) -> str:
    if file.is_symlink():
        return f"link to {file.readlink()}"
    if not file.is_file():
        return "no file"
    if file.stat().st_size > 100_000_000:
        return f"{file.stat().st_size} bytes"
    return hashlib.sha256(file.read_bytes()).hexdigest()


def snapshot(site: Path) -> dict[str, tuple[int, int, str]]:
    """Each path with mode, owner and content. SQLite's index of readers next to the journal does not count."""
    return {
        str(file.relative_to(site)): (file.lstat().st_mode, file.lstat().st_uid, _content(file))
        for file in sorted(site.rglob("*"))
        if not file.name.endswith("-shm") and not (file.name.endswith("-wal") and not file.stat().st_size)
    }


def run_case(case: Case, site: Path, capfd: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of the case's command."""
    if not case.unprivileged:
        code = run(case.command(site))
        return (code, *capfd.readouterr())
    argv = [*(UNPRIVILEGED if AS_ROOT else ()), sys.executable, "-m", "clusterctl_cli.main", *case.command(site)]
    ran = subprocess.run(argv, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout, ran.stderr


def test_what_is_right_is_accepted(site: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The site that the cases make wrong is right: each message is about the case's mistake."""
    assert run(["plan", "--site", str(site)]) == 0
    assert run(["bootstrap", "--dry-run", "--site", str(site)]) == 0
    assert "node001" in capfd.readouterr().out


def test_spreadsheets_of_all_systems_are_accepted(site: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A byte-order mark, Windows' line ends and blank lines are no mistakes, in the sheet as in the plan."""
    for name in ("bmcs.csv", "wiring.csv", "site.yml"):
        text = (site / name).read_text().replace("\n", "\r\n")
        (site / name).write_bytes(b"\xef\xbb\xbf" + f"{text}\r\n".encode())
    assert run(["plan", "--site", str(site)]) == 0
    assert "node001" in capfd.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_refuses_an_unknown_option_alike(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    """One form for all: exit code 2, the option, and where to read on."""
    assert run([command, "--nonsense"]) == 2
    answer = capfd.readouterr()
    assert answer.out == ""
    assert answer.err.splitlines()[0] == "error: --nonsense: there is no such option"
    assert answer.err.splitlines()[1].startswith("  → ")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_wrong_input_is_reported(case: Case, site: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Exit code 2; one sentence with file, line and field, one with the remedy; no secret; nothing changed on disk."""
    if "owner" in case.steps and not AS_ROOT:
        pytest.skip("only root can give a file away")
    case.prepare(site)
    before = snapshot(site)
    code, out, err = run_case(case, site, capfd)
    assert code == 2, err
    assert out == ""
    assert snapshot(site) == before
    lines = err.splitlines()
    head = f"error: {case.place(site)}: " if case.where else "error: "
    assert lines[0].startswith(head), err
    assert case.message in lines[0].removeprefix(head)
    assert lines[-1].startswith("  → ")
    assert len(lines[-1]) > len("  → ")
    assert case.remedy in lines[-1]
    assert len(lines) == 2 or case.many, err
    assert not [secret for secret in SECRETS if secret in err]


def test_as_json_it_is_one_document(site: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """With --json the same parts stand in one document on stderr, for click's own complaints too."""
    (site / "bmcs.csv").write_text("name,bmc\nn1,10.0.0.300\n")
    for argv in (["plan", "--json", "--site", str(site)], ["nodes", "--json", "--nonsense"], ["nonsense", "--json"]):
        assert run(argv) == 2
        answer = capfd.readouterr()
        error = json.loads(answer.err)["error"]
        assert answer.out == ""
        assert error.keys() == {"kind", "message", "where", "remedy"}
        assert all(error.values())
        assert error["kind"] == "usage"


def test_the_table_is_large_enough() -> None:
    """Sixty ways to be wrong, each under a name of its own."""
    assert len({case.name for case in CASES}) == len(CASES) >= 60

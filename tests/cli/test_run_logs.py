"""Each command that runs long writes a log file, and prints its path with -v and on failure."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from clusterctl_cli import approval
from clusterctl_cli.main import run
from tests.edges.site.ready import write_ready_site

COMMANDS = Path(approval.__file__).parent
WITHOUT_LOG = {
    "commands/discover.py": "a sweep needs no site, and prints each address that it finds",
    "commands/fabric_jobs.py": "reads only, and prints each job that it follows",
    "commands/maas.py": "a check of minutes that needs no site; it prints all that it finds",
    "commands/netbox.py": "an import needs no site, and prints each difference",
    "commands/pxe.py": "a service: its supervisor keeps what it prints",
    "commands/runs.py": "a run in the background, which writes its own log",
    "commands/web.py": "a service: its supervisor keeps what it prints",
    "commands/worker.py": "each run that it does writes its own log",
}
"""Modules in which something can be stopped that writes no log, and why."""
STOPPABLE, LOGGED = re.compile(r"\bstoppable\("), re.compile(r"\b(?:logged|observed)\(context\)")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return write_ready_site(tmp_path / "site")


def printed(capsys: pytest.CaptureFixture[str]) -> Path | None:
    """Return the path that was printed last; None where none was."""
    found = re.findall(r"^log: (.*)$", capsys.readouterr().err, re.MULTILINE)
    return Path(found[-1]) if found else None


def test_what_can_be_stopped_writes_a_log() -> None:
    """A command that runs so long that it can be stopped; one without a log has its reason."""
    without = {
        str(file.relative_to(COMMANDS))
        for file in COMMANDS.rglob("*.py")
        if file.name != "stopping.py"
        for line in file.read_text().splitlines()
        if STOPPABLE.search(line) and not LOGGED.search(line)
    }
    assert without == {*WITHOUT_LOG}
    logs = [file for file in COMMANDS.rglob("*.py") if LOGGED.search(file.read_text())]
    assert len(logs) > 12


@pytest.mark.parametrize("command", [("configure", "--check"), ("logs", "node001")])
def test_a_failure_prints_the_path(command: tuple[str, ...], site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whether it ends with an error or with findings; the file has the exit code."""
    code = run([*command, "--site", str(site)])
    file = printed(capsys)
    assert code not in (0, 2)
    assert file is not None
    assert file.parent == site / "state/logs"
    assert f"exit code {code}" in file.read_text()


@pytest.mark.parametrize("command", [("check",), ("settings", "check"), ("job", "why", "7"), ("job", "stacks", "7")])
def test_wrong_usage_leaves_no_file(command: tuple[str, ...], site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing ran: the message has all that there is."""
    assert run([*command, "--site", str(site)]) == 2
    assert printed(capsys) is None
    assert not (site / "state/logs").exists()


def test_success_prints_it_with_v_only(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where the run itself has logged nothing."""
    assert run(["hold", "node001", "--reason", "x", "--yes", "--site", str(site)]) == 0
    assert printed(capsys) is None
    assert run(["release", "node001", "--reason", "x", "--yes", "-v", "--site", str(site)]) == 0
    file = printed(capsys)
    assert file is not None
    assert "exit code 0" in file.read_text()


def test_a_log_that_cannot_be_written_ends_no_run(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file stands where its folder would be: the command does its work, and names no file that is not there."""
    (site / "state").mkdir(exist_ok=True)
    (site / "state/logs").write_text("no folder")
    assert run(["hold", "node001", "--reason", "x", "--yes", "-v", "--site", str(site)]) == 0
    assert printed(capsys) is None


@pytest.mark.parametrize("error", [RuntimeError("a defect"), KeyboardInterrupt()])
def test_a_defect_and_a_stop_print_it(error: BaseException, site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A traceback of our own is in the file; a run that was stopped at once has its log, too."""
    from clusterctl.operations.context import open_site

    context = open_site(site)
    with pytest.raises(type(error)), approval.logged(context):
        raise error
    context.journal.close()
    file = printed(capsys)
    assert file is not None
    text = file.read_text()
    assert ("a defect" in text) is isinstance(error, RuntimeError)
    assert f"exit code {1 if isinstance(error, RuntimeError) else 130}" in text

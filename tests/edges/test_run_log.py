"""A run's log file: private, bounded, without secrets; a disk that is full ends no run."""

from __future__ import annotations

import logging
import stat
from pathlib import Path

import pytest

from clusterctl.edges.redaction import KNOWN
from clusterctl.edges.run_log import FILE_BYTES, RUNS, RunLogHandler, run_log_handler
from clusterctl.operations.context import open_site
from clusterctl.operations.run_log import run_log
from clusterctl_cli.main import run
from tests.edges.site.ready import write_ready_site

SECRET = "hunter2-of-the-run-log"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return write_ready_site(tmp_path / "site")


def test_a_runs_log_is_private_and_holds_no_secret(site: Path) -> None:
    """Lines of our own loggers from INFO on, masked; readable by its owner alone; levels are as before afterwards."""
    KNOWN.add([SECRET])
    context, ours = open_site(site), logging.getLogger("clusterctl")
    before = ours.level
    with run_log(context) as file:
        logging.getLogger("clusterctl.steps").info("the password is %s", SECRET)
        logging.getLogger("clusterctl.steps").debug("in detail")
    context.journal.close()
    assert file == site / "state/logs" / f"{context.run}.log"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    (line,) = file.read_text().splitlines()
    assert line.endswith("clusterctl.steps: the password is (secret)")
    assert ours.level == before


def test_a_log_is_bounded_in_size_and_number(tmp_path: Path) -> None:
    """Two files of one run at most, and the logs of so many runs."""
    folder = tmp_path / "logs"
    folder.mkdir()
    for number in range(RUNS + 5):
        (folder / f"20260101T{number:06}-beef.log").write_text("old")
        (folder / f"20260101T{number:06}-beef.log.1").write_text("older")
    handler = run_log_handler(folder, "20270101T000000-cafe")
    record = logging.LogRecord("x", logging.INFO, "f", 1, "y" * 1_000_000, (), None)
    for _ in range(3 * FILE_BYTES // 1_000_000):
        handler.emit(record)
    handler.close()
    mine = sorted(folder.glob("20270101*"))
    assert [file.name for file in mine] == ["20270101T000000-cafe.log", "20270101T000000-cafe.log.1"]
    assert sum(file.stat().st_size for file in mine) <= 2 * FILE_BYTES
    assert {stat.S_IMODE(file.stat().st_mode) for file in mine} == {0o600}
    assert len(list(folder.glob("*.log"))) == RUNS
    assert len(list(folder.glob("*.log.1"))) == RUNS


def test_where_no_log_can_be_written_the_run_goes_on(site: Path) -> None:
    """A file in the place of its folder."""
    context = open_site(site)
    (site / "state/logs").write_text("in the way")
    with run_log(context):
        logging.getLogger("clusterctl.steps").info("goes on")
    context.journal.close()
    assert (site / "state/logs").read_text() == "in the way"


def test_a_disk_that_is_full_at_the_end_of_a_run_changes_not_how_it_ended() -> None:
    """The lines that were left out are tried once more when the file is closed."""
    handler = RunLogHandler(Path("/dev/full"))
    handler.emit(logging.LogRecord("x", logging.INFO, "f", 1, "left out", (), None))
    handler.close()
    assert handler.stream is None


def test_a_run_that_logs_nothing_makes_no_file(site: Path) -> None:
    """Wrong usage that a run refuses, for one."""
    context = open_site(site)
    with run_log(context):
        pass
    context.journal.close()
    assert not (site / "state/logs").exists()


def test_a_failed_run_prints_where_its_log_is(site: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """On stderr; with -v a run that did not fail, too. The BMC of node001 does not answer."""
    (site / "bmcs.csv").write_text("name,bmc_address\nnode001,127.0.0.1\n")
    assert run(["discover", "--yes", "--site", str(site)]) == 1
    (line,) = (line for line in capfd.readouterr().err.splitlines() if line.startswith("log: "))
    file = Path(line.removeprefix("log: "))
    assert "node001: discover begins" in file.read_text()
    assert "node001  QUARANTINED at discover: " in file.read_text()
    assert run(["admit", "-v", "--yes", "--site", str(site)]) == 0
    assert "log: " in capfd.readouterr().err

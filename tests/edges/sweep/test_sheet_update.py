"""The sheet, brought up to date: what an operator wrote stays, what was found goes in, and it can always be read again."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from clusterctl.edges.site.sheet import read_sheet
from clusterctl.edges.site.sheet_update import SheetUpdate, sheet_update
from clusterctl.fleet.bmc.observation import BmcObservation, Identity, Listed, SweepOutcome
from clusterctl.fleet.bmc.reconciliation import Entry
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import Mac, Serial

MAC = Mac("02:00:00:00:00:01")


def entry(address: str, serial: str, *, login: str = "bmc.password", listed: Listed | None = None) -> Entry:
    observation = BmcObservation(
        address, SweepOutcome.IDENTIFIED, identity=Identity(serial=Serial(serial), bmc_mac=MAC), login=login
    )
    return Entry(observation, MAC, listed=listed)


def update(file: Path, *entries: Entry) -> SheetUpdate:
    found = sheet_update(file, entries, {"smc"}, "node")
    found.write()
    return found


@pytest.fixture
def sheet(tmp_path: Path) -> Path:
    return tmp_path / "bmcs.csv"


def test_a_line_that_waited_for_its_serial(sheet: Path) -> None:
    """A line with an address and no serial is filled in; its rack and unit stay the operator's."""
    sheet.write_text("name,bmc,rack,unit\nn1,10.0.0.1,A01,4\n")
    made = update(sheet, entry("10.0.0.1", "S1", listed=Listed("m:2", "S1", None, "", "B09", 9)))
    assert sheet.read_text() == f"name,bmc,rack,unit,serial,bmc_mac\nn1,10.0.0.1,A01,4,S1,{MAC}\n"
    assert made.changes == ("n1: serial empty → S1", f"n1: bmc_mac empty → {MAC}")


def test_new_lines_in_the_order_of_racks(sheet: Path) -> None:
    """Named by the lists, else by the next free number, which no other machine has or gets."""
    sheet.write_text("name,bmc,serial\nnode001,10.0.0.1,S1\n")
    one = entry("10.0.0.2", "S2", listed=Listed("m:2", "S2", None, "node002", "A02", 4))
    two = entry("10.0.0.3", "S3", listed=Listed("m:3", "S3", None, "", "A01", 4))
    update(sheet, one, two, entry("10.0.0.4", "S4"))
    assert [(row.name, row.serial, row.rack) for row in read_sheet(sheet)] == [
        ("node001", "S1", ""),
        ("node003", "S4", ""),
        ("node004", "S3", "A01"),
        ("node002", "S2", "A02"),
    ]


def test_a_login_by_its_name(sheet: Path) -> None:
    """One of the site's further logins is noted, for the steps know no vendor; others are not."""
    update(sheet, entry("10.0.0.1", "S1", login="smc"), entry("10.0.0.2", "S2"))
    assert [row.login for row in read_sheet(sheet)] == ["smc", ""]


def test_cells_with_commas_and_quotes_stay(sheet: Path) -> None:
    """What spreadsheets write is read and written as it was."""
    text = 'name,bmc,serial,bmc_mac,note\nn1,10.0.0.1,S1,02:00:00:00:00:01,"left, ""top"""\n'
    sheet.write_text(text)
    assert update(sheet, entry("10.0.0.1", "S1")).changes == ()
    update(sheet, entry("10.0.0.9", "S1"))
    assert sheet.read_text() == text.replace("10.0.0.1", "10.0.0.9")


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_no_other_user_may_read_more_than_before(sheet: Path, mode: int) -> None:
    """The file's mode stays."""
    sheet.write_text("name,bmc\n")
    sheet.chmod(mode)
    update(sheet, entry("10.0.0.1", "S1"))
    assert stat.S_IMODE(sheet.stat().st_mode) == mode


def test_a_link_stays_one(sheet: Path, tmp_path: Path) -> None:
    """A sheet that lies elsewhere is written there."""
    there = tmp_path / "elsewhere.csv"
    there.write_text("name,bmc\n")
    sheet.symlink_to(there)
    update(sheet, entry("10.0.0.1", "S1"))
    assert sheet.is_symlink()
    assert "S1" in there.read_text()


def test_a_sheet_that_could_not_be_read_again_is_not_written(sheet: Path) -> None:
    """Two machines in one rack unit: refused with the line, and the file is as it was."""
    text = "name,bmc,serial,rack,unit\nn1,10.0.0.1,S1,A01,4\n"
    sheet.write_text(text)
    with pytest.raises(UsageError, match="would not be sound") as caught:
        update(sheet, entry("10.0.0.2", "S2", listed=Listed("m:2", "S2", None, "", "A01", 4)))
    assert "bmcs.csv:3" in caught.value.where
    assert sheet.read_text() == text


def test_a_broken_sheet_is_left_alone(sheet: Path) -> None:
    """The sheet is the operator's: its error is reported."""
    sheet.write_text("name,bmc\nn1,nowhere\n")
    with pytest.raises(UsageError, match="IP address"):
        update(sheet, entry("10.0.0.2", "S2"))

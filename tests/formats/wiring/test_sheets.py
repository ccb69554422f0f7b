"""Spreadsheets as people have them: the cases are data, in `data/`."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import openpyxl
import pytest
import yaml

from clusterctl.fleet.errors import UsageError
from clusterctl.formats.wiring.columns import NEEDED, find_columns
from clusterctl.formats.wiring.plan import decode_draft
from clusterctl.formats.wiring.ports import gbps_of, port_name

DATA = Path(__file__).parent / "data"


def cases(name: str) -> list[dict[str, Any]]:
    return yaml.safe_load((DATA / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", cases("ports.yml"), ids=lambda case: case["cell"])
def test_ports(case):
    """Each spelling is the port that its source has."""
    assert port_name(case["cell"]) == case["port"]


@pytest.mark.parametrize(
    ("text", "gbps"), [("1.6T", 1600), ("1.6 Tb/s", 1600), ("0.8Tbps", 800), ("800G", 800), ("XDR", 800), ("T", None)]
)
def test_rates(text, gbps):
    """Terabits are rates too, as the data sheets of XDR write them."""
    assert gbps_of("".join(text.split())) == gbps


@pytest.mark.parametrize("case", cases("headings.yml"), ids=lambda case: case["headings"])
def test_headings(case):
    """Each heading has the meaning that its source gives it."""
    found = find_columns([(1, tuple(case["headings"].split(",")))])
    if case["columns"] is None:
        assert found is None
    else:
        assert [found.place[role] for role in NEEDED] == case["columns"]
        assert found.host_ends == ({case["host"]} if "host" in case else set())


def contents(case: dict[str, Any]) -> bytes:
    """Return the bytes of the case's file."""
    if "hex" in case:
        return bytes.fromhex(case["hex"])
    if "text" in case:
        return case["text"].encode(case.get("encoding", "utf-8"))
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, content in case["sheets"].items():
        sheet = book.create_sheet(name)
        for row in content["rows"]:
            sheet.append(row)
        for area in content.get("merge", ()):
            sheet.merge_cells(area)
        for row in content.get("hidden", ()):
            sheet.row_dimensions[row].hidden = True
    data = io.BytesIO()
    book.save(data)
    return data.getvalue()


@pytest.mark.parametrize("case", cases("sheets/plans.yml"), ids=lambda case: case["name"])
def test_sheets(case):
    """Each sheet has the cables that a reader sees in it, or is refused with its place."""
    if "error" in case:
        with pytest.raises(UsageError, match=case["error"]) as caught:
            decode_draft(contents(case), file="plan", sheet=case.get("sheet", ""))
        assert caught.value.where.endswith(case.get("where", ""))
        return
    draft = decode_draft(contents(case), file="plan", sheet=case.get("sheet", ""))
    found = [[c.source.device, c.source.port, c.destination.device, c.destination.port] for c in draft.cables]
    assert found == case["cables"]
    if "cages" in case:
        assert [cable.cage for cable in draft.cables] == case["cages"]
    for note in case.get("notes", ()):
        assert any(note in message for message in draft.notes)

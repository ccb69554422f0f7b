"""The table of faults is whole: every fault of the lab, every check and load; what it shows stands in the docs.

tests/e2e/test_faults.py plays it.
"""

from __future__ import annotations

import pytest

from clusterctl_burnin.registry import CHECKS, GROUP_LOADS, NODE_LOADS
from clusterctl_lab.faults import FAULTS
from lab.tests.emulators.host_tools import test_gpu_load_faults as gpu_load_faults
from lab.tests.emulators.host_tools import test_tool_faults as tool_faults
from tests.e2e.fault_table import PAGE, PREFACE, expectations

TABLE = expectations()
ELSEWHERE = {"training"}
"""In no suite of a lab's fault table."""


def test_every_fault_is_expected() -> None:
    """A new fault without a line in the table of what must be found is noticed here."""
    assert {each.fault for each in TABLE} == set(FAULTS)


def test_every_check_and_load_finds_a_fault() -> None:
    """Except for checks that hosts of a lab cannot fail; the page names where those are shown."""
    found = {each.check for each in TABLE}
    assert {*CHECKS, *NODE_LOADS, *GROUP_LOADS} - found == ELSEWHERE
    assert all(f"`{name}`" in PREFACE for name in ELSEWHERE)


def test_what_needs_no_lab_is_found_without_one() -> None:
    """Through the same tools, checks and roots."""
    found = {case.fault for case in (*tool_faults.CASES, *gpu_load_faults.CASES)}
    assert {each.fault for each in TABLE if each.seen_offline} <= found


@pytest.mark.skipif(not PAGE.exists(), reason="an installed wheel has no docs")
def test_the_page_knows_every_fault() -> None:
    """docs/reference/faults.md has a line for each fault; `make fault-table` writes it."""
    assert {line.split("`")[1] for line in PAGE.read_text().splitlines() if line.startswith("| `")} == set(FAULTS)

"""The port that a machine boots from, by the site's word."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusterctl.edges.site import load_site
from clusterctl.fleet.errors import UsageError
from clusterctl.operations.context import open_site
from tests.edges.site.ready import write_ready_site

HEAD = "name,bmc_address,serial,boot_mac\n"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    write_ready_site(folder)
    return folder


def macs(site: Path, sheet: str) -> dict[str, tuple[str, ...]]:
    (site / "bmcs.csv").write_text(HEAD + sheet)
    context = open_site(site)
    context.describe()
    found = {state.name: state.macs for state in context.journal.states()}
    context.journal.close()
    return found


def test_it_reaches_the_node(site: Path) -> None:
    """In whichever way it is written; a correction of the sheet is a correction of the node."""
    assert macs(site, "n1,10.0.0.1,S1,02-AA-00-00-00-01\nn2,10.0.0.2,S2,\n") == {
        "n1": ("02:aa:00:00:00:01",),
        "n2": (),
    }
    assert macs(site, "n1,10.0.0.1,S1,02aa00000003\nn2,10.0.0.2,S2,\n")["n1"] == ("02:aa:00:00:00:03",)


@pytest.mark.parametrize(
    ("sheet", "where"),
    [
        ("n1,10.0.0.1,S1,nonsense\n", "bmcs.csv:2 boot_mac"),
        ("n1,10.0.0.1,S1,02aa00000001\nn2,10.0.0.2,S2,02:AA:00:00:00:01\n", "bmcs.csv:3 boot_mac"),
    ],
)
def test_what_is_none_or_stands_twice(site: Path, sheet: str, where: str) -> None:
    """File, line and column."""
    (site / "bmcs.csv").write_text(HEAD + sheet)
    with pytest.raises(UsageError) as caught:
        load_site(site)
    assert caught.value.where.endswith(where)

"""Which machines take turns when they are switched on, by the site's word."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusterctl.edges.site import load_site
from clusterctl.operations.site_facts import stagger_group
from tests.edges.site.ready import write_ready_site

SHEET = """\
name,bmc_address,rack,PDU
n1,192.0.2.1,A01,left
n2,192.0.2.2,A01,right
n3,192.0.2.3,A02,right
n4,192.0.2.4,,
n5,192.0.2.5,,
"""


@pytest.mark.parametrize(
    ("per", "groups"),
    [
        ("rack", [{"n1", "n2"}, {"n3"}, {"n4", "n5"}]),
        ("pdu", [{"n1"}, {"n2", "n3"}, {"n4", "n5"}]),
        ("site", [{"n1", "n2", "n3", "n4", "n5"}]),
    ],
)
def test_groups(tmp_path: Path, per: str, groups: list[set[str]]) -> None:
    """Those of one rack, of one PDU, or all; nodes without a known place are one group, the careful way."""
    folder = write_ready_site(tmp_path / "site")
    (folder / "bmcs.csv").write_text(SHEET)
    with (folder / "site.yml").open("a") as file:
        file.write(f"\npower: {{stagger: {{per: {per}}}}}\n")
    site = load_site(folder)
    group = stagger_group(site)
    found: dict[str, set[str]] = {}
    for node in site.nodes:
        found.setdefault(group(node.bmc), set()).add(node.name)
    assert list(found.values()) == groups

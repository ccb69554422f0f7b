"""A site of hosts with adapters in Ethernet mode: to gold without a subnet manager, a wrong cable and a bad host found."""

from __future__ import annotations

from typing import Any

import pytest

from lab.tests.lab_kit import needs_lab, running_lab
from tests.e2e.site_kit import Site

pytestmark = [pytest.mark.lab, pytest.mark.soak, needs_lab, pytest.mark.timeout(3600)]

WRONG_CABLE, BAD = "node002", "node003"


def findings(site: Site, name: str) -> list[dict[str, Any]]:
    return [one for one in site.ask("why", name)["nodes"][0]["findings"] if one["verdict"] == "fail"]


def test_a_roce_site_becomes_gold_except_for_what_is_wrong(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Healthy hosts pass every step and load; exchanged cables are found by LLDP, a narrow adapter by the burn-in."""
    folder = tmp_path_factory.mktemp("r")
    faults = ("--fault", f"swapped-cable:{WRONG_CABLE}", "--fault", f"pcie-width:{BAD}:mlx5_3")
    options = ("--hosts", "4", "--rails", "8", "--short", "--fabric", "roce", *faults)
    with running_lab("e2ero", "10.186.0.0/16", folder, *options) as lab:
        site = Site(lab, folder / "runs")
        assert not (site.folder / "wiring.csv").exists()
        run = site.run("bootstrap", "--yes")
        assert run.wait() == 1, run.stderr + run.stdout
        assert site.stages() == {
            "node001": "gold",
            WRONG_CABLE: "quarantined",
            BAD: "quarantined",
            "node004": "gold",
        }, run.stdout
        assert {one["check"] for one in findings(site, WRONG_CABLE)} == {"ethernet_cable"}
        assert all(one["check"] != "ethernet_cable" for one in findings(site, BAD))

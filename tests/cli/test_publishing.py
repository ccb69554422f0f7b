"""How gold is published in addition to the pool's file: an Ansible inventory, and whether there are enough spares."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from clusterctl.fleet.errors import UsageError
from clusterctl.operations import night
from clusterctl.operations.context import open_site
from clusterctl.operations.night import NightRequest
from clusterctl.operations.operation import Control
from tests.cli.nights import SETTINGS, write
from tests.cli.site_of_three import run

PUBLISH = "\npublish: {inventory: gold.yml, needed: 4, spares_percent: 20}\n"
INVENTORY = Path(sys.executable).with_name("ansible-inventory")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return write(tmp_path, SETTINGS + PUBLISH)


def test_ansible_reads_the_gold_group(site: Path) -> None:
    """By its own program; a node that an operator holds is not in it; it is empty once all are held."""
    run(site, "hold", "n1", "--reason", "ticket 7", "--yes")
    argv = [INVENTORY, "--inventory", site / "gold.yml", "--list"]
    output = json.loads(subprocess.run(argv, capture_output=True, check=True, cwd=site).stdout)
    assert output["gold"]["hosts"] == ["n2", "n3", "n4"]
    run(site, "hold", "n*", "--reason", "ticket 7", "--yes")
    output = json.loads(subprocess.run(argv, capture_output=True, check=True, cwd=site).stdout)
    assert not output.get("gold", {}).get("hosts")


def test_a_pool_without_spares_is_reported(site: Path) -> None:
    """Four gold nodes, four needed, a fifth asked for; with fewer needed nothing is printed."""
    assert (
        "too few spares: 4 gold, 4 needed, 1 spares asked for (20 %), 0 there: 1 missing" in run(site, "nodes").stdout
    )
    (site / "site.yml").write_text((site / "site.yml").read_text().replace("needed: 4", "needed: 3"))
    assert "spares" not in run(site, "nodes").stdout


def test_a_night_refuses_before_it_publishes(site: Path) -> None:
    """What cannot be kept is reported first."""
    with pytest.raises(UsageError):
        night.run(open_site(site), NightRequest(budget=10), Control())
    assert not (site / "gold.yml").exists()

"""`clusterctl nic-firmware` without --yes: whom it would touch, whom it leaves alone and why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from clusterctl.fleet.errors import UsageError
from tests.cli.site_of_three import run, write

WHY = ("--reason", "ticket 8")
IMAGE = {"version": "28.43.1014", "url": "https://mirror.example/fw.bin", "sha256": "0" * 64}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return write(tmp_path)


def name_images(site: Path) -> None:
    path = site / "site.yml"
    said = yaml.safe_load(path.read_text())
    said.setdefault("configure", {}).setdefault("variables", {})["nic_firmware_images"] = {"MT_0000000838": IMAGE}
    path.write_text(yaml.safe_dump(said))


def test_without_images_it_says_where_to_name_them(site: Path) -> None:
    """The site has to decide on versions: there is no default."""
    with pytest.raises(UsageError) as caught:
        run(site, "nic-firmware", *WHY)

    assert "nic_firmware_images" in caught.value.message
    assert str(caught.value.where).startswith(str(site))


def test_only_idle_nodes_are_planned(site: Path) -> None:
    """n2 is in quarantine; n1 is gold and may be at work; nothing is known of n3. Nothing is changed."""
    name_images(site)
    result = run(site, "nic-firmware", *WHY, "--json")
    told = json.loads(result.stdout)

    assert (result.return_value, told["dry_run"], told["waves"], told["done"]) == (0, True, [["n2"]], [])
    assert "--from-pool" in told["left_alone"]["n1"]
    assert "discover" in told["left_alone"]["n3"]


def test_gold_nodes_are_planned_when_asked_for(site: Path) -> None:
    """One SKU: its first node goes alone, as the canary."""
    name_images(site)
    told = json.loads(run(site, "nic-firmware", *WHY, "--from-pool", "--json").stdout)

    assert told["waves"] == [["n1"], ["n2"]]

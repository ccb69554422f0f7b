"""`clusterctl firmware` without --yes: the nodes that it would touch, those that it leaves alone, and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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
    output = yaml.safe_load(path.read_text())
    output.setdefault("configure", {}).setdefault("variables", {})["nic_firmware_images"] = {"MT_0000000838": IMAGE}
    path.write_text(yaml.safe_dump(output))


def waves(reported: dict[str, Any]) -> list[list[str]]:
    """Return the nodes of each wave, as the preview prints them."""
    found: dict[str, list[str]] = {}
    for effect in reported["effects"]:
        found.setdefault(effect["text"].split(":")[0], []).append(effect["node"])
    return list(found.values())


def test_without_images_the_message_has_the_place_to_name_them(site: Path) -> None:
    """The site has to decide on versions: there is no default."""
    with pytest.raises(UsageError) as caught:
        run(site, "firmware", *WHY)

    assert "nic_firmware_images" in caught.value.message
    assert str(caught.value.where).startswith(str(site))


def test_only_idle_nodes_are_planned(site: Path) -> None:
    """n2 is in quarantine; n1 is gold and may be at work; nothing is known of n3. Nothing is changed."""
    name_images(site)
    result = run(site, "firmware", *WHY, "--dry-run", "--json")
    output = json.loads(result.stdout)

    assert (result.return_value, output["dry_run"], waves(output)) == (0, True, [["n2"]])
    assert "--from-pool" in output["skipped"]["n1"]
    assert "discover" in output["skipped"]["n3"]


def test_gold_nodes_are_planned_when_asked_for(site: Path) -> None:
    """One SKU: its first node goes alone, as the canary."""
    name_images(site)
    output = json.loads(run(site, "firmware", *WHY, "--from-pool", "--dry-run", "--json").stdout)

    assert waves(output) == [["n1"], ["n2"]]

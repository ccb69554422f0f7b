"""A site that NetBox describes, brought to gold in the lab and written back: one story, `make soak` runs it.

The emulated NetBox (its answers are those of the recorded one) has the lab's machines, switches and cables as an operator
would have entered them. The lab's own sheet and plans are removed before.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lab.tests.lab_kit import RunningLab, clusterctl, needs_lab, running_lab
from tests.netbox.emulator import TOKEN, World, served
from tests.netbox.worlds import SITE, address, cable, device, end, interface

pytestmark = [pytest.mark.lab, pytest.mark.soak, needs_lab, pytest.mark.timeout(3600)]

NODES = ("node001", "node002")
SECTION = """
netbox:
  url: {url}
  allow_plain_http: true
  token: {{file: secrets/netbox}}
  site: hall-1
  node_roles: [gpu]
  fabric_roles: [leaf]
  ethernet_roles: [oob]
  export:
    statuses: {{gold: active, quarantined: failed}}
    stage_field: stage
    tags: {{gold: gold}}
"""
Row = dict[str, str]


@dataclass
class DataEntry:
    """Enters the lab's files into a NetBox: each name becomes a device, each port an interface."""

    world: World
    bmcs: dict[str, Row]
    devices: dict[str, Any] = field(default_factory=dict)
    ports: dict[tuple[str, str], Any] = field(default_factory=dict)

    def device(self, name: str, role: str, rack: str) -> Any:
        if name not in self.devices:
            row, at = self.bmcs.get(name, {}), len(self.devices) + 1
            own = {
                "serial": row.get("serial", ""),
                "rack": row.get("rack", rack),
                "status": "staged" if row else "active",
            }
            if row:
                own |= {"unit": float(row["unit"]), "oob": f"{row['bmc_address']}/16"}
            self.devices[name] = device(at, name, "gpu" if row else role, **own)
            self.world.add("dcim/devices", self.devices[name])
        return self.devices[name]

    def port(self, of: Any, name: str, mac: str = "") -> Any:
        key = (of["name"], name)
        if key not in self.ports:
            made = interface(len(self.ports) + 1, of, name, mgmt_only=name == "bmc", mac=mac or None)
            self.ports[key] = made
            self.world.add("dcim/interfaces", made)
            if name == "bmc":
                self.world.add(
                    "ipam/ip-addresses", address(made["id"], made, f"{self.bmcs[of['name']]['bmc_address']}/16")
                )
        return self.ports[key]

    def cables(self, plan: list[Row], role: str) -> None:
        for row in plan:
            near = self.device(row["source_device"], role, row.get("source_rack", ""))
            far = self.device(row["destination_device"], role, row.get("destination_rack", ""))
            a = self.port(near, row["source_port"])
            b = self.port(far, row["destination_port"], row.get("destination_mac", ""))
            known = self.world.pages.setdefault("dcim/cables", {})
            self.world.add("dcim/cables", cable(len(known) + 1, [end(a)], [end(b)]))


def table(file: Path) -> list[Row]:
    with file.open(newline="") as text:
        return list(csv.DictReader(text))


def drawn(folder: Path) -> World:
    """Return a NetBox with what the lab's files have, and without anything of the journal's."""
    world = World(custom_fields={"stage"})
    world.add("dcim/sites", SITE)
    world.add("extras/tags", {"id": 1, "name": "Gold", "slug": "gold"})
    world.pages |= {page: {} for page in ("dcim/inventory-items", "extras/journal-entries", "ipam/ip-addresses")}
    entry = DataEntry(world, {row["name"]: row for row in table(folder / "bmcs.csv")})
    entry.cables(table(folder / "wiring.csv"), "leaf")
    entry.cables(table(folder / "ethernet.csv"), "oob")
    return world


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    with running_lab("netbox", "10.184.0.0/16", tmp_path_factory.mktemp("lab"), "--hosts", "2") as found:
        yield found


def ordered(lab: RunningLab, *words: str) -> str:
    done = clusterctl(*words, "--site", str(lab.site), timeout_s=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_netbox_to_gold_and_back(lab: RunningLab) -> None:
    """Import, plan, bootstrap, export; then neither a second import nor a second export finds a difference."""
    world = drawn(lab.site)
    before = {name: table(lab.site / name) for name in ("bmcs.csv", "wiring.csv", "ethernet.csv")}
    for name in before:
        (lab.site / name).unlink()
    secret = lab.site / "secrets/netbox"
    secret.write_text(TOKEN)
    secret.chmod(0o600)
    with served(world) as url:
        with (lab.site / "site.yml").open("a") as file:
            file.write(SECTION.format(url=url))
        ordered(lab, "import", "netbox", "--yes")
        sheet = {row["name"]: row for row in table(lab.site / "bmcs.csv")}
        assert {
            name: {key: sheet[name][key] for key in row} for name, row in wanted(before["bmcs.csv"]).items()
        } == wanted(before["bmcs.csv"])
        assert links(table(lab.site / "wiring.csv")) == links(before["wiring.csv"])
        assert links(table(lab.site / "ethernet.csv")) == links(before["ethernet.csv"])
        ordered(lab, "plan")

        ordered(lab, "bootstrap", "--yes")
        found = json.loads(ordered(lab, "nodes", "-o", "json"))["nodes"]
        assert {node["name"]: node["stage"] for node in found} == dict.fromkeys(NODES, "gold")
        ordered(lab, "export", "netbox", "--yes")
        devices = [one for one in world.pages["dcim/devices"].values() if one["name"] in NODES]
        assert [(one["status"]["value"], one["custom_fields"]["stage"]) for one in devices] == [("active", "gold")] * 2
        assert [[tag["slug"] for tag in one["tags"]] for one in devices] == [["gold"]] * 2
        parts = world.pages["dcim/inventory-items"].values()
        assert {item["name"].split()[0] for item in parts} >= {"GPU", "Drive"}
        assert all(item["serial"] for item in parts)

        written = world.writes
        assert ordered(lab, "import", "netbox").count("up to date") == len(before)
        ordered(lab, "export", "netbox", "--yes")
        assert world.writes == written


def wanted(rows: list[Row]) -> dict[str, Row]:
    return {row["name"]: row for row in rows}


def links(plan: list[Row]) -> set[frozenset[tuple[str, str]]]:
    """Return both ends of each cable, whichever end a plan names first."""
    ends = ("source", "destination")
    return {frozenset((row[f"{one}_device"], row[f"{one}_port"]) for one in ends) for row in plan}

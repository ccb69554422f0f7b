"""`clusterctl settings`, as an operator types it, against the lab's BMCs of two vendors."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from clusterctl.edges import redfish
from clusterctl.edges.redfish import RedfishBmcs
from clusterctl.edges.resources import resource
from clusterctl.fleet.codec import inventory_to_data
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import Kind
from clusterctl.fleet.node import Inventory, Serial, Stage, Step
from clusterctl.operations.context import open_site
from clusterctl_lab.firmware import Component, Firmware
from clusterctl_lab.healthy import build
from clusterctl_lab.machine import Machine
from clusterctl_lab.vendor import Vendor
from lab.tests.emulators.redfish.test_control import InstalledHosts
from tests.cli.site_of_three import run
from tests.edges.redfish.test_settings_against_lab import LAYOUT, PACE, PASSWORD, Site, served
from tests.edges.site.ready import write_ready_site
from tests.events import advances, new_event

WHY = ("--reason", "ticket 7")
NAMES = ("n1", "n2", "n3", "n4")
BASELINE = """name: ours
bios:
- attributes: {{ProcTurboMode: Disabled, AcPwrRcvryUserDelay: 120}}
  source: our performance team, 2026-11-02
firmware:
- component: "BIOS (*"
  version: "2.4.0"
  image: images/bios.bin
  sha256: {bios}
  source: the vendor's release notes
- component: "Integrated Dell*"
  min: "7.10"
  image: images/bmc.bin
  sha256: {bmc}
  restarts: bmc
  source: the vendor's release notes
"""


class Place:
    """A site of four machines of one SKU, on BMCs of the lab. n1 and n2 stand before install, n3 is gold, n4 is on its
    way.
    """

    def __init__(self, site: Path, lab: Site, machines: list[Machine]) -> None:
        self.site = site
        self.lab = lab
        self.machines = dict(zip(NAMES, machines, strict=True))

    def __call__(self, *words: str) -> tuple[int, Any]:
        done = run(self.site, "settings", *words, "--json")
        return done.return_value, json.loads(done.stdout)

    def of(self, name: str) -> Machine:
        """The machine as it is now."""
        return self.lab.world.machines[self.machines[name].name]

    def right(self, name: str) -> bool:
        now = self.of(name)
        return (now.bios_version, now.bmc.firmware, dict(now.bios)) == (
            "2.4.0",
            "7.10.30.00",
            {"ProcTurboMode": "Disabled"},
        )


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setattr(redfish, "RedfishBmcs", partial(RedfishBmcs, timing=PACE))
    machines = []
    for number in range(1, 5):
        made = build(number, LAYOUT, PASSWORD, rails=1, vendor=Vendor.DELL)
        machines.append(replace(made, gpus=made.gpus[:1], drives=made.drives[:2]))
    with served(machines, tmp_path) as lab:
        lab.world.hosts = InstalledHosts()  # an OS that shuts down when it is asked to
        yield Place(write(tmp_path / "site", lab, machines), lab, machines)


def write(folder: Path, lab: Site, machines: list[Machine]) -> Path:
    site = write_ready_site(folder)
    lines = [f"{name},{one.bmc.address},A01" for name, one in zip(NAMES, machines, strict=True)]
    (site / "bmcs.csv").write_text("\n".join(["name,bmc_address,rack", *lines]) + "\n")
    (site / "secrets" / "bmc-password").write_text(PASSWORD)
    text = (site / "site.yml").read_text().replace("skus: [dell-xe9680-h100]", "skus: [ours]")
    text = text.replace("name: ", "simulated: true\nname: ", 1)
    text += "timing: {settings_poll_s: 0.1}\n"
    text = text.replace("  ca_file: bmc-ca.pem", f"  ca_file: {lab.ca}\n  port: {lab.port}")
    (site / "site.yml").write_text(text)
    sku = (resource("skus") / "dell-xe9680-h100.yml").read_text().replace("name: dell-xe9680-h100", "name: ours")
    (site / "skus").mkdir(exist_ok=True)
    (site / "skus" / "ours.yml").write_text(f"{sku}baseline: ours\n")
    images = {"bios": Firmware(Component.BIOS, "2.4.0"), "bmc": Firmware(Component.BMC, "7.10.30.00")}
    (site / "images").mkdir()
    for name, firmware in images.items():
        (site / "images" / f"{name}.bin").write_bytes(firmware.image(100_000))
    digests = {name: hashlib.sha256(one.image(100_000)).hexdigest() for name, one in images.items()}
    (site / "baselines").mkdir()
    (site / "baselines" / "ours.yml").write_text(BASELINE.format(**digests))
    journal = open_site(site).journal
    for name, one, stage in zip(NAMES, machines, ("discovered", "discovered", "gold", "cabled"), strict=True):
        inventory = Inventory(one.manufacturer, one.model, Serial(one.serial))
        data = {"inventory": inventory_to_data(inventory), "sku": "ours", "root_disk": "D"}
        described = {"name": name, "bmc": one.bmc.address, "rack": "A01", "unit": 4}
        journal.append(
            [
                new_event("node", f"id-{name}", Kind.NODE_DESCRIBED, described),
                new_event("node", f"id-{name}", Kind.NODE_IDENTIFIED, data),
                *advances(f"id-{name}", stage),
            ]
        )
    journal.close()
    return site


def test_check_reports_drift_and_the_nodes_that_differ(place: Place) -> None:
    """All that is not as wanted, with what is; one of four that runs something else is named; nothing is written."""
    place.lab.world.rewrite(place.of("n2").name, Firmware(Component.BIOS, "1.0").flashed)
    code, reported = place("check")
    assert code == 1
    first = next(one for one in reported["nodes"] if one["name"] == "n1")
    assert first["verdict"] == "warn"
    assert [(one["setting"], one["found"], one["expected"]) for one in first["drift"]] == [
        ("BIOS (BIOS.Setup.1-1)", "2.1.3", "2.4.0"),
        ("Integrated Dell Remote Access Controller (iDRAC.Embedded.1-1)", "7.00.30.00", "at least 7.10"),
        ("ProcTurboMode", "Enabled", "Disabled"),
    ]
    (split,) = reported["splits"]
    assert (split["most"], split["count"], split["others"]) == ("2.1.3", 3, {"n2": "1.0"})
    assert "0 of 4 nodes are as their baseline has them" in run(place.site, "settings", "check").stdout


def test_a_node_that_was_not_read_is_not_right(place: Place) -> None:
    """A machine that was never discovered has nothing to be held against: that is no good answer."""
    with (place.site / "bmcs.csv").open("a") as sheet:
        sheet.write("n5,192.0.2.5,A01\n")
    code, reported = place("check", "n5")
    assert (code, reported["nodes"]) == (1, [])


def waves(reported: dict[str, Any]) -> list[list[str]]:
    """Return the nodes of each wave, as the preview prints them."""
    found: dict[str, list[str]] = {}
    for effect in reported["effects"]:
        found.setdefault(effect["text"].split(":")[0], []).append(effect["node"])
    return list(found.values())


def test_apply_first_prints_only_a_preview(place: Place) -> None:
    """With --dry-run a plan by waves, and who is left alone and why; nothing happens to any machine. Without --yes it
    asks, and without a terminal nothing happens either.
    """
    code, reported = place("apply", *WHY, "--dry-run")
    assert (code, reported["dry_run"], waves(reported)) == (0, True, [["n1"], ["n2"]])
    assert "ProcTurboMode = Disabled; one reboot" in reported["effects"][0]["text"]
    assert "it may run a job" in reported["skipped"]["n3"]
    assert "on its way to the next step" in reported["skipped"]["n4"]
    assert "Nothing was changed." in run(place.site, "settings", "apply", *WHY, "--dry-run").stdout
    with pytest.raises(UsageError, match="no terminal"):
        run(place.site, "settings", "apply", *WHY)
    assert not any(dict(place.of(name).bios) for name in NAMES)
    assert {place.lab.world.states[place.of(name).name].boots for name in NAMES} == {0}


def test_apply(place: Place) -> None:
    """BMC, BIOS and attributes with one boot each, reported and journaled; a gold node is held first; then all is right."""
    code, reported = place("apply", "n1", "n3", *WHY, "--yes", "--from-pool")
    assert code == 0, reported
    assert sorted((one["name"], one["error"]) for one in reported["nodes"]) == [("n1", None), ("n3", None)]
    assert place.right("n1")
    assert place.right("n3")
    assert {place.lab.world.states[place.of(name).name].boots for name in ("n1", "n3")} == {1}
    assert not place.lab.world.states[place.of("n1").name].power, "it was off before"
    nodes = json.loads(run(place.site, "nodes", "--json").stdout)["nodes"]
    assert next(node["hold"]["reason"] for node in nodes if node["name"] == "n3") == "settings apply: ticket 7"
    assert "settings.firmware" in run(place.site, "nodes", "n1").stdout
    code, reported = place("check", "n[13]")
    assert (code, [one["verdict"] for one in reported["nodes"]]) == (0, ["pass"] * 2)


def test_a_canary_that_fails_ends_it(place: Place) -> None:
    """The image is for another machine: the first one fails, in its BMC's words, the others are not touched."""
    content = Firmware(Component.BIOS, "2.4.0", "Other").image()
    (place.site / "images" / "bios.bin").write_bytes(content)
    file = place.site / "baselines" / "ours.yml"
    old = hashlib.sha256(Firmware(Component.BIOS, "2.4.0").image(100_000)).hexdigest()
    file.write_text(file.read_text().replace(old, hashlib.sha256(content).hexdigest()))
    code, reported = place("apply", "n1", "n2", *WHY, "--yes")
    assert code == 1
    assert [one["name"] for one in reported["nodes"]] == ["n1"]
    assert "The image is for Other" in reported["nodes"][0]["error"]["message"]
    assert reported["stopped"] == "stopped, because a canary failed: 1 nodes were not touched"
    assert place.of("n2").bmc.firmware == "7.00.30.00"


def test_an_image_that_was_changed(place: Place) -> None:
    """Is found before anything is touched, and named with the baseline's line."""
    (place.site / "images" / "bmc.bin").write_bytes(b"something else")
    with pytest.raises(UsageError, match="is not the image that was meant") as caught:
        place("apply", "n1", *WHY, "--yes")
    assert caught.value.where.endswith("ours.yml:13 firmware.1.image")
    assert place.of("n1").bmc.firmware == "7.00.30.00"


def test_one_that_another_run_holds(place: Place) -> None:
    """It is left alone, and reported."""
    other = open_site(place.site)
    claims = other.journal.claim(["id-n1"], "another")
    try:
        code, reported = place("apply", "n1", *WHY, "--yes")
    finally:
        other.journal.release(claims.granted.values())
    assert (code, reported["nodes"]) == (1, [])
    assert "n1" in reported["skipped"]
    assert place.of("n1").bmc.firmware == "7.00.30.00"


def test_a_rolling_change_brings_gold_machines_to_their_baseline(place: Place, tmp_path: Path) -> None:
    """Under a hold that ends with the order to prove them again; gone on after its hosts did not answer, nothing is
    flashed or booted twice.
    """
    journal = open_site(place.site).journal
    for name in ("n1", "n2"):
        journal.append(advances(f"id-{name}", "gold", Stage.DISCOVERED))
    journal.close()
    with (place.site / "site.yml").open("a") as file:
        file.write('scheduler: {kind: list, nodes: ["n*"]}\n')
    plan = tmp_path / "plan.yml"
    plan.write_text("name: bios-2.4\nreason: ticket 7\nchange: {settings: true}\nnodes: [n1, n2]\n")
    done = run(place.site, "maintain", str(plan), "--yes")
    assert done.return_value == 1
    assert place.right("n1")
    assert place.right("n2")
    assert not place.right("n3")
    state = open_site(place.site).node("n1")
    assert (state.stage, state.stopped_at, state.hold) == (Stage.INSTALLED, Step.CONFIGURE, None)
    assert state.revalidation is not None
    assert state.revalidation.reason == "maintain bios-2.4: ticket 7"
    assert "halted: 0 of 2 nodes done, 2 failed" in run(place.site, "maintain", "status").stdout
    assert run(place.site, "maintain", "resume", "bios-2.4", "--yes").return_value == 1
    assert {place.lab.world.states[place.of(name).name].boots for name in ("n1", "n2")} == {1}
    with pytest.raises(UsageError, match="BIOS settings and firmware have no roll back"):
        run(place.site, "maintain", "rollback", "bios-2.4", "--yes")

"""`clusterctl export netbox`: what is written back, what a person's change stops, and what a kill leaves behind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from clusterctl.fleet.codec import inventory_to_data
from clusterctl.fleet.errors import ConflictError, UsageError
from clusterctl.fleet.event import Kind, NewEvent
from clusterctl.fleet.node import Drive, NodeId, Serial, Stage
from clusterctl.fleet.state import NodeState
from clusterctl.formats.netbox.records import NetboxDevice
from clusterctl.operations.context import open_site
from clusterctl.operations.netbox_export import ExportPreview, NetboxExportRequest, matched, preview, run
from clusterctl.operations.netbox_import import NetboxImportRequest, prepare
from clusterctl.operations.netbox_import import preview as import_preview
from clusterctl.operations.netbox_import import run as import_run
from clusterctl.operations.operation import Control, Result
from tests.events import advances, new_event
from tests.netbox.emulator import Answer, World, served
from tests.netbox.sites import site
from tests.netbox.worlds import small_world
from tests.steps.fakes import identified, inventory

EXPORT = """\
  export:
    statuses: {gold: active, quarantined: failed, seen: staged}
    stage_field: stage
    tags: {gold: gold, quarantined: quarantine}
"""


@pytest.fixture
def world() -> World:
    """Three nodes n1 … n3 with serials S0001 …, tags and a custom field for the export."""
    world = small_world()
    world.custom_fields = {"stage"}
    tags = ({"id": at, "name": name.title(), "slug": name} for at, name in enumerate(("gold", "quarantine", "own"), 1))
    world.add("extras/tags", *tags)
    world.pages |= {"dcim/inventory-items": {}, "extras/journal-entries": {}}
    return world


@pytest.fixture
def folder(world: World, tmp_path: Path) -> Iterator[Path]:
    """A site that was imported; n1 is gold, n2 in quarantine, n3 was never touched."""
    with served(world) as url:
        folder = site(tmp_path / "site", url, EXPORT)
        import_run(prepare(folder, NetboxImportRequest(), Control()), Control())
        context = open_site(folder)
        identified(context.journal, "n1", "S0001", "gold")
        identified(context.journal, "n2", "S0002", "cabled")
        context.journal.append([stop("n2")])
        context.journal.close()
        yield folder


def stop(name: str, cause: str = "GPU 3 reports `2` errors") -> NewEvent:
    data = {"step": "burnin", "cause": cause, "remedy": "Replace GPU 3", "verdict": "fail"}
    return new_event("node", f"id-{name}", Kind.NODE_QUARANTINED, data)


def previewed(folder: Path) -> ExportPreview:
    context = open_site(folder)
    try:
        return preview(context, NetboxExportRequest())
    finally:
        context.journal.close()


def exported(folder: Path) -> Result:
    context = open_site(folder)
    try:
        return run(context, NetboxExportRequest(), Control())
    finally:
        context.journal.close()


def device(world: World, id_: int) -> tuple[str, str, list[str]]:
    found = world.pages["dcim/devices"][id_]
    tags = sorted(tag["slug"] for tag in found["tags"])
    return found["status"]["value"], found["custom_fields"].get("stage", ""), tags


def writes(world: World) -> list[str]:
    return [line for line in world.asked if not line.startswith("GET ")]


def test_stage_status_tags_parts_and_quarantine(world: World, folder: Path) -> None:
    """NetBox has what the journal has; nodes without an event are not touched."""
    result = exported(folder)
    assert (result.exit_code, [outcome.node for outcome in result.outcomes]) == (0, ["n1", "n2"])
    assert device(world, 1) == ("active", "gold", ["gold"])
    assert device(world, 2) == ("failed", "quarantined", ["quarantine"])
    assert device(world, 3) == ("active", "", [])
    items = {
        (item["device"]["id"], item["name"], item["serial"]) for item in world.pages["dcim/inventory-items"].values()
    }
    assert {(1, "Drive"), (2, "Drive")} <= {(id_, name.split()[0]) for id_, name, _ in items}
    (entry,) = world.pages["extras/journal-entries"].values()
    assert (entry["assigned_object_id"], entry["kind"]["value"]) == (2, "warning")
    assert "`GPU 3 reports '2' errors`" in entry["comments"]


def with_three_drives(folder: Path) -> None:
    """Let n3 be discovered, with three drives."""
    drives = tuple(Drive(str(bay), "M.2", 480_000_000_000, Serial(f"D{bay}")) for bay in range(3))
    found = {
        "inventory": inventory_to_data(replace(inventory("S0003"), drives=drives)),
        "sku": "lab",
        "root_disk": "D0",
    }
    context = open_site(folder)
    described = {"name": "n3", "bmc": "192.0.2.1", "rack": "A01", "unit": 4}
    context.journal.append(
        [
            new_event("node", "id-n3", Kind.NODE_DESCRIBED, described),
            new_event("node", "id-n3", Kind.NODE_IDENTIFIED, found),
        ]
    )
    context.journal.close()


def test_all_new_parts_of_a_node_are_one_request(world: World, folder: Path) -> None:
    """All of them or none: refused, the node has none of them, and the next export writes them."""
    with_three_drives(folder)
    refused: list[str] = []

    def refuse(_world: World, method: str, target: str) -> Answer | None:
        if method != "POST" or "inventory-items" not in target or len(refused) == 3:
            return None
        refused.append(target)
        return Answer(400, [{"serial": ["no"]}])

    world.on_request = refuse
    assert [one.failure is None for one in exported(folder).outcomes] == [False] * 3
    assert world.pages["dcim/inventory-items"] == {}
    world.on_request = None
    before = len(writes(world))
    assert exported(folder).exit_code == 0
    assert len([one for one in writes(world)[before:] if "inventory-items" in one]) == 3
    items = world.pages["dcim/inventory-items"].values()
    assert sorted(item["serial"] for item in items if item["device"]["id"] == 3) == ["D0", "D1", "D2"]


def test_a_preview_writes_nothing(world: World, folder: Path) -> None:
    """The difference names node, field, and both values."""
    shown = previewed(folder)
    assert not writes(world)
    assert ("n2", "status", "active", "failed") in {(c.node, c.field, c.before, c.after) for c in shown.changes}
    assert not (folder / "state" / "netbox" / "export.json").exists()


def test_a_second_export_writes_nothing(world: World, folder: Path) -> None:
    """What NetBox has already is not written again, and no second journal entry."""
    exported(folder)
    count = len(writes(world))
    assert exported(folder).exit_code == 0
    assert len(writes(world)) == count
    assert not previewed(folder).effects


def test_a_second_import_after_an_export_finds_no_difference(folder: Path) -> None:
    """A device that the export set to failed is still the same node, with the same cells."""
    exported(folder)
    plan = prepare(folder, NetboxImportRequest(), Control())
    assert not import_preview(plan).effects


def test_a_second_quarantine_is_a_second_entry(world: World, folder: Path) -> None:
    """Each quarantine has one entry of its own."""
    exported(folder)
    context = open_site(folder)
    context.journal.append([stop("n2", "GPU 5 is lost")])
    context.journal.close()
    exported(folder)
    comments = [entry["comments"] for entry in world.pages["extras/journal-entries"].values()]
    assert ["GPU 3" in comments[0], "GPU 5" in comments[1], len(comments)] == [True, True, 2]


def test_a_change_by_a_person_is_kept(world: World, folder: Path) -> None:
    """Status, tag and serial that a person changed since the export stay, and are named; exit code 1."""
    exported(folder)
    n1 = world.pages["dcim/devices"][1]
    n1["status"], n1["tags"] = {"value": "offline", "label": "Offline"}, []
    item = next(one for one in world.pages["dcim/inventory-items"].values() if one["device"]["id"] == 1)
    item["serial"] = "TYPED"
    shown = previewed(folder)
    assert {change.field for change in shown.changes if change.kept} == {"status", "tag gold", f"item {item['name']}"}
    assert exported(folder).exit_code == 1
    assert (device(world, 1), item["serial"]) == (("offline", "gold", []), "TYPED")


def test_a_tag_of_a_person_is_never_removed(world: World, folder: Path) -> None:
    """Other tags stay, and one of ours that a person has set is not taken away."""
    tags = {tag["slug"]: tag for tag in world.pages["extras/tags"].values()}
    world.pages["dcim/devices"][1]["tags"] = [tags["own"], tags["quarantine"]]
    exported(folder)
    assert device(world, 1)[2] == ["gold", "own", "quarantine"]


def test_the_next_stage_replaces_the_last_one(world: World, folder: Path) -> None:
    """Values of the export are its own: a later stage replaces them, and the former tag goes."""
    exported(folder)
    context = open_site(folder)
    release = {"reason": "repaired", "to": "cabled"}
    context.journal.append(
        [new_event("node", "id-n2", Kind.NODE_RELEASED, release), *advances("id-n2", "gold", Stage.CABLED)]
    )
    context.journal.close()
    exported(folder)
    assert device(world, 2) == ("active", "gold", ["gold"])


def test_a_replaced_part_is_changed(world: World, folder: Path) -> None:
    """A serial that the export wrote is replaced by that of the new part in the same place."""
    exported(folder)
    record = folder / "state" / "netbox" / "export.json"
    item = next(one for one in world.pages["dcim/inventory-items"].values() if one["device"]["id"] == 1)
    wanted, item["serial"] = item["serial"], "FORMER"
    document = json.loads(record.read_text())
    document["written"]["1"][f"item {item['name']}"] = "FORMER"
    record.write_text(json.dumps(document))
    exported(folder)
    assert item["serial"] == wanted


def test_what_was_lost_in_a_kill_is_ours(world: World, folder: Path) -> None:
    """An export that dies after its writes leaves its intents: the next stage replaces the values all the same."""
    exported(folder)
    record = folder / "state" / "netbox" / "export.json"
    document = json.loads(record.read_text())
    document["pending"], document["written"] = (
        {"2": document["written"]["2"]},
        {"2": {"status": "staged", "stage": "x"}},
    )
    record.write_text(json.dumps(document))
    context = open_site(folder)
    release = {"reason": "repaired", "to": "cabled"}
    context.journal.append([new_event("node", "id-n2", Kind.NODE_RELEASED, release)])
    context.journal.close()
    assert exported(folder).exit_code == 0
    assert device(world, 2) == ("failed", "cabled", [])


@pytest.mark.parametrize("lost", range(1, 9))
def test_a_kill_at_any_write_repeats_nothing(world: World, folder: Path, lost: int) -> None:
    """Where the answer to a write is lost, the same command goes on, and each object is there once."""
    left = [lost]

    def lose(world: World, method: str, _target: str) -> Answer | None:
        left[0] -= method != "GET"
        world.lost = left[0] == 0 and method != "GET"
        return None

    world.on_request = lose
    exported(folder)
    world.on_request = None
    world.lost = False
    assert exported(folder).exit_code == 0
    names = [(item["device"]["id"], item["serial"]) for item in world.pages["dcim/inventory-items"].values()]
    assert len(names) == len(set(names))
    assert len(world.pages["extras/journal-entries"]) == 1
    assert device(world, 2) == ("failed", "quarantined", ["quarantine"])
    assert not previewed(folder).effects


def test_a_device_that_changes_between_look_and_write(world: World, folder: Path) -> None:
    """With an ETag, NetBox refuses a change of what a person changed a moment before; other nodes are written."""

    def race(world: World, method: str, target: str) -> None:
        if method == "PATCH" and target.endswith("/devices/1/"):
            world.pages["dcim/devices"][1]["last_updated"] = "2026-06-01T00:00:00Z"

    world.on_request = race
    result = exported(folder)
    failed = {outcome.node: outcome.failure for outcome in result.outcomes if outcome.failure}
    assert list(failed) == ["n1"]
    assert device(world, 2)[0] == "failed"


def test_netbox_before_4_6_has_no_etag(world: World, folder: Path) -> None:
    """Without ETags the export works by looking just before it writes."""
    world.version = "4.4.10"
    assert exported(folder).exit_code == 0
    assert device(world, 1)[0] == "active"


def test_another_machine_is_not_written_to(world: World, folder: Path) -> None:
    """A device with another serial than the node is left alone, whatever its name."""
    world.pages["dcim/devices"][1]["serial"] = "OTHER"
    result = exported(folder)
    assert (result.exit_code, "another machine" in result.skipped["n1"]) == (1, True)
    assert device(world, 1) == ("active", "", [])


def test_a_field_that_netbox_does_not_have(world: World, folder: Path) -> None:
    """A missing custom field fails by node, with NetBox's reason, and stops no other kind of work."""
    world.custom_fields = set()
    result = exported(folder)
    failures = [outcome.failure.message for outcome in result.outcomes if outcome.failure]
    assert len(failures) == 2
    assert all("does not exist" in text for text in failures)


def test_a_read_only_token(world: World, folder: Path) -> None:
    """A token that may not write stops the export at its first write."""
    world.tokens = dict.fromkeys(world.tokens, "ro")
    result = exported(folder)
    assert (result.exit_code, len(writes(world)), bool(result.stopped)) == (1, 1, True)


def test_an_approval_is_of_one_preview(world: World, folder: Path) -> None:
    """What has changed since the preview is not written."""
    approved = previewed(folder).digest
    world.pages["dcim/devices"][1]["status"] = {"value": "planned", "label": "Planned"}
    context = open_site(folder)
    with pytest.raises(ConflictError):
        run(context, NetboxExportRequest(), Control(approved))
    context.journal.close()
    assert not writes(world)


def test_a_site_without_an_export_section(world: World, tmp_path: Path) -> None:
    """Nothing is written to NetBox unless the site names it."""
    with served(world) as url:
        folder = site(tmp_path / "plain", url)
        import_run(prepare(folder, NetboxImportRequest(), Control()), Control())
        with pytest.raises(UsageError):
            previewed(folder)


def retired(folder: Path, name: str) -> None:
    context = open_site(folder)
    context.journal.append([new_event("node", f"id-{name}", Kind.NODE_RETIRED, {"reason": "sent back"})])
    context.journal.close()


RETIRED = EXPORT.replace("seen: staged", "seen: staged, retired: decommissioning")


def mapped(folder: Path, more: str) -> None:
    """Replace the section about the export."""
    file = folder / "site.yml"
    file.write_text(file.read_text().replace(EXPORT, more))


def test_a_retired_node_gets_the_status_that_the_site_names_for_it(world: World, folder: Path) -> None:
    """The last stage of a node is written, too, also once the sheet names the node no more; then never again."""
    mapped(folder, RETIRED)
    exported(folder)
    retired(folder, "n1")
    sheet = folder / "nodes.csv"
    sheet.write_text(
        "".join(line for line in sheet.read_text().splitlines(keepends=True) if not line.startswith("n1,"))
    )
    assert exported(folder).exit_code == 0
    assert device(world, 1) == ("decommissioning", "retired", [])
    count = len(writes(world))
    assert (exported(folder).exit_code, len(writes(world))) == (0, count)


def test_a_retired_machine_is_not_the_next_one_of_its_name(world: World, folder: Path) -> None:
    """A device with the retired node's name and another serial is another machine, and no complaint."""
    mapped(folder, RETIRED)
    exported(folder)
    retired(folder, "n1")
    world.pages["dcim/devices"][1]["serial"] = "NEXT"
    before = device(world, 1)
    result = exported(folder)
    assert ("n1" in result.skipped, device(world, 1)) == (False, before)


def test_a_device_on_its_way_out_is_left_alone(world: World, folder: Path) -> None:
    """The first export never brings a device back that a person is decommissioning."""
    world.pages["dcim/devices"][1]["status"] = {"value": "decommissioning", "label": "Decommissioning"}
    result = exported(folder)
    assert "decommissioning" in result.skipped["n1"]
    assert device(world, 1) == ("decommissioning", "", [])


def netbox_device(id_: int, name: str, serial: str) -> NetboxDevice:
    return NetboxDevice(id=id_, name=name, serial=serial)


def node_state(name: str, serial: str = "") -> NodeState:
    return NodeState(id=NodeId(f"id-{name}"), name=name, serial=Serial(serial) if serial else None)


def test_two_devices_of_one_name_are_no_nodes_device() -> None:
    """Tenants may use a name twice: without a serial it is unknown which of the two is the node."""
    pairs, skipped = matched([node_state("n1")], [netbox_device(1, "n1", ""), netbox_device(9, "N1", "")])
    assert (pairs, skipped) == ([], {"n1": "NetBox has 2 devices with its name"})


def test_one_device_is_never_two_nodes() -> None:
    """A device that is one node by its serial is not another one by its name."""
    pairs, skipped = matched([node_state("n1", "S1"), node_state("n3")], [netbox_device(1, "n3", "S1")])
    assert ([state.name for state, _ in pairs], list(skipped)) == (["n1"], ["n3"])

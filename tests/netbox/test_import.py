"""`clusterctl import netbox`: what is taken over, what is left alone and named, and what a second import changes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusterctl.edges.site import load_site
from clusterctl.edges.site.contents import ethernet_plan, wiring_plan
from clusterctl.fleet.errors import ConflictError, UsageError
from clusterctl.fleet.fabric.wiring import PortName
from clusterctl.operations.netbox_import import ImportPlan, ImportResult, NetboxImportRequest, prepare, preview, run
from clusterctl.operations.operation import Control
from tests.netbox.emulator import World, served
from tests.netbox.recordings import recorded_world, with_recordings
from tests.netbox.sites import site
from tests.netbox.worlds import address, cable, end, interface, node, small_world


@pytest.fixture
def world() -> World:
    return small_world()


@pytest.fixture
def folder(world: World, tmp_path: Path) -> Iterator[Path]:
    """A site directory without a sheet, whose NetBox is the world."""
    with served(world) as url:
        yield site(tmp_path / "site", url)


def prepared(folder: Path, *, overwrite: bool = False) -> ImportPlan:
    return prepare(folder, NetboxImportRequest(overwrite=overwrite), Control())


def imported(folder: Path, *, overwrite: bool = False) -> ImportResult:
    return run(prepared(folder, overwrite=overwrite), Control())


def left_out(plan: ImportPlan) -> dict[str, str]:
    return {item.subject: item.text for item in plan.conflicts if item.left_out}


def noted(plan: ImportPlan) -> dict[str, str]:
    return {item.subject: item.text for item in plan.conflicts if not item.left_out}


def test_nodes_and_plans_are_written(folder: Path) -> None:
    """The sheet and both plans are as NetBox has them, and the site reads them."""
    assert imported(folder).exit_code == 0
    found = load_site(folder)
    first = found.by_name["n1"]
    assert (first.bmc, first.serial, first.rack, first.unit, first.address) == (
        "10.0.1.1",
        "S0001",
        "A01",
        1,
        "10.0.2.1",
    )
    assert (first.bmc_mac, first.boot_mac) == ("02:00:00:00:01:01", "02:00:00:00:02:01")
    ends = {frozenset((PortName("leaf-1", str(2 * at - 1)), PortName(f"n{at}", "mlx5_0"))) for at in (1, 2, 3)}
    assert {entry.ends for entry in wiring_plan(found).cables} == ends
    ethernet = ethernet_plan(found)
    assert ethernet is not None
    assert ethernet.macs[PortName("n2", "bmc")] == "02:00:00:00:01:02"


def test_a_preview_changes_nothing(folder: Path) -> None:
    """Before it is approved, no file of the site is there; the difference names each node and field."""
    shown = preview(prepared(folder))
    assert sorted(path.name for path in folder.iterdir()) == ["secrets", "site.yml"]
    assert ("n1", "serial", "", "S0001") in {(c.node, c.column, c.before, c.after) for c in shown.changes}
    assert {change.name for change in shown.files} == {"wiring.csv", "ethernet.csv"}


def test_a_second_import_finds_no_difference(folder: Path) -> None:
    """What was imported is as NetBox has it."""
    imported(folder)
    shown = preview(prepared(folder))
    assert not shown.effects
    assert not shown.skipped


def test_a_change_in_netbox_is_one_cell(world: World, folder: Path) -> None:
    """Only the cell that NetBox changed changes; the operator's own columns stay."""
    imported(folder)
    sheet = folder / "nodes.csv"
    lines = [
        f"{line},{tail}" for line, tail in zip(sheet.read_text().splitlines(), ("pdu", "p1", "p2", "p3"), strict=True)
    ]
    sheet.write_text("\n".join(lines) + "\n")
    world.pages["dcim/devices"][2]["serial"] = "NEW"
    shown = preview(prepared(folder))
    assert [(c.node, c.column, c.before, c.after) for c in shown.changes] == [("n2", "serial", "S0002", "NEW")]
    imported(folder)
    found = load_site(folder).by_name["n2"]
    assert (found.serial, found.pdu) == ("NEW", "p2")


def test_a_cell_changed_by_hand_stays(world: World, folder: Path) -> None:
    """An operator's change is kept and named, also where NetBox changes it too; with overwrite NetBox's is taken."""
    imported(folder)
    sheet = folder / "nodes.csv"
    sheet.write_text(sheet.read_text().replace("10.0.1.2", "10.0.1.200"))
    plan = prepared(folder)
    assert any("n2: bmc_address 10.0.1.200 was changed by hand" in text for text in plan.warnings)
    assert run(plan, Control()).exit_code == 1
    assert load_site(folder).by_name["n2"].bmc == "10.0.1.200"
    world.pages["dcim/devices"][2]["oob_ip"]["address"] = "10.0.1.99/24"
    imported(folder)
    assert load_site(folder).by_name["n2"].bmc == "10.0.1.200"
    imported(folder, overwrite=True)
    assert load_site(folder).by_name["n2"].bmc == "10.0.1.99"
    (copy,) = folder.glob("nodes.csv.*.bak")
    assert "10.0.1.200" in copy.read_text()


def test_a_plan_changed_by_hand_stays(world: World, folder: Path) -> None:
    """A plan that an operator changed is refused with the number of lines; with overwrite a copy of it is kept."""
    imported(folder)
    plan = folder / "wiring.csv"
    plan.write_text(plan.read_text().replace(",2,dac", ",3,dac"))
    world.pages["dcim/cables"].pop(3)
    changed = prepared(folder)
    assert "changed by hand" in preview(changed).skipped["wiring.csv"]
    before = plan.read_text()
    assert run(changed, Control()).exit_code == 1
    assert plan.read_text() == before
    assert imported(folder, overwrite=True).exit_code == 0
    assert len(wiring_plan(load_site(folder)).cables) == 2
    assert [copy.read_text() for copy in folder.glob("wiring.csv.*.bak")] == [before]


def test_a_plan_that_only_netbox_changed_is_replaced(world: World, folder: Path) -> None:
    """Without a change by hand no copy is kept, and the removed cable is named."""
    imported(folder)
    world.pages["dcim/cables"].pop(3)
    plan = prepared(folder)
    (wiring,) = [file.change for file in plan.files if file.change.name == "wiring.csv"]
    assert [line.partition(" (")[0] for line in wiring.removed] == ["leaf-1 port 5 — n3 mlx5_0"]
    assert run(plan, Control()).exit_code == 0
    assert not list(folder.glob("*.bak"))


def test_a_file_that_changes_while_it_is_approved(folder: Path) -> None:
    """A sheet that was written after the comparison is not overwritten."""
    imported(folder)
    plan = prepared(folder)
    with (folder / "nodes.csv").open("a") as sheet:
        sheet.write("n9,10.0.1.9\n")
    with pytest.raises(ConflictError):
        run(plan, Control())


def test_lines_that_netbox_does_not_have_are_kept(world: World, folder: Path) -> None:
    """A node that is gone from NetBox stays in the sheet, and is named."""
    imported(folder)
    for page, ids in {"dcim/devices": [3], "dcim/interfaces": [30, 31, 32], "ipam/ip-addresses": [1003, 2003]}.items():
        for id_ in ids:
            world.pages[page].pop(id_)
    plan = prepared(folder)
    assert preview(plan).only_in_sheet == ("n3",)
    run(plan, Control())
    assert "n3" in load_site(folder).by_name


def test_a_node_renamed_in_netbox_keeps_its_name(world: World, folder: Path) -> None:
    """A rename would begin a new history: it is named, and the plans have the sheet's name."""
    imported(folder)
    world.pages["dcim/devices"][1]["name"] = "gpu-a"
    plan = prepared(folder)
    assert "NetBox calls it gpu-a" in noted(plan)["n1"]
    assert not preview(plan).effects


def test_conflicts_are_named_and_stop_no_other(world: World, folder: Path) -> None:
    """Each device that cannot be taken over has a reason and NetBox's address; the others are imported."""
    node(world, 4, "n4", serial="S0001")
    node(world, 5, "n5", oob=None)
    node(world, 6, "n6", status="decommissioning")
    node(world, 7, "Node 7 (LAB)")
    node(world, 8, "n8", oob="10.0.1.2/24")
    node(world, 9, "n9", unit=3.0)
    plan = prepared(folder)
    reasons = left_out(plan)
    assert "same serial S0001 as n4" in reasons["n1"]
    assert "same serial S0001 as n1" in reasons["n4"]
    assert "no BMC address" in reasons["n5"]
    assert "decommissioned" in reasons["n6"]
    assert "no host name" in reasons["Node 7 (LAB)"]
    assert "same BMC address 10.0.1.2 as n8" in reasons["n2"]
    assert "same rack unit A01 U3 as n9" in noted(plan)["n3"]
    url = next(item.url for item in plan.conflicts if item.subject == "n5")
    assert url == f"{plan.site.settings.netbox.url}/dcim/devices/5/"  # type: ignore[union-attr]
    assert run(plan, Control()).exit_code == 1
    assert sorted(load_site(folder).by_name) == ["n3", "n9"]


def test_the_address_of_the_bmc_s_interface_is_enough(world: World, folder: Path) -> None:
    """Without `oob_ip` the only address of the management interface is the BMC's; two are a conflict."""
    for id_ in (1, 2):
        world.pages["dcim/devices"][id_]["oob_ip"] = None
    world.add("ipam/ip-addresses", address(3000, world.pages["dcim/interfaces"][20], "10.0.1.222/24"))
    plan = prepared(folder)
    assert "has 2 BMC addresses" in left_out(plan)["n2"]
    run(plan, Control())
    assert load_site(folder).by_name["n1"].bmc == "10.0.1.1"


def test_cables_that_a_plan_cannot_have(world: World, folder: Path) -> None:
    """A breakout, a cable on its way out and a path that ends in a panel are named; a whole path is one cable."""
    ports, leaf = world.pages["dcim/interfaces"], world.pages["dcim/devices"][90]
    more = {id_: interface(id_, leaf, f"IB1/{id_ - 9000}/1") for id_ in (9011, 9012, 9013, 9014)}
    hca = {id_: interface(id_, world.pages["dcim/devices"][1], f"mlx5_{id_ - 500}") for id_ in range(501, 506)}
    panel = {"id": 1, "name": "F1", "device": {"id": 95, "name": "panel"}}
    hca[504] |= {"connected_endpoints": [more[9013]], "connected_endpoints_type": "dcim.interface"}
    hca[504] |= {"connected_endpoints_reachable": True}
    world.add("dcim/interfaces", *more.values(), *hca.values())
    world.add(
        "dcim/cables",
        cable(201, [end(more[9011])], [end(hca[501]), end(hca[502])], label="BREAK"),
        cable(202, [end(hca[503])], [end(more[9012])], "decommissioning", label="OLD"),
        cable(203, [end(hca[504])], [end(panel, "dcim.frontport")], label="PATH"),
        cable(204, [end(hca[505])], [end(panel, "dcim.rearport")], label="DEAD"),
        cable(205, [end(ports[12])], [end(more[9014])], label="TWICE"),
    )
    plan = prepared(folder)
    reasons = {subject.split()[1]: text for subject, text in left_out(plan).items()}
    assert "breakout" in reasons["BREAK"]
    assert "decommissioning" in reasons["OLD"]
    assert "no single port behind it" in reasons["DEAD"]
    assert "already has cable C1" in reasons["TWICE"]
    assert any("PATH" in subject and "whole path as one cable" in text for subject, text in noted(plan).items())
    run(plan, Control())
    found = wiring_plan(load_site(folder)).cables
    assert frozenset((PortName("leaf-1", "25"), PortName("n1", "mlx5_4"))) in {entry.ends for entry in found}
    assert len(found) == 4


def test_the_example_of_init_is_replaced(folder: Path) -> None:
    """The sheet and the plan that `clusterctl init` wrote are no operator's work."""
    from clusterctl.edges.resources import resource

    example = (resource("site") / "wiring.csv").read_bytes()
    (folder / "wiring.csv").write_bytes(example)
    assert imported(folder).exit_code == 0
    assert (folder / "wiring.csv").read_bytes() != example


def test_a_sheet_written_by_hand_before(folder: Path) -> None:
    """An existing sheet is filled in, where its cells are empty; cells that differ are kept."""
    (folder / "nodes.csv").write_text("name,bmc_address,serial,rack,unit\nn1,10.0.1.1,,A01,U1\nn2,10.9.9.9,S0002,,\n")
    assert imported(folder).exit_code == 1
    found = load_site(folder)
    assert (found.by_name["n1"].serial, found.by_name["n2"].bmc) == ("S0001", "10.9.9.9")
    assert found.by_name["n2"].rack == "A01"
    assert "n1,10.0.1.1,S0001,A01,U1" in (folder / "nodes.csv").read_text()


def test_the_address_plan(world: World, tmp_path: Path) -> None:
    """A site with a sheet of addresses gets those of the interfaces that its rules name."""
    rules = "network: {addresses: addresses.csv, rules: [{ports: [{name: mgmt0, port: boot, address: sheet}]}]}\n"
    for id_ in (11, 21):
        world.pages["dcim/interfaces"][id_]["name"] = "mgmt0"
    with served(world) as url:
        folder = site(tmp_path / "site", url, rules)
        plan = prepared(folder)
        run(plan, Control())
    assert any("1 addresses of interfaces" in text for text in plan.warnings)
    lines = (folder / "addresses.csv").read_text().splitlines()
    assert lines[:2] == ["node,interface,address,mac", "n1,mgmt0,10.0.2.1/24,02:00:00:00:02:01"]


def test_an_unknown_site_of_netbox(world: World, tmp_path: Path) -> None:
    """A wrong slug is a wrong site file, with the slugs that NetBox has."""
    with served(world) as url:
        folder = site(tmp_path / "site", url, site="nope")
        with pytest.raises(UsageError) as caught:
            prepared(folder)
    assert (caught.value.message, "hall-1" in caught.value.remedy) == ("NetBox has no site 'nope'", True)


def test_the_record_is_private_and_holds_no_token(folder: Path) -> None:
    """What the next import begins with is readable by its owner alone."""
    imported(folder)
    record = folder / "state" / "netbox" / "import.json"
    assert record.stat().st_mode & 0o777 == 0o600
    assert json.loads(record.read_text())["nodes"]["1"]["name"] == "n1"
    assert "0123456789abcdef" not in record.read_text()


@with_recordings
def test_the_recorded_netbox(tmp_path: Path) -> None:
    """Of the recorded site, each irregular device is named, and the rest is imported; a second import is silent."""
    with served(recorded_world()) as url:
        more = "  bmc_mac_field: bmc_mac\n"
        names = {"site": "fra1", "nodes": "gpu-node", "fabric": "ib-leaf, ib-spine", "ethernet": "oob-switch"}
        folder = site(tmp_path / "site", url, more, **names)
        plan = prepared(folder)
        assert run(plan, Control()).exit_code == 1
        assert not preview(prepared(folder)).effects
    expected = {"gpu-node-05", "gpu-node-06", "gpu-node-07", "gpu-node-22", "GPU Node 24 (LAB)", "OLD-node-01"}
    assert {name for name in left_out(plan) if not name.startswith("cable")} == {*expected, "device 26"}
    labels = sorted(name.split()[1] for name in left_out(plan) if name.startswith("cable"))
    assert labels == ["115", "BREAKOUT-1", "BREAKOUT-2", "P21-3"]
    assert any("P20-0a" in name for name in noted(plan))
    found = load_site(folder)
    assert len(found.nodes) == 19
    assert (found.by_name["gpu-node-08"].bmc, found.by_name["gpu-node-12"].bmc) == ("10.10.1.8", "fd00:10:1::c")
    assert (found.by_name["gpu-node-09"].bmc_mac, found.by_name["gpu-node-23"].unit) == (None, None)
    ends = {entry.ends for entry in wiring_plan(found).cables}
    assert frozenset((PortName("ib-leaf-01", "20"), PortName("gpu-node-20", "mlx5_0"))) in ends
    assert frozenset((PortName("ib-leaf-01", "10"), PortName("gpu-node-10", "mlx5_1"))) in ends

"""A node is renamed, moved, renumbered and swapped: proven first, in all files at once, resumed after a kill."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from clusterctl.edges.hostkeys import HostKeys
from clusterctl.edges.journal import SqlJournal
from clusterctl.edges.pxe.attempt import AttemptState, InstallAttempt
from clusterctl.edges.pxe.attempt_store import AttemptStore
from clusterctl.fleet.acts import Act, PlaceDetails
from clusterctl.fleet.errors import ConflictError, EdgeError, UsageError
from clusterctl.fleet.event import Kind, NewEvent, Stream, node_event
from clusterctl.fleet.hardware.disk_contract import DiskContract
from clusterctl.fleet.node import Mac, NodeId, Serial, Stage, Step
from clusterctl.fleet.payloads.decisions import HoldSet, WaiverGranted
from clusterctl.fleet.payloads.node import ActIntended, HostKeyPinned
from clusterctl.fleet.state import NodeState
from clusterctl.operations import relocate
from clusterctl.operations.context import SiteContext, open_site
from clusterctl.operations.operation import Control, Result
from clusterctl.operations.relocate import RelocateRequest
from tests.cli.nights import SilentOutside
from tests.edges.site.ready import write_ready_site
from tests.events import new_event
from tests.steps.fakes import FakeBmc, FakeBmcs, identified, inventory

SHEET = """name,bmc_address,Serial,Rack,U,boot_mac,owner
n1,10.0.0.1,,A01,U4,02:00:00:00:00:01,physics
n2,10.0.0.2,S2,A01,12,,
"""
WIRING = """source_device,source_port,destination_device,destination_port,rack,unit
n1,mlx5_0,leaf1,1,A01,4
n2,mlx5_0,leaf1,2,A01,12
"""
ADDRESSES = "node,interface,address\nn1,mgmt0,10.20.0.1\nn2,mgmt0,10.20.0.2\n"
NETWORK = """
network:
  addresses: addresses.csv
  rules:
    - ports:
        - {name: mgmt0, port: boot, address: sheet, network: 10.20.0.0/16}
"""
ID = NodeId("id-n1")
NOW = datetime.now(UTC)


@dataclass
class World:
    """A site of two machines; `bmcs` are what answers, by address."""

    folder: Path
    bmcs: dict[str, FakeBmc]
    opened: list[SiteContext] = field(default_factory=list)

    @property
    def book(self) -> SqlJournal:
        """The journal, opened once."""
        return self.opened[0].journal  # type: ignore[return-value]

    def context(self) -> SiteContext:
        """The site as the next command reads it."""

        def connect(site: Any, _access: object) -> Any:
            return SilentOutside(site, bmcs=FakeBmcs(self.bmcs))  # type: ignore[arg-type]

        context = replace(open_site(self.folder), connect=connect)
        self.opened.append(context)
        return context

    def run(self, node: str = "n1", **fields: Any) -> Result:
        return relocate.run(self.context(), RelocateRequest(node=node, reason="a new hall", **fields), Control())

    def append(self, *events: NewEvent) -> None:
        self.book.append(events)

    def state(self) -> NodeState:
        return self.book.state(ID)

    def text(self, name: str) -> str:
        return (self.folder / name).read_text()

    def kinds(self) -> list[str]:
        return [event.kind.value for event in self.book.history(Stream.NODE, ID)]


def hold() -> NewEvent:
    return node_event(ID, HoldSet(reason="moves"))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """n1 is gold and held."""
    write_ready_site(tmp_path)
    files = {"bmcs.csv": SHEET, "wiring.csv": WIRING, "addresses.csv": ADDRESSES}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with (tmp_path / "site.yml").open("a") as file:
        file.write(NETWORK)
    found = World(tmp_path, {f"10.0.0.{at}": FakeBmc(inventory(f"S{at}")) for at in (1, 2)})
    context = found.context()
    for name, serial in (("n1", "S1"), ("n2", "S2")):
        identified(context.journal, name, serial, "gold")
    context.describe()
    found.append(hold())
    yield found
    for context in found.opened:
        context.journal.close()


def test_a_renamed_node_is_the_same_node(world: World) -> None:
    """Its name changes in every file and in the journal; history, hold and waivers stay; configure proves it again."""
    waiver = WaiverGranted(check="gpu_ecc", subject="", until=NOW + timedelta(days=3), reason="ordered")
    world.append(node_event(ID, waiver))
    events = world.state().events
    result = world.run(name="gpu7")
    assert (result.exit_code, [one.node for one in result.outcomes]) == (0, ["gpu7"])
    assert world.text("bmcs.csv").splitlines()[1] == "gpu7,10.0.0.1,S1,A01,U4,02:00:00:00:00:01,physics"
    assert world.text("wiring.csv") == WIRING.replace("n1,", "gpu7,")
    assert world.text("addresses.csv") == ADDRESSES.replace("n1,", "gpu7,")
    state = world.state()
    assert (state.name, state.stage, state.serial) == ("gpu7", Stage.INSTALLED, "S1")
    assert (state.hold is not None, len(state.waivers), state.open_acts) == (True, 1, ())
    assert state.events == events + 5
    assert {node.name for node in world.book.summaries()} == {"gpu7", "n2"}
    world.context().describe()
    assert {node.name: node.id for node in world.book.summaries()}["gpu7"] == ID


def test_its_installer_record_and_host_key_follow(world: World) -> None:
    """Else a later install would find no record, and write the OS again."""
    store = AttemptStore(world.folder / "state" / "pxe" / "machines")
    done = InstallAttempt(
        "n1", AttemptState.DONE, Serial("S1"), (Mac("02:00:00:00:00:01"),), DiskContract(Serial("D")), "a1"
    )
    store.put(done, {"overlay.tar": b"x"})
    key = HostKeys(world.folder / "state" / "host_keys").get("n1")
    world.run(name="gpu7")
    assert (store.find("n1"), store.find("gpu7")) == (None, replace(done, node="gpu7"))
    assert store.document(replace(done, node="gpu7", documents=("overlay.tar",)), "overlay.tar") == b"x"
    assert HostKeys(world.folder / "state" / "host_keys").get("gpu7") == key


@pytest.mark.parametrize(("own", "pinned"), [(True, False), (True, True), (False, False), (False, True)])
def test_it_never_gets_the_host_key_of_a_retired_node(world: World, own: bool, pinned: bool) -> None:
    """Else that machine, wherever it is now, could answer in its place. Its own key stays its own, also in a second run."""
    keys = HostKeys(world.folder / "state" / "host_keys")
    retired, mine = keys.get("gpu7"), keys.get("n1") if own else None
    if pinned:
        public = mine[1] if mine else f"{HostKeys(world.folder / 'another').get('n1')[1]} comment"
        world.append(node_event(ID, HostKeyPinned(public=public)))
    world.run(name="gpu7")
    if mine and pinned:
        keys.rename("n1", "gpu7", f"{mine[1]} comment")
    found = keys.get("gpu7")
    assert found != retired
    assert mine is None or found == mine
    assert not (keys.folder / "n1").exists()


def record(name: str, state: AttemptState, serial: str, attempt: str) -> InstallAttempt:
    return InstallAttempt(name, state, Serial(serial), (), DiskContract(Serial("D")), attempt)


def test_a_running_install_keeps_its_name(world: World) -> None:
    """The machine reports itself under the record's name: that is not taken away while it does, nor given to another."""
    store = AttemptStore(world.folder / "state" / "pxe" / "machines")
    store.put(record("n1", AttemptState.WRITING, "S1", "a1"), {})
    with pytest.raises(ConflictError, match="installed or erased"):
        store.rename("n1", "gpu7")
    assert store.find("n1") is not None
    retired = store.put(record("n9", AttemptState.WRITING, "S9", "a9"), {})
    store.put(record("n1", AttemptState.DONE, "S1", "a1"), {})
    with pytest.raises(ConflictError, match="installed or erased"):
        store.rename("n1", "n9")
    assert (store.find("n1"), store.find("n9")) == (record("n1", AttemptState.DONE, "S1", "a1"), retired)


@pytest.mark.parametrize("documents", [{}, {"overlay.tar": b"of S1"}])
def test_nothing_of_an_earlier_machine_with_the_name_is_left(world: World, documents: dict[str, bytes]) -> None:
    """A retired node's record and files give way, as they do to an install under its name; again, nothing changes."""
    store = AttemptStore(world.folder / "state" / "pxe" / "machines")
    store.keep_log(store.put(record("n9", AttemptState.DONE, "S9", "a9"), {"overlay.tar": b"of S9"}), b"its log")
    store.put(record("n1", AttemptState.DONE, "S1", "a1"), documents)
    for _ in range(2):
        store.rename("n1", "n9")
        assert (store.find("n1"), store.find("n9")) == (None, record("n9", AttemptState.DONE, "S1", "a1"))
        left = {
            file.name: file.read_bytes()
            for file in (world.folder / "state/pxe/machines/n9").rglob("*")
            if file.is_file()
        }
        assert left == documents


def test_a_moved_node_has_its_cables_proven_again(world: World) -> None:
    """Rack and unit change in sheet and wiring plan; its BMC is asked at its new address."""
    world.bmcs["10.9.0.1"] = world.bmcs.pop("10.0.0.1")
    world.run(rack="B02", unit=8, bmc="10.9.0.1")
    assert world.text("bmcs.csv").splitlines()[1] == "n1,10.9.0.1,S1,B02,8,02:00:00:00:00:01,physics"
    assert world.text("wiring.csv").splitlines()[1] == "n1,mlx5_0,leaf1,1,B02,8"
    assert world.text("addresses.csv") == ADDRESSES
    assert (world.state().stage, str(world.state().location)) == (Stage.SEEN, "rack B02 U8")


REFUSED: tuple[tuple[dict[str, Any], str], ...] = (
    ({"name": "n2"}, "n2 is another node"),
    ({"rack": "A01", "unit": 12}, "A01 U12 is given twice"),
    ({"bmc": "10.0.0.2"}, "10.0.0.2 is given twice"),
    ({"bmc": "10.20.0.2"}, "10.20.0.2, for mgmt0 of n2, is taken by the BMC of n1"),
    ({"bmc": "rack 4"}, "must be an IP address"),
    ({"name": "No Name"}, "is no host name"),
    ({"serial": "S2"}, "serial S2 is n2's"),
    ({"serial": "S1"}, "has serial S1 already"),
    ({"rack": "A01", "unit": 4}, "nothing changes"),
)


def test_what_cannot_be_is_refused(world: World) -> None:
    """Before anything is asked or written, with the place in the file."""
    (world.folder / "bmcs.csv").write_text(SHEET.replace("n1,10.0.0.1,,", "n1,10.0.0.1,S1,"))
    before, context = world.text("bmcs.csv"), world.context()
    for fields, words in REFUSED:
        with pytest.raises(UsageError, match=re.escape(words)):
            relocate.run(context, RelocateRequest(node="n1", reason="a new hall", **fields), Control())
    assert world.text("bmcs.csv") == before


def test_a_node_in_the_pool_is_refused(world: World) -> None:
    """A job may run under its name."""
    world.append(new_event("node", ID, Kind.HOLD_LIFTED, {"reason": "back"}))
    with pytest.raises(UsageError, match="it may run a job"):
        world.run(name="gpu7")


def test_another_machine_at_the_address_changes_nothing(world: World) -> None:
    """Identity is the serial: the files and the journal stay as they were."""
    world.bmcs["10.0.0.1"] = FakeBmc(inventory("S9"))
    kinds = world.kinds()
    with pytest.raises(EdgeError, match=r"serial S9 answers at 10\.0\.0\.1, not S1: nothing was changed"):
        world.run(name="gpu7")
    assert (world.text("bmcs.csv"), world.text("wiring.csv"), world.kinds()) == (SHEET, WIRING, kinds)


WAS = PlaceDetails(name="n1", bmc="10.0.0.1", rack="A01", unit=4, readdressed=False)


def killed_at(world: World, files: int) -> None:
    """Leave what a run leaves that is killed after its intent and `files` of its files."""
    context = world.context()
    plan = relocate.planned(context, RelocateRequest(node="n1", name="gpu7", reason="a new hall"))
    context.journal.append([node_event(ID, ActIntended(act=Act.PLACE_WRITE, target="gpu7", details=WAS))])
    for edit in plan.edits.files[:files]:
        edit.write()


@pytest.mark.parametrize(("files", "described"), [(0, False), (1, True), (2, False), (3, True)])
def test_killed_at_any_moment_it_is_finished(world: World, files: int, described: bool) -> None:
    """The same command goes on, also where another command has read the new sheet in between: one node, one history."""
    killed_at(world, files)
    if described:
        world.context().describe()
    world.run(name="gpu7")
    assert "n1" not in world.text("bmcs.csv") + world.text("wiring.csv") + world.text("addresses.csv")
    state = world.state()
    assert (state.name, state.stage, state.open_acts) == ("gpu7", Stage.INSTALLED, ())
    assert {node.name for node in world.book.summaries()} == {"gpu7", "n2"}
    assert world.kinds().count("node.relocated") == 1
    with pytest.raises(UsageError, match="nothing changes"):
        world.run(name="gpu7")


def test_a_name_changed_in_the_sheet_by_hand_is_recognised(world: World) -> None:
    """By the serial in its line: the history goes on, and the command then does the rest."""
    (world.folder / "bmcs.csv").write_text(SHEET.replace("n1,10.0.0.1,,", "gpu7,10.0.0.1,S1,"))
    (world.folder / "addresses.csv").write_text(ADDRESSES.replace("n1", "gpu7"))
    world.context().describe()
    assert (world.state().name, world.state().stage) == ("gpu7", Stage.GOLD)


def test_a_swapped_chassis_begins_again(world: World) -> None:
    """The sheet has its serial and no longer the old cards; what was proven on the old one is void, its holds stay."""
    world.bmcs["10.0.0.1"] = FakeBmc(inventory("S9"))
    world.run(serial="S9")
    assert world.text("bmcs.csv").splitlines()[1] == "n1,10.0.0.1,S9,A01,U4,,physics"
    state = world.state()
    assert (state.stage, state.serial, state.former_serials, state.reports) == (Stage.SEEN, "S9", ("S1",), {})
    assert (state.open_acts, state.boot_mac, state.expected_serial) == ((), None, "S9")
    parts = world.book.history(Stream.PART, "S9")
    assert [event.kind.value for event in parts] == ["node.merged"]


def test_a_node_of_the_site_file_is_for_the_operator(world: World) -> None:
    """site.yml is never written; once it is changed, the same command does the rest."""
    (world.folder / "bmcs.csv").write_text("\n".join(line for line in SHEET.splitlines() if "n1" not in line))
    file = world.folder / "site.yml"
    entry = "{name: n1, bmc: 10.0.0.1, serial: S1, rack: A01, unit: 4}"
    file.write_text(file.read_text().replace("  csv: bmcs.csv", f"  csv: bmcs.csv\n  list:\n    - {entry}"))
    with pytest.raises(UsageError, match="not in the sheet") as caught:
        world.run(rack="B02", unit=8)
    assert "rack B02, unit 8; then run the same command again" in caught.value.remedy
    file.write_text(file.read_text().replace("rack: A01, unit: 4", "rack: B02, unit: 8"))
    world.run(rack="B02", unit=8)
    assert world.state().stage is Stage.CONFIGURED
    assert world.text("wiring.csv").splitlines()[1] == "n1,mlx5_0,leaf1,1,B02,8"


def test_the_preview_names_all_that_is_left_to_an_operator(world: World) -> None:
    """Plans of other kinds, lines of site.yml, the installer of addresses; and which steps run again."""
    (world.folder / "site.yml").write_text(
        world.text("site.yml") + "# n1 is old\nscheduler: {kind: list, nodes: [n1]}\n"
    )
    (world.folder / "wiring.csv").write_text("Switch,Port,Server,HCA\nleaf1,1,n1,mlx5_0\n")
    request = RelocateRequest(node="n1", name="gpu7", reason="a new hall")
    preview = relocate.preview(world.context(), request)
    warnings = "\n".join(preview.warnings)
    assert "site.yml:" in warnings
    assert "cables of n1 in it: 1; change them by hand" in warnings
    assert preview.effects[-1].text == "to be proven again: configure, cable, burnin, admit"
    assert Step.CONFIGURE.value in preview.effects[-1].text

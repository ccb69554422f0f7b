"""The managers of the fabric: a hand-over of the subnet manager, and a UFM whose model is stale."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from clusterctl.cabling.managed_links import compare_model
from clusterctl.edges.journal import Holder, SqlJournal, open_journal
from clusterctl.fleet.errors import EdgeError, ParseError
from clusterctl.fleet.event import Kind, Stream
from clusterctl.fleet.fabric.alarms import ManagedLink
from clusterctl.fleet.fabric.topology import Fabric
from clusterctl.fleet.finding import Evidence, Observed, Origin
from clusterctl.formats.infiniband.sminfo import parse_sminfo
from clusterctl.operations.fabric_managers import compared, watch_master
from clusterctl.ports import Deadline
from tests.ufm.watch_world import START, Clock, fat_tree, uplinks, watched

TREE = fat_tree(8, 4, 2)
SMINFO = "sminfo: sm lid {lid} sm guid 0x{guid:x}, activity count 4711 priority {priority} state {state} {name}\n"


def printed(lid: int, guid: int = 0xA001, state: int = 3) -> Evidence:
    text = SMINFO.format(lid=lid, guid=guid, priority=14, state=state, name="SMINFO_MASTER" if state == 3 else "")
    return Evidence("sminfo", "controller", START, Origin.REAL, text.encode())


@dataclass
class Links:
    """A manager that has these links of the fabric."""

    managed: tuple[ManagedLink, ...]
    trouble: EdgeError | None = None

    def links(self, deadline: Deadline) -> Observed[tuple[ManagedLink, ...]]:
        deadline.check("reading")
        if self.trouble is not None:
            raise self.trouble
        return Observed(self.managed)


def model(fabric: Fabric) -> tuple[ManagedLink, ...]:
    return tuple(ManagedLink(a=link.b, b=link.a) for link in fabric.links)


@pytest.fixture
def book(tmp_path: Path) -> Iterator[SqlJournal]:
    journal = open_journal(f"sqlite:///{tmp_path}/j.db", Clock(), Holder("r"))
    yield journal
    journal.close()


def test_what_sminfo_prints() -> None:
    """A GUID without its leading zeros, as the tool prints it; another text is an error."""
    found = parse_sminfo(printed(7, 0xA1).content.decode())
    assert (found.guid, found.lid, found.priority, found.master) == ("00000000000000a1", 7, 14, True)
    assert not parse_sminfo(printed(7, state=2).content.decode()).master
    with pytest.raises(ParseError):
        parse_sminfo("sminfo: iberror: failed: query\n")


def test_a_hand_over_is_reported_once(book: SqlJournal) -> None:
    """The first master is recorded; another one is named with both ends, and recorded; the same one is no news."""
    assert watch_master(book, TREE, (printed(1),)) == ()
    assert watch_master(book, TREE, (printed(1),)) == ()
    (text,) = watch_master(book, TREE, (printed(2, 0xA002),))
    assert "leaf-1" in text
    assert "leaf-2" in text
    assert watch_master(book, TREE, (printed(2, 0xA002),)) == ()
    assert sum(event.kind is Kind.FABRIC_MASTER_SEEN for event in book.history(Stream.FABRIC, "master")) == 2


def test_a_standby_and_other_texts_are_no_master(book: SqlJournal) -> None:
    """Nothing is concluded from them."""
    other = Evidence("ibnetdiscover", "controller", START, Origin.REAL, b"sminfo: nothing\xff")
    assert watch_master(book, TREE, (printed(1, state=2), other)) == ()
    assert watch_master(book, None, (printed(1),)) == ()
    assert not list(book.history(Stream.FABRIC, "master"))


def test_single_links_that_differ_are_no_stale_model() -> None:
    """Links go and come between two readings. Links of adapters do not count: managers know them by other GUIDs."""
    managed = [link for link in model(TREE) if link.a != uplinks(TREE)[0].b]
    found = compare_model(managed[20:] + managed[:20], TREE)
    assert (found.links, found.missing, found.gone, found.stale) == (64, 1, 0, False)
    hosts = [link for link in managed if link.b.guid in {one.a.guid for one in uplinks(TREE)}]
    assert compare_model(hosts, TREE).missing == 1


def test_a_stale_model() -> None:
    """A manager that missed the return of a leaf is stale; one that cannot be read is no stale one."""
    whole = model(TREE)
    lost = TREE.links[0].a.guid
    without = tuple(link for link in whole if lost not in (link.a.guid, link.b.guid))
    deadline = Deadline.after(60)
    assert compared(Links(whole), TREE, deadline).stale == ()
    (text,) = compared(Links(without), TREE, deadline).stale
    assert "lacks 8" in text
    assert "clusterctl fabric restart" in text
    broken = compared(Links((), EdgeError("UFM refuses")), TREE, deadline)
    assert (broken.stale, len(broken.unread)) == ((), 1)
    assert compared(None, TREE, deadline) == compared(Links(()), None, deadline)


def test_a_pass_reports_a_stale_model(tmp_path: Path) -> None:
    """Exit code 1, and no port is touched for it."""
    site = watched(tmp_path / "site", fat_tree(2, 2, 1))
    site.links = Links(())
    result = site.once()
    assert (len(result.stale), result.exit_code, site.world.set) == (1, 1, [])

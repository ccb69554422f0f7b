"""How much one BMC may make the controller read: over all answers of a walk together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from clusterctl.edges.redfish import session as sessions
from clusterctl.edges.redfish.budget import ReadBudget, ReadLimits
from clusterctl.edges.redfish.session import RedfishAccess, RedfishSession
from clusterctl.fleet.errors import ParseError
from clusterctl.formats.redfish.inventory import read_inventory
from clusterctl.formats.redfish.tree import ROOT, GarbledError, normal
from clusterctl.ports import Deadline
from tests.edges.redfish.conftest import QUICK
from tests.edges.redfish.replay import Bmc, Handler, serve
from tests.edges.redfish.trees import small

Served = tuple[Bmc, RedfishSession]
SYSTEM = f"{ROOT}/Systems/1"
KIB = 1024


@pytest.fixture
def logged_in(tmp_path: Path) -> Iterator[Served]:
    """A BMC, and a session that reads at most 100 kB and 20,000 values of it in a walk."""
    access = RedfishAccess(QUICK, limits=ReadLimits(answers=80, size=100 * KIB, values=20_000))
    with serve(small(), tmp_path) as (server, address):
        session, _ = access.open(address, Deadline.after(60))
        try:
            yield server, session
        finally:
            session.close()


def walked(session: RedfishSession) -> int:
    return len(session.walk(read_inventory, Deadline.after(60))[1])


def test_a_machine_is_within_the_limits(logged_in: Served) -> None:
    """Twice: each walk has a budget of its own."""
    _, session = logged_in
    assert 20 < walked(session) == walked(session)


def test_many_large_answers(logged_in: Served) -> None:
    """Each is within the limit of one answer; together they are not what a BMC has."""
    server, session = logged_in
    for path, body in server.tree.items():
        server.tree[path] = {**body, "Oem": "x" * (10 * KIB)}
    with pytest.raises(ParseError, match="more than 102400 bytes in all resources together") as caught:
        walked(session)
    assert "no machine is that large" in caught.value.remedy


def test_many_values(logged_in: Served) -> None:
    """A value of two bytes takes a hundred bytes of memory."""
    server, session = logged_in
    server.tree[SYSTEM] = {**server.tree[SYSTEM], "Oem": [0] * 25_000}
    with pytest.raises(ParseError, match="more than 20000 values"):
        walked(session)


def test_refusals_count(logged_in: Served) -> None:
    """An error of 200 kB is read as a resource is."""
    server, session = logged_in

    def refuse(handler: Handler) -> bool:
        if handler.path == SYSTEM:
            handler.reply(404, {"error": "x" * (200 * KIB)})
        return handler.path == SYSTEM

    server.manner = refuse
    with pytest.raises(ParseError, match="bytes in all"):
        walked(session)


def test_a_chain_without_end(logged_in: Served) -> None:
    """Each page links to the next: the walk ends at its number of answers."""
    server, session = logged_in

    def page(handler: Handler) -> bool:
        name = handler.path.partition("Memory")[2]
        if name.startswith("/"):
            following = f"{SYSTEM}/Memory/{int(name[1:]) + 1}"
            handler.reply(200, {"Members": [{"@odata.id": handler.path}], "Members@odata.nextLink": following})
        return name.startswith("/")

    server.manner = page
    server.tree[SYSTEM] = {**server.tree[SYSTEM], "Memory": {"@odata.id": f"{SYSTEM}/Memory/1"}}
    with pytest.raises(ParseError, match="more than 80 resources"):
        walked(session)


def test_the_time_of_parsing_counts() -> None:
    """A chain of pages is parsed again for each of them: the processor time of a walk is limited, too."""
    moments = iter((0.0, 4.0, 10.0, 17.0))
    budget = ReadBudget(ReadLimits(seconds=10.0), lambda: next(moments))
    with budget.parsing():
        pass
    with pytest.raises(ParseError, match="more than 10 s of processor time"), budget.parsing():
        pass


def test_the_walk_counts_its_parsing(tmp_path: Path) -> None:
    """No parser is so fast that it takes less than no time."""
    access = RedfishAccess(QUICK, limits=ReadLimits(seconds=-1.0))
    with serve(small(), tmp_path) as (_, address):
        session, _ = access.open(address, Deadline.after(60))
        try:
            with pytest.raises(ParseError, match="processor time"):
                walked(session)
        finally:
            session.close()


def test_etags_are_bounded(logged_in: Served) -> None:
    """The newest are kept: a BMC decides neither how many there are nor how long they are."""
    server, session = logged_in

    def tagged(handler: Handler) -> bool:
        number = int(handler.path.rpartition("/")[2]) if "/Tag/" in handler.path else -1
        if number >= 0:
            handler.reply(200, {"Id": number}, {"ETag": f'"{number}"' if number else "x" * 5000})
        return number >= 0

    server.manner = tagged
    most = sessions._MAX_ETAGS
    session._etags.update((f"{ROOT}/Old/{number}", "old") for number in range(most))
    for number in range(3):
        session.read(f"{ROOT}/Tag/{number}", Deadline.after(60))
    assert len(session._etags) == most
    assert [session.etag(f"{ROOT}/Tag/{number}") for number in range(3)] == ["", '"1"', '"2"']
    assert [session.etag(f"{ROOT}/Old/{number}") for number in range(3)] == ["", "", "old"]


def test_a_link_is_no_book() -> None:
    """Paths are kept, as keys and in evidence: one of megabytes is garbled."""
    assert normal(f"{ROOT}/{'a' * 1000}", "here")
    with pytest.raises(GarbledError, match="2000 characters"):
        normal(f"{ROOT}/{'a' * 3000}", "here")

"""The live page of a site: what it shows, who may see it, and what hostile texts of machines do to it: nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import anyio
import httpx
import pytest

from clusterctl.edges.web.accounts import AccountFile
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import Kind, NewEvent, Stream
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.node import Location
from clusterctl.fleet.payloads.decisions import NodeRetired
from clusterctl.operations.context import SiteContext, open_site
from clusterctl.operations.reports import WorkOrders
from clusterctl_web.change_feed import ChangeFeed
from clusterctl_web.live_fleet import LiveFleet, Tile, racks
from clusterctl_web.live_orders import LiveOrders
from clusterctl_web.node_view import NodeViews
from clusterctl_web.rendering import RacksHtml, tile_html
from clusterctl_web.service import serve
from clusterctl_web.sessions import SignInRules, StartToken
from tests.cli.site_of_three import quarantined, write
from tests.events import new_event
from tests.steps.fakes import NOW
from tests.web.browser import TOKEN, Browser

ACCESS = SignInRules(accounts=AccountFile(Path("/nowhere/web")), start=StartToken(secret=TOKEN, actor="root"))
KNOWN = {"Authorization": f"Bearer {TOKEN}"}
EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>"


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SiteContext]:
    """A site that no test changes."""
    opened = open_site(write(tmp_path_factory.mktemp("web")))
    yield opened
    opened.journal.close()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[SiteContext]:
    """A site that the test changes."""
    opened = open_site(write(tmp_path))
    yield opened
    opened.journal.close()


def get(context: SiteContext, path: str, host: str = "127.0.0.1", **options: object) -> httpx.Response:
    """One request, in this process."""
    return Browser(context, ACCESS, host=f"{host}:8080").get(path, **options)


def page(context: SiteContext, path: str) -> str:
    answer = get(context, path, headers=KNOWN)
    assert answer.status_code == 200, answer.text
    return answer.text


def test_nodes_are_found_by_their_parts(own: SiteContext) -> None:
    """By serial, slot or model of a part, by words of the tile, and by both together; not those that are retired."""
    own.journal.append([NewEvent(Stream.NODE, "id-n1", NodeRetired(reason="sold"))])
    asked = Browser(own, ACCESS)

    def found(query: str) -> list[str]:
        answer = asked.get("/search", params={"q": query}, headers=KNOWN)
        assert answer.status_code == 200, answer.text
        nodes: list[str] = answer.json()["nodes"]
        return nodes

    assert found("disk-s2") == ["n2"]
    assert found("1650") == ["n2"], "the part of a finding"
    assert found("M.2") == ["n2"]
    assert found("m.2 QUARANTINED a01") == ["n2"]
    assert found("disk-s1") == found("disk-s2 gold") == []
    for wrong in ("", "  ", "x" * 201):
        assert asked.get("/search", params={"q": wrong}, headers=KNOWN).status_code == 404


def test_the_fleet_is_shown_by_rack_with_what_stops_each_node(context: SiteContext) -> None:
    """n1 is gold, n2 is in quarantine with its cause, n3 was never touched."""
    text = page(context, "/")
    assert text.index("tile-n1") < text.index("tile-n3")
    assert 'class="tile gold" id="tile-n1"' in text
    assert 'class="tile quarantined" id="tile-n2"' in text
    assert "2 uncorrectable errors" in text
    assert "1 gold" in text


def test_the_page_of_a_node_shows_cause_remedy_and_evidence(context: SiteContext) -> None:
    """Its cause and remedy are the first thing below the name; its events are the last."""
    text = page(context, "/nodes/n2")
    why = text.index("Why is it here?")
    assert why < text.index("2 uncorrectable errors") < text.index("replace GPU 3") < text.index("What happened")
    assert "gpu_ecc" in text


def test_without_the_token_nothing_is_shown(context: SiteContext) -> None:
    """The address begins a session whose cookie scripts cannot read, and loses the token; a bearer token serves
    Prometheus.
    """
    assert get(context, "/").headers["location"] == "/sign-in?next=%2F"
    assert get(context, "/?token=wrong").status_code == 303
    assert get(context, "/metrics", headers={"Cookie": "clusterctl=wrong", "Accept": "*/*"}).status_code == 401
    entered = get(context, f"/?token={TOKEN}")
    assert (entered.status_code, entered.headers["location"]) == (303, "/")
    assert TOKEN not in entered.headers["set-cookie"]
    assert "HttpOnly" in entered.headers["set-cookie"]
    assert "SameSite=lax" in entered.headers["set-cookie"]
    metrics = get(context, "/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert "clusterctl_nodes_stopped" in metrics.text


def test_a_foreign_name_of_this_address_is_refused(context: SiteContext) -> None:
    """A page of another site cannot read ours through a name that it lets point to 127.0.0.1."""
    assert get(context, "/", "rebind.example", headers=KNOWN).status_code == 400
    assert get(context, "/", "localhost", headers=KNOWN).status_code == 200


def test_what_machines_report_stays_text(own: SiteContext) -> None:
    """In a cause, a serial, a subject and a remedy; and no script but ours may run."""
    bad = Finding(
        check="gpu_ecc", verdict=Verdict.FAIL, code=Code.GPU_ECC_UNCORRECTABLE, subject=EVIL, cause=EVIL, remedy=EVIL,
        serial=EVIL,
    )  # fmt: skip
    own.journal.append(quarantined("n2", "burnin", bad))
    for path in ("/", "/nodes/n2"):
        answer = get(own, path, headers=KNOWN)
        assert "<script>alert" not in answer.text
        assert "<img" not in answer.text
        assert "&lt;script&gt;alert(1)" in answer.text
        assert "script-src 'self'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    "path",
    ["/nodes/none", "/nodes/n1/evidence/abc", "/static/..%2Fapp.py", "/static/none.css", "/changes?since=-1"],
)
def test_what_is_not_there(context: SiteContext, path: str) -> None:
    """Each is an error page with status 404."""
    answer = get(context, path, headers=KNOWN)
    assert answer.status_code == 404
    assert "Traceback" not in answer.text


def test_only_what_has_changed_is_read_again(own: SiteContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that was made before an event gets the tile of its node, and no other."""
    monkeypatch.setattr("clusterctl_web.live_fleet.POLL_S", 0.0)
    live = LiveFleet(own)
    seq, _ = live.changed(0)
    assert live.changed(seq) == (seq, {})
    own.journal.append([new_event("node", "id-n1", Kind.NODE_ADDRESSED, {"address": "10.0.1.9"})])
    last, tiles = live.changed(seq)
    assert list(tiles) == ["n1"]
    assert last > seq


def test_all_open_pages_share_one_reading_and_one_rendering(own: SiteContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of fifty streams one asks the journal, and all get the same text; a late one gets what it does not know yet."""
    live = CountedFleet(own)
    feed, first = ChangeFeed(live), live.refresh()
    own.journal.append([new_event("node", "id-n1", Kind.NODE_ADDRESSED, {"address": "10.0.1.9"})])
    monkeypatch.setattr("clusterctl_web.live_fleet.POLL_S", 0.0)
    own.journal.append([new_event("node", "id-n2", Kind.NODE_ADDRESSED, {"address": "10.0.1.10"})])

    async def all_streams() -> list[tuple[int, str]]:
        found = [await feed.after(first) for _ in range(50)]
        return [*found, await feed.after(first + 1), await feed.after(found[0][0])]

    *texts, late, nothing = anyio.run(all_streams)
    assert live.read == [first, first + 1], "once for each page that knows something else"
    assert len({id(text) for _, text in texts}) == 1
    assert [name in texts[0][1] for name in ("tile-n1", "tile-n2")] == [True, True]
    assert [name in late[1] for name in ("tile-n1", "tile-n2")] == [False, True]
    assert nothing == (texts[0][0], "")


class CountedFleet(LiveFleet):
    """Keeps from which event on the tiles were asked for."""

    def __init__(self, context: SiteContext) -> None:
        super().__init__(context)
        self.read: list[int] = []

    def changed(self, since: int) -> tuple[int, Mapping[str, Tile]]:
        self.read.append(since)
        return super().changed(since)


def test_racks_are_drawn_once_for_each_change(own: SiteContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same racks and the same text for all readers; after an event others; and after a while, since a hold ends."""
    monkeypatch.setattr("clusterctl_web.live_fleet.POLL_S", 0.0)
    live, html = LiveFleet(own), RacksHtml()
    first, drawn = live.racks(), html.of(live.racks())
    assert live.racks() is first
    assert html.of(live.racks())[0] is drawn[0]
    assert drawn[1] == {"gold": 1, "quarantined": 1, "seen": 1}
    own.journal.append([new_event("node", "id-n1", Kind.HOLD_SET, {"reason": "a fan", "until": None})])
    assert html.of(live.racks())[1] == {"on hold": 1, "quarantined": 1, "seen": 1}
    monkeypatch.setattr("clusterctl_web.live_fleet.DRAWN_S", 0.0)
    assert live.racks() is not live.racks()


def test_what_nodes_share_is_read_once_for_each_change(own: SiteContext) -> None:
    """Offenders and work orders; a node's own state, cause and history are always those of the journal."""
    live = LiveFleet(own)
    orders = CountedOrders(live)
    views = NodeViews(live, orders)
    own.journal.append([new_event("node", "id-n2", Kind.HOLD_SET, {"reason": "a fan", "until": None})])
    first = views.of("n2")
    assert (first.orders, "a fan" in first.cause, first.events[-1].kind) == ([1], True, Kind.HOLD_SET)
    assert views.of("n2").orders == [1]
    assert views.of("n1").orders == ()
    assert orders.read == 1


class CountedOrders(LiveOrders):
    """Counts how often the work orders are read."""

    read = 0

    def current(self) -> WorkOrders:
        self.read += 1
        return super().current()


def test_racks_stand_in_natural_order_the_highest_unit_on_top(context: SiteContext) -> None:
    """Rack 10 follows rack 9; nodes without a place are last. Each tile has its unit, and one without a place has none."""
    node = context.nodes()[0]
    places = [("n1", "R10", 4), ("n2", "R9", 4), ("n3", "", None), ("n4", "R9", 12)]
    fleet = [replace(node, name=name, location=Location(rack, unit)) for name, rack, unit in places]
    found = [(rack.name, [tile.name for tile in rack.tiles]) for rack in racks(fleet, NOW)]
    assert found == [("R9", ["n4", "n2"]), ("R10", ["n1"]), ("", ["n3"])]
    drawn = [tile_html(rack.tiles[0]) for rack in racks(fleet, NOW)]
    assert ['class="unit">U12<' in drawn[0], 'class="unit"' in drawn[2]] == [True, False]


def test_the_service_prints_an_address_and_stops(context: SiteContext) -> None:
    """Really, on a port of this machine: the changes of a node arrive as a server-sent event."""
    stop, address = threading.Event(), []
    entered = threading.Event()

    def ready(given: str) -> None:
        address.append(given)
        entered.set()

    thread = threading.Thread(target=serve, args=(context, "127.0.0.1:0", ready, stop))
    thread.start()
    try:
        assert entered.wait(600)
        with httpx.Client(follow_redirects=True, timeout=600) as client:
            assert "Fleet" in client.get(address[0]).text
            base = address[0].partition("?")[0]
            with client.stream("GET", f"{base}changes?since=0") as stream:
                assert stream.headers["content-type"].startswith("text/event-stream")
                line = next(line for line in stream.iter_lines() if line.startswith("data: "))
        assert {"n1", "n2"} <= json.loads(line.removeprefix("data: ")).keys()
    finally:
        stop.set()
        thread.join(600)
    assert not thread.is_alive()


@pytest.mark.parametrize(
    "listen", ["0.0.0.0:8080", "10.0.0.1:8080", "controller:8080", "127.0.0.1:x", "127.0.0.1:70000"]
)
def test_other_addresses_are_refused_without_a_certificate(context: SiteContext, listen: str) -> None:
    with pytest.raises(UsageError) as refused:
        serve(context, listen, print, threading.Event())
    assert refused.value.where == listen


def test_the_tiles_of_the_largest_fleet_are_kept() -> None:
    """With fewer places than nodes, each page would draw every tile again: the oldest goes as the next one comes."""
    assert tile_html.cache_info().maxsize > 32_768

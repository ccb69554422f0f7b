"""The pages of the fabric, the nights and the work orders, of a journal that readings have filled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import pytest

from clusterctl.edges.clock import CLOCK
from clusterctl.fleet.event import NewEvent, Stream
from clusterctl.fleet.fabric.topology import Fabric
from clusterctl.fleet.incidents.incident import IncidentKind
from clusterctl.fleet.payloads.rma import RmaClosed, RmaOpened
from clusterctl.fleet.payloads.runs import BurnEnded, BurnStarted, NightEnded, NightStarted
from clusterctl.operations import fabric_observation
from clusterctl.operations.context import SiteContext, open_site
from clusterctl.operations.incidents import listed, update
from clusterctl.operations.operation import Control
from clusterctl.ports import Deadline
from clusterctl.steps.cable.link_health import LinkCollector
from clusterctl_burnin.limits.fabric_reading import shipped_fabric_limits
from tests.cabling.bench import plan
from tests.cli import nights
from tests.cli.site_of_three import write
from tests.cli.test_cable_observe import FABRIC, PLAN
from tests.formats.infiniband import printers
from tests.steps.cable.test_link_health import Clock, FakeFabric, end_of
from tests.web.browser import Browser, access

EVIL = "<script>alert(1)</script>"


class Shape(HTMLParser):
    """Every tag that is opened is closed; ids are unique; inline styles and scripts are absent."""

    VOID = frozenset({"meta", "br", "input", "link"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.feed(text)
        assert self.open == []
        assert len(self.ids) == len(set(self.ids))

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        assert "style" not in found
        assert not any(name.startswith("on") for name in found)
        assert tag != "script" or "src" in found
        if "id" in found:
            self.ids.append(found["id"])
        if "href" in found:
            self.links.append(found["href"])
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def observe(context: SiteContext, fabric: Fabric, folder: Path, *, evil: bool = False) -> None:
    text = printers.ibnetdiscover(fabric)
    file = folder / "reading"
    file.write_text(text.replace("node001 mlx5_0", f"node001{EVIL} mlx5_0") if evil else text)
    fabric_observation.run(context, fabric_observation.ObserveRequest(recorded=file), Control())


@pytest.fixture
def context(tmp_path: Path) -> Iterator[SiteContext]:
    site = write(tmp_path)
    (site / "wiring.csv").write_text(PLAN)
    opened = open_site(site)
    yield opened
    opened.journal.close()


@pytest.fixture
def viewer(context: SiteContext, tmp_path: Path) -> Browser:
    """A viewer who has signed in."""
    return signed_in(context, tmp_path)


def signed_in(context: SiteContext, tmp_path: Path) -> Browser:
    browser = Browser(context, access(tmp_path / "access"))
    browser.sign_in("viewer")
    return browser


def page(viewer: Browser, path: str) -> str:
    answer = viewer.get(path)
    assert answer.status_code == 200, answer.text
    Shape(answer.text)
    return answer.text


def test_a_fabric_that_was_never_read(context: SiteContext, viewer: Browser, tmp_path: Path) -> None:
    assert "never read" in page(viewer, "/fabric")


def test_a_missing_cable_is_drawn_listed_and_found(context: SiteContext, viewer: Browser, tmp_path: Path) -> None:
    """As a curve between two switches, as a finding with its remedy, and on the page of each switch."""
    observe(context, Fabric(FABRIC.devices, FABRIC.links[:-1]), tmp_path)
    text = page(viewer, "/fabric")
    assert 'class="curve missing"' in text
    assert "plug in the cable" in text
    assert "6 planned, 5 seen, 5 as planned" in text
    assert "none in the last 90 days" in text
    device = page(viewer, "/fabric/devices/leaf-2")
    assert '<li class="cell missing"><b>5</b>' in device
    assert 'href="/fabric/devices/leaf-1"' in device


def test_search(context: SiteContext, viewer: Browser, tmp_path: Path) -> None:
    """By name, and by what is at the far end of a port; a query that finds nothing is shown as text."""
    observe(context, FABRIC, tmp_path)
    hits = page(viewer, "/fabric?q=leaf-2").partition('id="hits"')[2].partition("</section>")[0]
    assert hits.count("<li>") == 4
    assert ">node003<" in hits
    assert ">node001<" not in hits
    none = page(viewer, "/fabric?q=" + quote(EVIL))
    assert "0 found" in none
    assert EVIL not in none


def test_what_devices_call_themselves_stays_text(context: SiteContext, viewer: Browser, tmp_path: Path) -> None:
    """In the drawing, in the lists, and in the address of the device's page."""
    observe(context, FABRIC, tmp_path, evil=True)
    text = page(viewer, "/fabric")
    assert "&lt;script&gt;alert(1)" in text
    assert EVIL not in text
    for link in Shape(text).links:
        if link.startswith("/fabric/devices/"):
            assert EVIL not in page(viewer, link)


def test_a_changed_reading_is_judged_again(
    context: SiteContext, viewer: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the same service: the drawing is of the last reading."""
    monkeypatch.setattr("clusterctl_web.fabric_page.KEPT_S", 0.0)
    monkeypatch.setattr("clusterctl_web.live_fleet.POLL_S", 0.0)
    observe(context, FABRIC, tmp_path)
    assert "6 planned, 6 seen" in viewer.get("/fabric").text
    observe(context, Fabric(FABRIC.devices, (replace(FABRIC.links[0], width=1), *FABRIC.links[1:])), tmp_path)
    assert "1x" in viewer.get("/fabric").text


def test_counters_over_time(tmp_path: Path) -> None:
    """Bars of the errors of each interval, of the link with errors; the others are counted."""
    opened = open_site(nights.write(tmp_path))
    clock = Clock()
    fabric = FakeFabric(clock)
    collector = LinkCollector(opened.journal, fabric, fabric, shipped_fabric_limits("ndr"), plan())
    for ago, count in ((2, 5), (1, 5), (0, 305)):
        clock.at = CLOCK.now() - timedelta(hours=ago)
        fabric.counts = {end_of(fabric, "node001"): {"SymbolErrorCounter": count}}
        collector.look(Deadline.after(60))
    text = page(signed_in(opened, tmp_path), "/fabric")
    opened.journal.close()
    assert "Counters over time" in text
    assert "300 errors" in text
    assert 'class="spark"' in text


def test_the_last_burn_is_shown(
    context: SiteContext, viewer: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clusterctl_web.fabric_page.KEPT_S", 0.0)
    monkeypatch.setattr("clusterctl_web.live_fleet.POLL_S", 0.0)
    observe(context, FABRIC, tmp_path)
    started = BurnStarted(hosts=("n1", "n2"), rails=(), stage_s=60.0, adaptive=False, limits="x")
    context.journal.append([NewEvent(Stream.RUN, "burn-1", started)])
    assert "on 2 hosts" in page(viewer, "/fabric")
    context.journal.append([NewEvent(Stream.RUN, "burn-1", BurnEnded(reason="hosts were taken"))])
    assert "hosts were taken" in page(viewer, "/fabric")


def test_a_device_that_is_not_there(context: SiteContext, viewer: Browser, tmp_path: Path) -> None:
    assert viewer.get("/fabric/devices/none").status_code == 404


def test_nights_show_what_they_found(context: SiteContext, viewer: Browser, tmp_path: Path) -> None:
    """The newest first, with the nodes that are no longer gold; one that was killed has no end."""
    now = CLOCK.now()
    started = NightStarted(closes=now + timedelta(hours=3), percent=5)
    ended = NightEnded(tested=("n1", "n2"), failed=("n2",), stuck={"n3": EVIL}, ended="the window closed")
    assert "no night of the last 60 days" in page(viewer, "/nights")
    context.journal.append([NewEvent(Stream.RUN, "first", started), NewEvent(Stream.RUN, "first", ended)])
    text = page(viewer, "/nights")
    assert '<a href="/nodes/n2">n2</a>' in text
    assert "the window closed" in text
    assert EVIL not in text


def test_work_orders_are_listed_in_the_order_of_a_walk(context: SiteContext, viewer: Browser, tmp_path: Path) -> None:
    """With part, remedy, and the command that follows the repair."""
    text = page(viewer, "/work-orders")
    assert text.index("Rack A01") < text.index("replace GPU 3") < text.index("clusterctl")
    assert '<a href="/nodes/n2">n2</a>' in text
    assert "actions/repaired" not in text, "a viewer reports no repair"


def test_incidents_lead_to_their_nodes(context: SiteContext, viewer: Browser, tmp_path: Path) -> None:
    """Open ones first; a resolved one is on the whole list, and keeps its page."""
    assert "There is no open one." in page(viewer, "/incidents")
    update(context)
    (one,) = [each for each in listed(context) if each.facts.what is IncidentKind.NODES]
    assert f'<a href="/incidents/{one.state.id}">{one.state.id}</a>' in page(viewer, "/incidents")
    text = page(viewer, f"/incidents/{one.state.id}")
    assert '<a href="/nodes/n2">n2</a>' in text
    assert "2 uncorrectable errors" in text
    assert viewer.get("/incidents/inc-none").status_code == 404


def test_returned_parts_are_listed_with_what_is_late(context: SiteContext, viewer: Browser, tmp_path: Path) -> None:
    """The open ones; with `all` those that are closed as well."""
    assert "There is no open one." in page(viewer, "/rma")
    due = CLOCK.now() - timedelta(days=1)
    opened = RmaOpened(case="4711", reason="2 uncorrectable errors", part="gpu 3", node="n2", due=due)
    context.journal.append([NewEvent(Stream.PART, "1650", opened)])
    text = page(viewer, "/rma")
    assert f"{due:%Y-%m-%d}, late" in text
    assert '<a href="/nodes/n2">n2</a>' in text
    context.journal.append([NewEvent(Stream.PART, "1650", RmaClosed(reason="fitted"))])
    assert "4711" not in page(viewer, "/rma")
    assert "4711" in page(viewer, "/rma?all=1")

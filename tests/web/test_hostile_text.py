"""What machines report stays text on each page: a serial, a name, an event log, a line of a log, an operator's reason."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from clusterctl.fleet.event import Kind, NewEvent, Stream
from clusterctl.fleet.finding import Evidence, Finding, Origin, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.payloads.rma import RmaOpened
from clusterctl.operations.context import SiteContext, open_site
from clusterctl.operations.incidents import listed, update
from tests.cli.site_of_three import quarantined, write
from tests.events import new_event
from tests.steps.fakes import NOW, identified
from tests.web.browser import Browser, access
from tests.web.test_fabric_page import Shape

PATHS = (
    "/",
    "/nodes/n2",
    "/nodes/n1",
    "/parts/1650",
    "/nodes/n2/figures",
    "/work-orders",
    "/incidents",
    "/rma",
    "/nights",
    "/fabric",
)
EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'"
LOG = Evidence("journalctl -k", "10.0.0.2", NOW, Origin.REAL, f"kernel: NVRM: {EVIL}\n".encode())
SEL = Finding(
    check="bmc_log", verdict=Verdict.FAIL, code=Code.GPU_ECC_UNCORRECTABLE, subject=f"SEL entry 7 {EVIL}",
    cause=f"the BMC's log has {EVIL}", remedy=f"replace {EVIL}", serial=EVIL, evidence=(LOG.digest,),
)  # fmt: skip


@pytest.fixture
def context(tmp_path: Path) -> Iterator[SiteContext]:
    """A journal in which everything that a machine can name is hostile."""
    opened = open_site(write(tmp_path))
    opened.journal.store([LOG])
    identified(opened.journal, EVIL, EVIL, "cabled")
    opened.journal.append(quarantined("n2", "burnin", SEL))
    opened.journal.append(quarantined(EVIL, "burnin", SEL))
    opened.journal.append([NewEvent(Stream.PART, "1650", RmaOpened(case=EVIL, reason=EVIL, part=EVIL, node=EVIL))])
    update(opened)
    opened.journal.append([new_event("node", "id-n1", Kind.HOLD_SET, {"reason": EVIL, "until": None})])
    yield opened
    opened.journal.close()


def test_no_page_has_a_tag_of_theirs(context: SiteContext, tmp_path: Path) -> None:
    """Each page parses as ours alone, and its policy lets no other script run."""
    browser = Browser(context, access(tmp_path / "access"))
    browser.sign_in("admin")
    first = listed(context)[0].state.id
    for path in (*PATHS, f"/incidents/{first}", f"/nodes/{quote(EVIL, safe='')}"):
        answer = browser.get(path)
        assert "<script>alert" not in answer.text, path
        assert "<img" not in answer.text, path
        assert "script-src 'self'" in answer.headers["content-security-policy"]
        Shape(answer.text)
    assert "&lt;script&gt;alert(1)" in browser.get("/nodes/n2").text
    assert browser.get("/work-orders").text.count("&lt;script&gt;") > 2


def test_a_log_is_sent_as_plain_text(context: SiteContext, tmp_path: Path) -> None:
    """And a browser may not guess another type."""
    browser = Browser(context, access(tmp_path / "access"))
    browser.sign_in("viewer")
    answer = browser.get(f"/nodes/n2/evidence/{LOG.digest}")
    assert EVIL in answer.text
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_live_changes_are_escaped_too(context: SiteContext) -> None:
    """The tiles that the service sends later come from the same template."""
    from clusterctl_web.live_fleet import LiveFleet
    from clusterctl_web.rendering import tile_html

    _, tiles = LiveFleet(context).changed(0)
    for tile in tiles.values():
        assert "<script>" not in tile_html(tile)
    assert list(context.journal.history(Stream.NODE, "id-n2"))

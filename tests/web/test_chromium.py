"""The pages in a real browser: by keyboard alone, readable for axe-core in light and dark, on wide and narrow screens.

One browser and one service for all tests of this module: they only read.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

from clusterctl.edges.web.accounts import AccountFile
from clusterctl.fleet.access import UserRole
from clusterctl.fleet.event import NewEvent, Stream
from clusterctl.fleet.fabric.topology import Fabric
from clusterctl.fleet.payloads.rma import RmaOpened
from clusterctl.operations.context import open_site
from clusterctl.operations.incidents import update
from clusterctl_web.actions import ACTIONS
from tests.cli.site_of_three import HOT, PROOF, quarantined, write
from tests.cli.test_cable_observe import FABRIC, PLAN
from tests.web.browser import MADE, PASSWORD, QUICK, access
from tests.web.browser import Browser as Asked
from tests.web.served import entered
from tests.web.test_fabric_page import observe
from tests.web.test_hostile_text import CHANGE, JOB_RUN, RUN, jobs, operations

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.chromium,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: run make setup"),
]
PAGES = {
    "/": ("/",),
    "/nodes/{name}": ("/nodes/n2", "/nodes/n1", "/nodes/none"),
    "/nodes/{name}/figures": ("/nodes/n2/figures",),
    "/nodes/{name}/logs": ("/nodes/n1/logs",),
    "/nodes/{name}/bmc-log": ("/nodes/n1/bmc-log",),
    "/nodes/{name}/actions/{action}": tuple(f"/nodes/n2/actions/{name}" for name in ACTIONS),
    "/parts/{serial:path}": ("/parts/1650",),
    "/fabric": ("/fabric", "/fabric?q=leaf"),
    "/fabric/devices/{name:path}": ("/fabric/devices/leaf-2",),
    "/downtime": ("/downtime",),
    "/incidents": ("/incidents", "/incidents?all=1"),
    "/incidents/{name}": ("/incidents/INCIDENT",),
    "/incidents/{name}/actions/{action}": ("/incidents/INCIDENT/actions/resolve",),
    "/jobs": ("/jobs",),
    "/jobs/{job}": ("/jobs/5", f"/jobs/{JOB_RUN}"),
    "/nights": ("/nights",),
    "/plans": ("/plans",),
    "/plans/{name}": (f"/plans/{CHANGE.name}",),
    "/plans/{name}/actions/{action}": (f"/plans/{CHANGE.name}/actions/stop",),
    "/rma": ("/rma",),
    "/runs": ("/runs",),
    "/runs/{run}": (f"/runs/{RUN}",),
    "/work-orders": ("/work-orders",),
    "/sign-in": ("/sign-in",),
}
"""The address of each page with what is looked at there; INCIDENT: the first one."""
NO_PAGES = re.compile(r"/api/|/static/|/changes|/search|/metrics|/alerts|/sign-in/|.*/evidence/")
WAIT_MS = 120_000
"""The longest wait of the browser: on a busy machine a page takes seconds."""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A service of a site with a stopped node, a missing cable and one user."""
    folder = tmp_path_factory.mktemp("chromium")
    site = write(folder)
    (site / "wiring.csv").write_text(PLAN)
    context = open_site(site)
    observe(context, Fabric(FABRIC.devices, FABRIC.links[:-1]), folder)
    returned = RmaOpened(case="4711", reason="2 uncorrectable errors", part="gpu 3", node="n2")
    context.journal.append([NewEvent(Stream.PART, "1650", returned), *operations(), *jobs()])
    context.journal.store([PROOF])
    context.journal.append(quarantined("n2", "burnin", replace(HOT, evidence=(PROOF.digest,))))
    update(context)
    AccountFile(site / "state" / "web", QUICK).add_user("ada", UserRole.OPERATOR, PASSWORD, MADE)
    with entered(context) as found:
        yield found
    context.journal.close()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=WAIT_MS)
        yield browser
        browser.close()


def opened(chromium: Browser, **options: object) -> tuple[Page, list[str]]:
    """A page of a new session, and what its console reports as errors."""
    context = chromium.new_context(**options)
    context.set_default_timeout(WAIT_MS)
    page, errors = context.new_page(), []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    return page, errors


def base(address: str) -> str:
    return address.partition("/?")[0]


def test_each_page_is_looked_at(tmp_path: Path) -> None:
    """A new page is missing below until it is listed."""
    context = open_site(write(tmp_path))
    routes = Asked(context, access(tmp_path / "access")).app.routes
    found = {route.path for route in routes if "GET" in (route.methods or ()) and not NO_PAGES.match(route.path)}
    assert found == PAGES.keys()
    context.journal.close()


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(chromium: Browser, address: str, scheme: str, width: int) -> None:
    """On any page; none is wider than the screen, and the browser reports no error but a refused page."""
    page, errors = opened(chromium, color_scheme=scheme, viewport={"width": width, "height": 900})
    page.goto(address)
    axe, found = Axe(), []
    page.goto(base(address) + "/incidents")
    incident = page.locator("tbody th a").first.inner_text()
    for path in (path.replace("INCIDENT", incident) for paths in PAGES.values() for path in paths):
        page.goto(base(address) + path)
        violations = axe.run(page).response["violations"]
        found += [
            f"{path}: {one['id']}: {one['nodes'][0]['html'][:200]}"
            for one in violations
            if one["impact"] in ("serious", "critical")
        ]
        wide = page.evaluate("document.documentElement.scrollWidth")
        if wide > width:
            found.append(f"{path} is {wide} wide")
    page.context.close()
    assert found == []
    assert [one for one in errors if "the server responded with a status of" not in one] == []


def test_an_order_by_keyboard_alone(chromium: Browser, address: str) -> None:
    """From the node's page to the preview and back; nothing is changed. Each stop of the keyboard is to be seen."""
    page, errors = opened(chromium)
    page.goto(address)
    page.goto(base(address) + "/nodes/n1")
    stops(page, "Hold …")
    page.keyboard.press("Enter")
    page.wait_for_url("**/actions/hold")
    stops(page, "reason")
    page.keyboard.type("a fan rattles")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Yes, do it").wait_for()
    assert stops(page, "Yes, do it")
    assert "n1" in page.locator(".effects").inner_text()
    page.context.close()
    assert errors == []


def stops(page: Page, until: str) -> list[str]:
    """Press Tab until the field or link of this name has the focus; return the stops, each of which has an outline."""
    found: list[str] = []
    while until not in found:
        assert len(found) < 60, found
        page.keyboard.press("Tab")
        name, outline = page.evaluate(
            "[document.activeElement.name || document.activeElement.textContent.trim(),"
            " getComputedStyle(document.activeElement).outlineStyle]"
        )
        assert outline != "none", f"{name} is not seen to have the focus"
        found.append(name)
    return found


def test_from_sign_in_to_the_cause_by_keyboard(chromium: Browser, address: str) -> None:
    """Type user and password, open the stopped node, read why it is not gold: no mouse, and three keys from the list."""
    page, errors = opened(chromium)
    page.goto(base(address) + "/nodes/n1")
    assert page.url.endswith("/sign-in?next=%2Fnodes%2Fn1")
    page.locator("#user").focus()
    page.keyboard.type("ada")
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url("**/nodes/n1")
    page.goto(base(address) + "/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.locator("#filter").focus()
    page.keyboard.type("quarantined")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "tile-n2"
    page.keyboard.press("Enter")
    page.wait_for_url("**/nodes/n2")
    assert "2 uncorrectable errors" in page.locator("section[aria-labelledby=why]").inner_text()
    page.context.close()
    assert errors == []


def test_a_hidden_tile_is_no_stop_of_the_keyboard(chromium: Browser, address: str) -> None:
    """What the filter hides is hidden from each kind of reader; the count of the others is announced."""
    page, _ = opened(chromium)
    page.goto(address)
    page.locator("#filter").fill("gold")
    assert page.locator(".tile:visible").count() == 1
    assert page.locator("#shown").inner_text() == "1 shown"
    page.locator("#filter").fill("quarantined")
    page.locator("#tile-n1").wait_for(state="hidden")
    page.locator("#filter").fill("disk-s1")
    page.locator("#tile-n1").wait_for(state="visible")  # found by its drive
    page.locator("#tile-n2").wait_for(state="hidden")
    assert page.locator("#shown").inner_text() == "1 shown"
    page.context.close()


def test_a_count_shows_its_nodes_alone(chromium: Browser, address: str) -> None:
    """By keyboard; in a large fleet, the stopped nodes of all racks are in sight. The address can be sent to others."""
    page, errors = opened(chromium)
    page.goto(address)
    page.get_by_role("link", name="1 quarantined").focus()
    page.keyboard.press("Enter")
    page.locator("#tile-n1").wait_for(state="hidden")
    assert page.locator("#tile-n2").is_visible()
    assert page.locator("#shown").inner_text() == "1 shown"
    assert page.url.endswith("#q=quarantined")
    page.context.close()
    assert errors == []


def test_raw_output_is_unfolded_below_its_finding(chromium: Browser, address: str) -> None:
    """By keyboard; it is read then, and no earlier."""
    page, errors = opened(chromium)
    page.goto(address)
    page.goto(base(address) + "/nodes/n2")
    raw = page.locator("details.raw")
    assert page.locator("details.raw pre").count() == 0
    raw.locator("summary").focus()
    page.keyboard.press("Enter")
    raw.locator("pre", has_text='{"SerialNumber": "S9"}').wait_for()
    page.context.close()
    assert errors == []


def test_signing_out_by_keyboard(chromium: Browser, address: str) -> None:
    page, _ = opened(chromium)
    page.goto(address)
    page.get_by_role("button", name="Sign out").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/sign-in")
    page.goto(base(address) + "/")
    assert "/sign-in" in page.url
    page.context.close()


def test_a_picture_of_each_page(chromium: Browser, address: str, tmp_path: Path) -> None:
    """The drawing has a square for each device and a curve for the missing cable."""
    page, _ = opened(chromium)
    page.goto(address)
    page.goto(base(address) + "/fabric")
    assert page.locator("svg .tile rect").count() >= 6
    assert page.locator("svg path.curve.missing title").all_inner_texts()
    page.screenshot(path=tmp_path / "fabric.png", full_page=True)
    assert (tmp_path / "fabric.png").stat().st_size > 10_000
    page.context.close()

"""Three broken nodes among eight, as a rehearsal leaves them: on the fleet page each has its cause in sight, without a click."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.operations.context import SiteContext, open_site
from tests.cli.site_of_three import quarantined
from tests.edges.site.ready import write_ready_site
from tests.steps.fakes import identified
from tests.web.one_look import out_of_sight
from tests.web.served import entered

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.chromium,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: run make setup"),
]
WAIT_MS = 120_000
BROKEN = {
    "node003": ("burnin", Code.GPU_ECC_UNCORRECTABLE, "1 of 8 GPUs is missing: gpu 3, serial 1650"),
    "node005": ("install", Code.WRONG_SERIAL, "the machine never booted: power supply 2 has no input"),
    "node007": ("cable", Code.WRONG_SERIAL, "leaf-1 port 7 is connected to node008, expected node007"),
}
"""Causes as of the faults of `make rehearse`: a missing GPU, a machine that never boots, a swapped cable."""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[SiteContext]:
    folder = tmp_path / "site"
    write_ready_site(folder)
    names = [f"node{number:03}" for number in range(1, 9)]
    rows = [f"{name},10.0.0.{at},S{at},A01,{4 * at}" for at, name in enumerate(names, 1)]
    (folder / "bmcs.csv").write_text("\n".join(["name,bmc_address,serial,rack,unit", *rows]) + "\n")
    opened = open_site(folder)
    for at, name in enumerate(names, 1):
        identified(opened.journal, name, f"S{at}", "cabled" if name in BROKEN else "gold")
    for name, (step, code, cause) in BROKEN.items():
        finding = Finding(check=step, verdict=Verdict.FAIL, code=code, cause=cause, remedy="repair it")
        opened.journal.append(quarantined(name, step, finding))
    yield opened
    opened.journal.close()


@pytest.mark.parametrize("width", [1280, 390])
def test_each_broken_node_is_found_with_its_cause_in_one_look(site: SiteContext, width: int) -> None:
    """Its tile is in sight without scrolling, and has name, mark and cause as text that is not cut off."""
    with entered(site) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=WAIT_MS)
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.set_default_timeout(WAIT_MS)
        page.goto(address)
        assert "5 gold" in page.locator("#counts").inner_text()
        stopped = page.locator(".tile.quarantined")
        assert stopped.count() == len(BROKEN)
        assert out_of_sight(page, {name: cause for name, (_, _, cause) in BROKEN.items()}, 900) == []
        browser.close()

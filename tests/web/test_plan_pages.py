"""Plans of rolling changes on the page: waves, nodes, and orders by those who may."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from clusterctl.fleet.access import UserRole
from clusterctl.fleet.event import NewEvent, Stream
from clusterctl.fleet.maintenance.plan import Change, MaintenancePlan, WaveRule
from clusterctl.fleet.payloads.maintenance import MaintenanceOrdered, MaintenanceTurn, PlanStage, Turn
from clusterctl.operations import runs
from clusterctl.operations.context import SiteContext, open_site
from clusterctl.operations.maintenance_status import found
from clusterctl.operations.serial import to_data
from tests.cli.nights import write
from tests.web.browser import Browser, access
from tests.web.test_actions import hidden, send

EVIL = "<script>alert(1)</script>"
PLAN = MaintenancePlan(
    name="driver-580",
    reason=f"driver 580 {EVIL}",
    change=Change(variables={"nvidia_driver_version": "580.95.05"}),
    waves=WaveRule(canary=2, size=1),
)


@pytest.fixture
def context(tmp_path: Path) -> Iterator[SiteContext]:
    """A plan whose canaries have had their turn: n1 is done, n2 failed."""
    opened = open_site(write(tmp_path))
    with closing(opened.journal):
        order = MaintenanceOrdered(plan=to_data(PLAN), waves=(("n1", "n2"), ("n3",)), skipped={"n4": "it is held"})
        turns = [
            MaintenanceTurn(node="n1", to=Turn.DONE),
            MaintenanceTurn(node="n2", to=Turn.FAILED, text=f"GPU 3 {EVIL}"),
        ]
        opened.journal.append([NewEvent(Stream.MAINTENANCE, PLAN.name, one) for one in (order, *turns)])
        yield opened


def browser(context: SiteContext, folder: Path, role: UserRole) -> Browser:
    (folder / role.value).mkdir()
    signed_in = Browser(context, access(folder / role.value))
    signed_in.sign_in(role.value)
    return signed_in


def test_waves_and_nodes(context: SiteContext, tmp_path: Path) -> None:
    """The list has the plan's line; its page has each wave, and the node that failed before the others."""
    viewer = browser(context, tmp_path, UserRole.VIEWER)
    assert "running: 1 of 3 nodes done, 1 failed" in viewer.get("/plans").text
    text = viewer.get("/plans/driver-580").text
    assert '<progress aria-label="Ended in canary" max="2" value="2">2 of 2</progress>' in text
    assert '<progress aria-label="Ended in wave 1" max="1" value="0">0 of 1</progress>' in text
    assert text.index('href="/nodes/n2"') < text.index('href="/nodes/n1"')
    assert "n3" not in text.partition('id="nodes"')[2].partition('id="alone"')[0]
    assert "it is held" in text
    assert EVIL not in text
    assert "actions/" not in text
    assert viewer.get("/plans/other").status_code == 404


def test_pause_and_stop_by_an_operator(context: SiteContext, tmp_path: Path) -> None:
    """Previewed, approved, done once, with the operator's name; an ended plan offers nothing more."""
    operator = browser(context, tmp_path, UserRole.OPERATOR)
    path = "/plans/driver-580/actions"
    page = operator.get("/plans/driver-580").text
    assert [name for name in ("pause", "stop", "resume") if f"{path}/{name}" in page] == ["pause", "stop"]
    shown = send(operator, f"{path}/pause", {"reason": "too warm"})
    assert found(context, PLAN.name).stage is PlanStage.RUNNING
    assert operator.post(f"{path}/pause", hidden(shown)).headers["location"] == "/plans/driver-580"
    progress = found(context, PLAN.name)
    assert (progress.stage, progress.reason) == (PlanStage.PAUSED, "too warm")
    assert send(operator, f"{path}/pause", {}).status_code == 400
    shown = send(operator, f"{path}/stop", {})
    assert operator.post(f"{path}/stop", hidden(shown)).status_code == 303
    assert found(context, PLAN.name).stage is PlanStage.STOPPED
    assert "actions/" not in operator.get("/plans/driver-580").text


def test_only_an_admin_resumes(context: SiteContext, tmp_path: Path) -> None:
    """Its preview lists the nodes that are left; a run of its own would carry it out."""
    path = "/plans/driver-580/actions/resume"
    assert send(browser(context, tmp_path, UserRole.OPERATOR), path, {}).status_code == 403
    admin = browser(context, tmp_path, UserRole.ADMIN)
    shown = send(admin, path, {})
    assert shown.status_code == 200, shown.text
    assert "n3" in shown.text
    assert not runs.read(context)

"""What machines report stays text on each page: a serial, a name, an event log, a line of a log, an operator's reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from clusterctl.fleet.bmc.logs import LogEntry
from clusterctl.fleet.event import Kind, NewEvent, Stream
from clusterctl.fleet.fabric.topology import Fabric
from clusterctl.fleet.finding import Evidence, Finding, Origin, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.maintenance.plan import Change, MaintenancePlan, WaveRule
from clusterctl.fleet.payloads.hardware import PartSeen
from clusterctl.fleet.payloads.incidents import TicketFiled
from clusterctl.fleet.payloads.jobs import JobRunEnded, JobSubmitIntended, JobSubmitted
from clusterctl.fleet.payloads.maintenance import MaintenanceOrdered, MaintenanceTurn, Turn
from clusterctl.fleet.payloads.rma import RmaOpened
from clusterctl.fleet.payloads.runs import NightEnded, NightStarted, RunEnded, RunOrdered
from clusterctl.operations.context import SiteContext, open_site
from clusterctl.operations.incidents import listed, update
from clusterctl.operations.runs import this_process
from clusterctl.operations.serial import to_data
from clusterctl_web.live_fleet import LiveFleet
from clusterctl_web.rendering import tile_html
from tests.cli.nights import SilentOutside
from tests.cli.site_of_three import quarantined, write
from tests.cli.test_cable_observe import FABRIC, PLAN
from tests.events import new_event
from tests.jobs.test_supervision import LOST, ORDERED
from tests.steps.fakes import NOW, identified
from tests.web.browser import Browser, access
from tests.web.test_fabric_page import Shape, observe
from tests.web.test_jobs import ATTRIBUTED
from tests.web.test_node_details import Journald, OneBmc

TAGS = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'"
EVIL = f"{TAGS}\x1b[2J\u202e\u2066"
NODE = EVIL.replace("/", "")
"""A name of a node and of a job: in an address, it is one part of a path."""
UNSEEN = ("\x1b", "\u202e", "\u2066")
LOG_LINE = Evidence("journalctl -k", "10.0.0.2", NOW, Origin.REAL, f"kernel: NVRM: {EVIL}\n".encode())
SEL = Finding(
    check="bmc_log", verdict=Verdict.FAIL, code=Code.GPU_ECC_UNCORRECTABLE, subject=f"SEL entry 7 {EVIL}",
    cause=f"the BMC's log has {EVIL}", remedy=f"replace {EVIL}", serial=EVIL, evidence=(LOG_LINE.digest,),
)  # fmt: skip
CHANGE = MaintenancePlan(
    name="driver", reason=EVIL, change=Change(variables={"x": EVIL}), waves=WaveRule(canary=1, size=1)
)
JOB_RUN, RUN = "run-20261101T120000-aaaa", "20261101T120000-aaaa"
NOT_PAGES = {"/static/{name}", "/changes", "/changes/runs/{run}", "/sign-in", "/sign-in/callback", "/sign-in/provider"}
"""Files of ours, streams (below), and what a user sees before any text of a machine."""


def jobs() -> list[NewEvent]:
    intended = JobSubmitIntended(attempt=1, nodes=("n1", NODE), avoided=(EVIL,), comment=EVIL)
    attributed = replace(ATTRIBUTED, cause=EVIL, action=EVIL, error=EVIL, hosts=(EVIL,), user=EVIL)
    run = (
        replace(ORDERED, script=EVIL, arguments=(EVIL,), heartbeat=EVIL),
        intended,
        JobSubmitted(attempt=1, job=NODE),
        replace(LOST, job=NODE, state=EVIL, hosts=(EVIL,), cause=EVIL),
        JobRunEnded(outcome="asks", reason=EVIL),
    )
    return [NewEvent(Stream.JOB, "5", attributed), *[NewEvent(Stream.JOB, JOB_RUN, one) for one in run]]


def operations() -> list[NewEvent]:
    """A night, a plan, a run and a returned part, each with what others may name."""
    night = (
        NightStarted(closes=NOW + timedelta(hours=3), percent=5),
        NightEnded(tested=("n1", EVIL), failed=(EVIL,), stuck={EVIL: EVIL}, ended=EVIL),
    )
    plan = (
        MaintenanceOrdered(plan=to_data(CHANGE), waves=(("n1",), (EVIL,)), skipped={EVIL: EVIL}),
        MaintenanceTurn(node="n1", to=Turn.FAILED, text=EVIL),
    )
    run = (
        RunOrdered(operation="power", command=EVIL, request={"nodes": [EVIL], "reason": EVIL}, by=this_process()),
        RunEnded(exit_code=1, text=EVIL),
    )
    return [
        *[NewEvent(Stream.RUN, "20261101T000000-bbbb", one) for one in night],
        *[NewEvent(Stream.MAINTENANCE, CHANGE.name, one) for one in plan],
        *[NewEvent(Stream.RUN, RUN, one) for one in run],
        NewEvent(Stream.PART, "1650", PartSeen(component="gpu", slot=EVIL, model=EVIL, node=EVIL, other=EVIL)),
        NewEvent(Stream.PART, "1650", RmaOpened(case=EVIL, reason=EVIL, part=EVIL, node=EVIL)),
    ]


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SiteContext]:
    """A journal in which everything that a machine can name is hostile. n1 has a log, and its BMC, too."""
    folder = tmp_path_factory.mktemp("hostile")
    site = write(folder)
    (site / "wiring.csv").write_text(PLAN)
    opened = open_site(site)
    observe(opened, Fabric(FABRIC.devices, FABRIC.links[:-1]), folder, evil=True)
    opened.journal.store([LOG_LINE])
    identified(opened.journal, NODE, EVIL, "cabled")
    opened.journal.append([*quarantined("n2", "burnin", SEL), *quarantined(NODE, "burnin", SEL)])
    opened.journal.append([*operations(), *jobs()])
    update(opened)
    opened.journal.append(
        [
            *[NewEvent(Stream.INCIDENT, one.state.id, TicketFiled(key=EVIL, url=EVIL, revision=1)) for one in listed(opened)],
            new_event("node", "id-n1", Kind.HOLD_SET, {"reason": EVIL, "until": None}),
            new_event("node", "id-n1", Kind.HOST_KEY_PINNED, {"public": "ssh-ed25519 AAAA"}),
        ]
    )  # fmt: skip
    outside = {"shell": Journald(TAGS.replace('"', "")), "bmcs": OneBmc((LogEntry(EVIL, EVIL, EVIL),))}
    yield replace(opened, connect=lambda settings, _access: SilentOutside(settings, **outside))
    opened.journal.close()


@pytest.fixture
def admin(context: SiteContext, tmp_path: Path) -> Browser:
    browser = Browser(context, access(tmp_path / "access"))
    browser.sign_in("admin")
    return browser


def harmless(answer: httpx.Response, path: str) -> None:
    """No tag and no character of theirs that a browser or a terminal acts on; its policy lets no other script run."""
    text = answer.text
    assert [one for one in UNSEEN if one in text] == [], path
    kind = answer.headers["content-type"].partition(";")[0]
    if kind == "text/html":
        assert "<script>alert" not in text, path
        assert "<img" not in text, path
        Shape(text)
    else:
        assert kind in ("text/plain", "application/json", "text/event-stream"), path
        assert answer.headers["x-content-type-options"] == "nosniff", path
    assert "script-src 'self'" in answer.headers["content-security-policy"]


def paths(context: SiteContext, template: str) -> list[str]:
    """Return the addresses of a route: each of its subjects, hostile names among them."""
    evil = quote(NODE, safe="")
    incidents = [one.state.id for one in listed(context)]
    subjects = {
        "nodes": ["n1", "n2", evil],
        "parts": ["1650", quote(EVIL, safe="")],
        "incidents": [*incidents, evil],
        "plans": [CHANGE.name, evil],
        "runs": [RUN, evil],
        "jobs": ["5", JOB_RUN, evil],
        "devices": ["leaf-2", evil],
    }
    kind = next((word for word in subjects if f"/{word}/{{" in template), "")
    filled = [template.replace(part, name) for part in ("{name}", "{name:path}", "{serial:path}", "{run}", "{job}", "{node}")
              if part in template for name in subjects[kind]]  # fmt: skip
    filled = [path.replace("{digest}", LOG_LINE.digest).replace("{action}", "hold") for path in filled or [template]]
    return [*filled, f"{template}?q={evil}&all=1"] if "{" not in template else filled


def test_no_page_and_no_document_has_a_tag_of_theirs(context: SiteContext, admin: Browser) -> None:
    """Each address that the application answers, with hostile subjects: a new page is in it by itself."""
    templates = {route.path for route in admin.app.routes if "GET" in (route.methods or ())} - NOT_PAGES
    assert len(templates) >= 50
    pages = []
    for path in (path for template in sorted(templates) for path in paths(context, template)):
        assert "{" not in path, path
        answer = admin.get(path)
        assert answer.status_code < 500 or path.startswith("/api/"), (path, answer.text)
        if path.partition("?")[0] != "/metrics":
            harmless(answer, path)
        pages += [path] if answer.status_code == 200 else []
    assert {"/nodes/n1/logs", "/nodes/n1/bmc-log", "/jobs/5", "/plans/driver", "/nights", f"/runs/{RUN}"} <= set(pages)


def test_each_kind_of_hostile_text_is_shown(context: SiteContext, admin: Browser) -> None:
    """As text: without it the test above would prove nothing."""
    first = listed(context)[0].state.id
    for path in (
        *("/", "/nodes/n2", "/nodes/n1", "/nodes/n1/logs", "/nodes/n1/bmc-log", "/parts/1650", "/work-orders", "/rma"),
        *("/incidents", f"/incidents/{first}", "/nights", "/plans/driver", "/jobs", "/jobs/5", "/runs"),
        *(f"/runs/{RUN}", f"/jobs/{JOB_RUN}", "/fabric", f"/nodes/{quote(NODE, safe='')}"),
    ):
        text = admin.get(path).text
        assert "&lt;script&gt;alert(1)" in text, path
    assert "\\x1b[2J\\u202e" in admin.get("/nodes/n2").text


def test_what_is_sent_back_in_a_form_stays_text(admin: Browser) -> None:
    """The form of an order, its refusal and its preview."""
    for node in ("n1", quote(NODE, safe="")):
        for fields in ({}, {"reason": EVIL}, {"reason": TAGS}, {"reason": "a\u034fb"}):
            path = f"/nodes/{node}/actions/release"
            answer = admin.post(path, {**fields, "csrf": admin.csrf("/")})
            assert answer.status_code in (200, 400, 404)
            harmless(answer, path)


def test_a_log_is_sent_as_plain_text(admin: Browser) -> None:
    """And a browser may not guess another type."""
    answer = admin.get(f"/nodes/n2/evidence/{LOG_LINE.digest}")
    assert TAGS in answer.text
    assert answer.headers["content-type"].startswith("text/plain")
    harmless(answer, "evidence")


def test_live_changes_are_escaped_too(context: SiteContext) -> None:
    """The tiles that the service sends later come from the same template."""
    _, tiles = LiveFleet(context).changed(0)
    for tile in tiles.values():
        html = tile_html(tile)
        assert "<script>" not in html
        assert not any(one in html for one in UNSEEN)
    assert list(context.journal.history(Stream.NODE, "id-n2"))

"""What is ordered on the page: previewed, approved, done once, by those who may, with their names in the journal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from jsonschema import Draft202012Validator

from clusterctl.edges.web.accounts import AccountFile
from clusterctl.fleet.access import UserRole
from clusterctl.fleet.event import Kind, Stream
from clusterctl.operations.context import SiteContext, open_site
from clusterctl.operations.incidents import listed, update
from clusterctl.operations.runs import RunState
from clusterctl_web.actions import ACTIONS
from clusterctl_web.openapi import document
from lab.tests.lab_kit import eventually
from tests.busy_site import PATIENCE_S, Place, busy_site
from tests.cli.site_of_three import HOT, quarantined, write
from tests.events import new_event
from tests.steps.fakes import identified
from tests.web.browser import MADE, Browser, access

EVIL = "<script>alert(1)</script>"
_HIDDEN = re.compile(r'<input type="hidden" name="([a-z_]+)" value="([^"]*)">')


@pytest.fixture
def own(tmp_path: Path) -> Iterator[SiteContext]:
    """A site that the test changes: n1 gold, n2 in quarantine at burn-in, n3 never touched."""
    opened = open_site(write(tmp_path))
    with closing(opened.journal):
        yield opened


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A site with one machine, discovered, whose BMC is busy."""
    with busy_site(tmp_path) as found:
        context = found.open()
        with closing(context.journal):
            identified(context.journal, "n1", "S1")
            context.describe()
        yield found


def signed_in(context: SiteContext, folder: Path, role: UserRole) -> Browser:
    users = folder / role.value
    users.mkdir(parents=True)
    browser = Browser(context, access(users))
    browser.sign_in(role.value)
    return browser


def send(browser: Browser, path: str, fields: Mapping[str, str]) -> httpx.Response:
    return browser.post(path, {**fields, "csrf": browser.csrf("/")})


def hidden(answer: httpx.Response) -> dict[str, str]:
    """The fields of the form that asks for the approval."""
    return dict(_HIDDEN.findall(answer.text))


def events(context: SiteContext, name: str, kind: Kind) -> list[str]:
    """The actors of the node's events of this kind."""
    history = context.journal.history(Stream.NODE, context.node(name).id)
    return [event.actor for event in history if event.kind is kind]


@pytest.mark.parametrize("role", UserRole)
def test_each_role_is_offered_what_it_may_order(own: SiteContext, tmp_path: Path, role: UserRole) -> None:
    """A viewer nothing, an operator no waiver and no power, an admin all; what is not offered is refused, too."""
    browser = signed_in(own, tmp_path, role)
    text = browser.get("/nodes/n2").text
    seq = own.journal.health().last_seq
    for action in ACTIONS.values():
        allowed = role.includes(action.role)
        path = f"/nodes/n2/actions/{action.name}"
        assert (path in text) is allowed
        assert browser.get(path).status_code == (200 if allowed else 403)
        if not allowed:
            fields = {"reason": "a test", "approved": "0" * 64, "order": "on", "check": "gpu_ecc", "until": "1d"}
            for target in (path, f"/api/v1{path}"):
                assert send(browser, target, fields).status_code == 403, target
    assert own.journal.health().last_seq == seq


def test_the_roles_are_those_of_the_site_s_rule() -> None:
    """A waiver and power need an admin."""
    admin = {action.name for action in ACTIONS.values() if action.role is UserRole.ADMIN}
    assert admin == {"waive", "power"}
    assert {action.name for action in ACTIONS.values() if action.role is UserRole.OPERATOR} == {
        "hold", "release", "repaired", "quarantine", "revalidate",
    }  # fmt: skip


def test_a_hold_is_previewed_approved_and_done_once(own: SiteContext, tmp_path: Path) -> None:
    """The preview changes nothing; the approval does it, as the user; the same form sent twice does it once."""
    browser = signed_in(own, tmp_path, UserRole.OPERATOR)
    shown = send(browser, "/nodes/n1/actions/hold", {"reason": "a fan rattles"})
    assert shown.status_code == 200
    assert "leaves the pool" in shown.text or "no step touches it" in shown.text
    assert events(own, "n1", Kind.HOLD_SET) == []
    fields = hidden(shown)
    for _ in range(2):
        answer = browser.post("/nodes/n1/actions/hold", fields)
        assert (answer.status_code, answer.headers["location"]) == (303, "/nodes/n1")
    assert events(own, "n1", Kind.HOLD_SET) == ["operator"]
    assert "a fan rattles" in browser.get("/nodes/n1").text


def test_a_preview_that_has_changed_is_shown_again(own: SiteContext, tmp_path: Path) -> None:
    """Between preview and approval another step stopped the node: nothing is done, status 409, the input is kept."""
    browser = signed_in(own, tmp_path, UserRole.OPERATOR)
    shown = send(browser, "/nodes/n2/actions/release", {"reason": "a new GPU"})
    own.journal.append(quarantined("n2", "configure", HOT))
    answer = browser.post("/nodes/n2/actions/release", hidden(shown))
    assert answer.status_code == 409, answer.text
    assert "a new GPU" in answer.text
    assert events(own, "n2", Kind.NODE_RELEASED) == []


def test_a_work_order_is_ticked_off_with_the_new_serial(own: SiteContext, tmp_path: Path) -> None:
    """The list of work orders leads to the form; the node goes back to its step, the history has part and serial."""
    browser = signed_in(own, tmp_path, UserRole.OPERATOR)
    assert 'href="/nodes/n2/actions/repaired"' in browser.get("/work-orders").text
    assert send(browser, "/nodes/n2/actions/repaired", {"serial": "1999"}).status_code == 400
    shown = send(browser, "/nodes/n2/actions/repaired", {"done": "GPU 3 replaced", "serial": "1999"})
    assert browser.post("/nodes/n2/actions/repaired", hidden(shown)).status_code == 303
    assert events(own, "n2", Kind.NODE_RELEASED) == ["operator"]
    assert "repaired: GPU 3 replaced; new part has serial 1999" in browser.get("/nodes/n2").text
    assert "actions/repaired" not in browser.get("/work-orders").text
    reported = "repair reported of n2, gpu 3: repaired: GPU 3 replaced; new part has serial 1999; serial 1999 for 1650"
    for serial in ("1650", "1999"):
        assert reported in [str(event.payload) for event in own.journal.history(Stream.PART, serial)]
        assert "GPU 3 replaced" in browser.get(f"/parts/{serial}").text


def test_a_node_that_is_stopped_without_quarantine_is_ticked_off(own: SiteContext, tmp_path: Path) -> None:
    """Its work order has the same form; the node goes on, and the order is gone."""
    browser = signed_in(own, tmp_path, UserRole.OPERATOR)
    shown = send(browser, "/nodes/n2/actions/release", {"reason": "x"})
    assert browser.post("/nodes/n2/actions/release", hidden(shown)).status_code == 303
    stop = {"step": "burnin", "cause": "no counters", "remedy": "reseat it", "verdict": "inconclusive"}
    own.journal.append([new_event("node", "id-n2", Kind.NODE_HELD, stop)])
    assert 'href="/nodes/n2/actions/repaired"' in browser.get("/work-orders").text
    shown = send(browser, "/nodes/n2/actions/repaired", {"done": "reseated", "part": "mlx5_0"})
    assert browser.post("/nodes/n2/actions/repaired", hidden(shown)).status_code == 303
    assert events(own, "n2", Kind.NODE_REPAIR_REPORTED) == ["operator"]
    assert "actions/repaired" not in browser.get("/work-orders").text


def test_release_quarantine_and_waive_by_the_page(own: SiteContext, tmp_path: Path) -> None:
    """Each is in the journal with the user's name."""
    browser = signed_in(own, tmp_path, UserRole.ADMIN)
    steps = (
        ("n2", "waive", {"check": "gpu_ecc", "part": "gpu 3", "reason": "a known one", "until": "2d"}, Kind.WAIVER_GRANTED),
        ("n2", "release", {"reason": "replaced"}, Kind.NODE_RELEASED),
        ("n1", "quarantine", {"reason": "it smells"}, Kind.NODE_QUARANTINED),
    )  # fmt: skip
    for node, action, fields, kind in steps:
        path = f"/nodes/{node}/actions/{action}"
        answer = browser.post(path, hidden(send(browser, path, fields)))
        assert answer.status_code == 303, answer.text
        assert events(own, node, kind)[-1] == "admin"


def test_an_approval_holds_as_long_as_its_reader_takes(own: SiteContext, tmp_path: Path) -> None:
    """`2d` is a moment from the preview on: a minute later it would be another one, and the approval would not fit."""
    browser = signed_in(own, tmp_path, UserRole.OPERATOR)
    path = "/nodes/n1/actions/hold"
    asked = hidden(send(browser, path, {"reason": "a fan", "until": "2d"}))
    moment = datetime.fromisoformat(asked["until"])
    assert timedelta(days=2, hours=-1) < moment - datetime.now(UTC) <= timedelta(days=2)
    assert browser.post(path, asked).status_code == 303
    assert own.node("n1").hold.until == moment


def test_wrong_input_is_reported_above_the_form(own: SiteContext, tmp_path: Path) -> None:
    """Status 400, what is wrong, and the values that were typed; hostile text stays text."""
    browser = signed_in(own, tmp_path, UserRole.ADMIN)
    for path, fields in (
        ("/nodes/n1/actions/hold", {"reason": ""}),
        ("/nodes/n1/actions/hold", {"reason": "x", "until": EVIL}),
        ("/nodes/n1/actions/power", {"reason": "x", "order": "explode"}),
        ("/nodes/n1/actions/release", {"reason": EVIL}),
        ("/nodes/n1/actions/hold", {"reason": "x" * 1001}),
    ):
        answer = send(browser, path, fields)
        assert answer.status_code == 400, path
        assert 'role="alert"' in answer.text
        assert EVIL not in answer.text
    assert send(browser, "/nodes/n1/actions/explode", {"reason": "x"}).status_code == 400
    assert send(browser, "/nodes/none/actions/hold", {"reason": "x"}).status_code == 400
    assert EVIL not in send(browser, "/nodes/n1/actions/hold", {"reason": EVIL}).text


def test_a_revalidation_that_may_write_to_a_disk_needs_an_admin(own: SiteContext, tmp_path: Path) -> None:
    """n2 is measured again from burn-in on by an operator; with a GPU repaired it starts at discover, which leads to
    install.
    """
    operator, admin = (signed_in(own, tmp_path, role) for role in (UserRole.OPERATOR, UserRole.ADMIN))
    path = "/nodes/n2/actions/revalidate"
    burnin = {"reason": "seated again", "partners": "n1"}
    opened = {"parts": "gpu3", "partners": "n1"}
    assert "burnin" in send(operator, path, burnin).text
    assert send(operator, path, opened).status_code == 403
    shown = send(admin, path, opened)
    assert shown.status_code == 200
    assert "install" in shown.text
    approved = {"approved": hidden(shown)["approved"], "key": "k", **opened}
    assert send(operator, path, approved).status_code == 403
    own.journal.append(quarantined("n2", "discover", HOT))
    assert send(operator, path, burnin).status_code == 403, "what stopped it lies before install"


def test_power_runs_detached_once_and_outlives_the_service(place: Place, tmp_path: Path) -> None:
    """The form sent twice orders one run, as the user. It goes on without the service that ordered it, is followed,
    cancelled and retried on its page; an operator may not retry it.
    """
    context = place.open()
    with closing(context.journal):
        browser = signed_in(context, tmp_path, UserRole.ADMIN)
        path = "/nodes/n1/actions/power"
        fields = hidden(send(browser, path, {"order": "on", "reason": EVIL}))
        first, second = (browser.post(path, {**fields, "reason": EVIL}) for _ in range(2))
        assert first.status_code == 303, first.text
        target = first.headers["location"]
        assert second.headers["location"] == target
        (record,) = place.runs()
        assert (record.actor, record.command, record.state) == ("admin", "power", RunState.RUNNING)

        again = signed_in(context, tmp_path / "again", UserRole.ADMIN)  # another start of the service
        shown = again.get(target)
        assert EVIL not in shown.text
        assert "running" in shown.text
        assert record.name in again.get("/runs").text
        operator = signed_in(context, tmp_path / "operator", UserRole.OPERATOR)
        assert send(again, f"{target}/cancel", {}).status_code == 303
        record = place.until(record.name, RunState.ENDED)
        assert (record.exit_code, record.cancelled_by) == (130, "admin")
        assert send(operator, f"{target}/retry", {}).status_code == 403
        retry = send(again, f"{target}/retry", {})
        assert retry.status_code == 200
        ordered = again.post(f"{target}/retry", hidden(retry))
        assert ordered.status_code == 303, ordered.text
        assert place.find(ordered.headers["location"].removeprefix("/runs/")).earlier == record.name


def test_the_api_previews_and_orders_with_a_token(own: SiteContext, tmp_path: Path) -> None:
    """Without `approved` a preview and its digest; with it the result, once per `Idempotency-Key`. Errors are JSON."""
    browser = Browser(own, access(tmp_path))
    file = browser.access.accounts
    assert isinstance(file, AccountFile)
    later = datetime.now(UTC) + timedelta(days=1)
    tokens = {role: file.add_token(role.value, role, "root", MADE, later) for role in UserRole}

    def ask(role: UserRole, body: object, **headers: str) -> httpx.Response:
        sent = {"Authorization": f"Bearer {tokens[role]}", **headers}
        return browser.send("POST", "/api/v1/nodes/n1/actions/hold", json=body, headers=sent)

    assert ask(UserRole.VIEWER, {"reason": "x"}).status_code == 403
    preview = ask(UserRole.OPERATOR, {"reason": "a fan"})
    assert preview.status_code == 200
    assert preview.json()["preview"]["effects"][0]["node"] == "n1"
    approved = {"reason": "a fan", "approved": preview.json()["digest"]}
    assert ask(UserRole.OPERATOR, {**approved, "reason": "a fan", "until": "1d"}).status_code == 409
    assert ask(UserRole.OPERATOR, {**approved, "reason": "another fan"}).status_code == 409
    answers = [ask(UserRole.OPERATOR, approved, **{"Idempotency-Key": "one"}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()
    assert events(own, "n1", Kind.HOLD_SET) == ["token:operator"]
    for wrong in ([], {"reason": 1}, {"reason": "x", "colour": "red"}, {}):
        answer = ask(UserRole.OPERATOR, wrong)
        assert answer.status_code == 400, wrong
        assert answer.json()["error"].keys() == {"kind", "message", "where", "remedy"}
    bearer = {"Authorization": f"Bearer {tokens[UserRole.VIEWER]}"}
    assert browser.get("/api/v1/runs", headers=bearer).json() == {"runs": []}
    assert browser.get("/api/v1/runs/none", headers=bearer).json()["error"]["kind"] == "usage"


def test_an_incident_is_resolved_by_page_and_api(own: SiteContext, tmp_path: Path) -> None:
    """An operator's button, a preview, then the operator's name in the history; a viewer has no button and is refused."""
    update(own)
    (found,) = listed(own)
    home = f"/incidents/{found.state.id}"
    path = f"{home}/actions/resolve"
    viewer, operator = (signed_in(own, tmp_path, role) for role in (UserRole.VIEWER, UserRole.OPERATOR))
    assert path not in viewer.get(home).text
    assert send(viewer, f"/api/v1{path}", {"reason": "x"}).status_code == 403
    assert path in operator.get(home).text
    assert send(operator, path, {"reason": ""}).status_code == 400
    shown = send(operator, path, {"reason": "a known risk"})
    assert "no new incident is opened" in shown.text
    assert listed(own)
    assert send(operator, path, hidden(shown)).headers["location"] == home
    assert listed(own) == ()
    text = operator.get(home).text
    assert "by operator: a known risk" in text
    assert "its end was not seen yet" in text
    assert path not in text
    answer = operator.get(f"/api/v1{home}").json()
    assert (answer["resolved_by"], answer["still_seen"]) == ("operator", True)
    assert operator.post(f"/api/v1{path}", {}, headers={"X-CSRF-Token": operator.csrf("/")}).status_code == 400


def test_a_run_is_followed_by_events_until_it_ends(tmp_path: Path) -> None:
    """State, progress and log arrive as server-sent events; the stream ends with the run. The log stays text."""
    with busy_site(tmp_path) as place:
        record = place.order()
        assert eventually(lambda: place.works(record.name), PATIENCE_S)
        context = place.open()
        with closing(context.journal):
            browser = signed_in(context, tmp_path, UserRole.VIEWER)
            log = place.folder / "state" / "logs" / f"{record.name}.log"
            with log.open("a") as file:
                file.write(f"{EVIL}\n")
            text = browser.get(f"/runs/{record.name}").text
            assert EVIL not in text
            assert "discover runs" in text
            shown = browser.get(f"/api/v1/runs/{record.name}").json()
            schema = {"$ref": "#/components/schemas/RunDetails", "components": document()["components"]}
            Draft202012Validator(schema).validate(shown)
            assert record.process is not None
            place.end()
            place.until(record.name, RunState.LOST)
            stream = browser.get(f"/changes/runs/{record.name}")
            assert stream.headers["content-type"].startswith("text/event-stream")
            assert '"state": "lost"' in stream.text
            assert "discover runs" in stream.text
            assert "<button" not in browser.get(f"/runs/{record.name}").text.partition("<main")[2], (
                "a viewer reads only"
            )

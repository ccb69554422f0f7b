"""Alertmanager's webhook: who may post, what is refused, and what becomes of a post.

The post has the form of https://prometheus.io/docs/alerting/latest/configuration/#webhook_config.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from clusterctl.fleet.access import UserRole
from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.event import NewEvent, Stream
from clusterctl.fleet.incidents.signals import MOST_MEMBERS
from clusterctl.fleet.payloads.hardware import BadLinks, FabricLinksJudged
from clusterctl.formats.alertmanager import LARGEST, parse_alerts
from clusterctl.operations import incidents
from clusterctl.operations.context import SiteContext, open_site
from tests.cli.site_of_three import write
from tests.web.browser import MADE, Browser, access

DONE = {"unread": 0, "truncated": 0}
EVIL = "<script>alert(1)</script>\x1b[31m"


def alert(fingerprint: str, *, status: str = "firing", **labels: str) -> dict[str, Any]:
    return {
        "status": status,
        "labels": {"alertname": "IbLinkFlapping", "severity": "warning", **labels},
        "annotations": {"summary": f"a link flaps {EVIL}", "runbook": "docs/how-to/monitoring.md#iblinkflapping"},
        "startsAt": "2026-11-27T19:00:00.123456789Z",
        "endsAt": "0001-01-01T00:00:00Z",
        "generatorURL": "http://prometheus.example:9090/graph",
        "fingerprint": fingerprint,
    }


def post_of(*alerts: dict[str, Any], group: str = '{}:{alertname="IbLinkFlapping"}') -> bytes:
    return json.dumps(
        {
            "version": "4",
            "groupKey": group,
            "truncatedAlerts": 0,
            "status": "firing",
            "receiver": "clusterctl",
            "groupLabels": {"alertname": "IbLinkFlapping"},
            "commonLabels": {},
            "commonAnnotations": {},
            "externalURL": "http://alertmanager.example:9093",
            "alerts": list(alerts),
        }
    ).encode()


@pytest.fixture
def context(tmp_path: Path) -> Iterator[SiteContext]:
    opened = open_site(write(tmp_path))
    yield opened
    opened.journal.close()


def browser(context: SiteContext, tmp_path: Path, role: UserRole = UserRole.OPERATOR) -> Browser:
    """A client with a token of this role."""
    granted = access(tmp_path)
    secret = granted.accounts.add_token("alertmanager", role, "root", MADE, MADE + timedelta(days=36500))
    return Browser(context, granted, headers={"Authorization": f"Bearer {secret}", "Content-Type": "application/json"})


def open_alerts(context: SiteContext) -> list[tuple[str, str, int]]:
    found = [one.facts for one in incidents.listed(context) if one.facts.what.value == "alert"]
    return [(facts.code, facts.place, len(facts.active)) for facts in found]


def test_alerts_become_one_incident_until_all_are_resolved(context: SiteContext, tmp_path: Path) -> None:
    """A post that is repeated changes nothing; an alert of a node of the site names it."""
    hook = browser(context, tmp_path)
    firing = post_of(alert("aa01", node="n1"), alert("aa02", node="n9", instance="10.0.0.9:9100"))
    assert hook.send("POST", "/alerts", content=firing).json() == DONE | {"posted": 2, "changed": 2}
    assert hook.send("POST", "/alerts", content=firing).json() == DONE | {"posted": 2, "changed": 0}
    assert open_alerts(context) == [("IbLinkFlapping", "site", 2)]
    (found,) = [one for one in incidents.listed(context) if one.facts.what.value == "alert"]
    assert {member.node for member in found.facts.members} == {"n1", ""}
    assert "\x1b" not in found.facts.cause
    assert hook.send("POST", "/alerts", content=post_of(alert("aa01", node="n1", status="resolved"))).status_code == 200
    assert open_alerts(context) == [("IbLinkFlapping", "10.0.0.9:9100", 1)]
    assert len(incidents.listed(context, resolved=True)) == 2  # one of n2's quarantine
    assert hook.send("POST", "/alerts", content=post_of(alert("aa02", status="resolved"))).json()["changed"] == 1
    assert open_alerts(context) == []


def test_an_alert_about_judged_links_opens_no_second_incident(context: SiteContext, tmp_path: Path) -> None:
    """LinkBitErrors comes from the journal's last judgement, whose links have an incident; without one it is an alert."""
    hook, judged = browser(context, tmp_path), alert("aa01", alertname="LinkBitErrors", rack="A07")
    hook.send("POST", "/alerts", content=post_of(judged, group='{}:{alertname="LinkBitErrors"}'))
    assert open_alerts(context) == [("LinkBitErrors", "A07", 1)]
    bad = BadLinks(kind="bit_errors", verdict="fail", cause="c", action="a", rack="A07", ends=("n1 mlx5_0", "leaf-1/1"))
    judgement = FabricLinksJudged(verdict="fail", links=64, bad=1, found=(bad,))
    context.journal.append([NewEvent(Stream.FABRIC, "links", judgement)])
    incidents.update(context)
    found = [one.facts for one in incidents.listed(context) if one.facts.what.value in ("alert", "links")]
    assert [(facts.what.value, facts.code, facts.place) for facts in found] == [("links", "bit_errors", "A07")]


def test_only_a_token_of_an_operator_may_post(context: SiteContext, tmp_path: Path) -> None:
    """Neither a viewer's token, nor a session, nor no one; nothing is written."""
    firing = post_of(alert("aa01"))
    assert browser(context, tmp_path / "a", UserRole.VIEWER).send("POST", "/alerts", content=firing).status_code == 403
    stranger = Browser(context, access(tmp_path / "b"))
    assert stranger.send("POST", "/alerts", content=firing).status_code == 401
    assert stranger.sign_in("admin").status_code == 303
    assert stranger.post("/alerts", {"csrf": stranger.csrf("/")}).status_code == 403
    assert browser(context, tmp_path / "c").get("/alerts").status_code == 405
    assert open_alerts(context) == []


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 400),
        (b"[]", 400),
        (b'{"version": "3"}', 400),
        (post_of({"status": "firing"}), 400),
        (post_of(alert("../x")), 400),
        (post_of(alert("aa01") | {"startsAt": "yesterday"}), 400),
    ],
)
def test_what_is_no_post_is_refused(context: SiteContext, tmp_path: Path, content: bytes, status: int) -> None:
    """With 4xx, which Alertmanager does not repeat; nothing is written."""
    assert browser(context, tmp_path).send("POST", "/alerts", content=content).status_code == status
    assert open_alerts(context) == []


def test_a_bad_alert_takes_no_other_with_it(context: SiteContext, tmp_path: Path) -> None:
    """The answer counts what was not read. An alert without a name is one: Alertmanager takes it from other clients."""
    bad = [{"status": "firing"}, alert("../x"), alert("aa09") | {"startsAt": "yesterday"}, "x", None]
    unnamed = alert("aa02", node="n1")
    del unnamed["labels"]["alertname"]
    content = post_of(*bad, alert("aa01", node="n1"), unnamed)
    found = browser(context, tmp_path).send("POST", "/alerts", content=content)
    assert (found.status_code, found.json()) == (200, {"posted": 2, "changed": 2, "unread": 5, "truncated": 0})
    assert sorted(open_alerts(context)) == [("IbLinkFlapping", "n1", 1), ("alert without a name", "n1", 1)]


def test_a_post_has_any_number_of_alerts(context: SiteContext, tmp_path: Path) -> None:
    """Alertmanager repeats a post that is refused for ever, and no operator would learn of its alerts."""
    content = post_of(*(alert(f"aa{number:05}") for number in range(1100)))
    assert len(content) < LARGEST
    found = browser(context, tmp_path).send("POST", "/alerts", content=content).json()
    assert (found["posted"], found["changed"]) == (1100, 1100)
    assert open_alerts(context) == [("IbLinkFlapping", "site", MOST_MEMBERS)]


def test_many_small_alerts_are_within_the_limits() -> None:
    """The bytes are the limit of a post, not its values."""
    small = {"status": "firing", "labels": {}, "annotations": {}, "startsAt": "2026-11-27T19:00:00Z"}
    content = post_of(*(small | {"fingerprint": f"{number:06}"} for number in range(10_000)))
    assert len(content) < LARGEST
    assert len(parse_alerts(content).alerts) == 10_000


def test_a_post_that_is_too_large_is_an_incident(context: SiteContext, tmp_path: Path) -> None:
    """One, however often it is repeated, with what to do; the other posts are taken."""
    hook = browser(context, tmp_path)
    for _ in range(2):
        refused = hook.send("POST", "/alerts", content=b"x" * (LARGEST + 1))
        assert refused.status_code == 413
        assert "max_alerts" in refused.json()["error"]["remedy"]
    (found,) = [one.facts for one in incidents.listed(context) if one.facts.what.value == "alert"]
    assert (found.code, found.severity.value) == ("AlertPostTooLarge", "critical")
    assert "max_alerts" in found.remedy
    hook.send("POST", "/alerts", content=post_of(alert("aa01", node="n1")))
    assert len(open_alerts(context)) == 2


def test_a_post_that_lacks_alerts_is_counted(context: SiteContext, tmp_path: Path) -> None:
    content = json.dumps(json.loads(post_of(alert("aa01"))) | {"truncatedAlerts": 7}).encode()
    assert browser(context, tmp_path).send("POST", "/alerts", content=content).json()["truncated"] == 7


def test_two_alerts_of_one_rack_have_its_place(context: SiteContext, tmp_path: Path) -> None:
    hook = browser(context, tmp_path)
    hook.send("POST", "/alerts", content=post_of(alert("a1", rack="A07"), alert("a2", rack="A07", severity="critical")))
    (found,) = [one.facts for one in incidents.listed(context) if one.facts.what.value == "alert"]
    assert (found.place, found.severity.value) == ("A07", "critical")


@pytest.mark.parametrize("content", [b"\xff", b"{" * 2000, b'{"version": "4", "groupKey": 1, "alerts": []}'])
def test_garbage_is_a_parse_error(content: bytes) -> None:
    with pytest.raises(ParseError):
        parse_alerts(content)

"""What a node's page has on demand: logs of the node and its BMC, figures, the history of a part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import pytest
from jsonschema import Draft202012Validator

from clusterctl.fleet.bmc.logs import LogEntry
from clusterctl.fleet.codec import report_to_data
from clusterctl.fleet.errors import UnreachableError
from clusterctl.fleet.event import Kind, NewEvent, Stream
from clusterctl.fleet.finding import Observed, Origin, Report, passed
from clusterctl.fleet.payloads.hardware import PartSeen
from clusterctl.fleet.quantity import Quantity, at_least
from clusterctl.operations.context import SiteContext, open_site
from clusterctl.ports import BmcAddress, Deadline, HostAddress, Ran
from clusterctl_web.openapi import BASE, document
from tests.cli.nights import SilentOutside
from tests.cli.site_of_three import write
from tests.events import new_event
from tests.web.browser import Browser, access
from tests.web.test_api import undocumented

EVIL = "<script>alert(1)</script>\x1b[2J"
LINE = '{{"__REALTIME_TIMESTAMP": "{at}", "MESSAGE": "{text}", "_TRANSPORT": "kernel", "PRIORITY": "3"}}\n'


@dataclass
class Journald:
    """A host whose journal has one line: `text`, in each window."""

    text: str = ""
    asked: list[Sequence[str]] = field(default_factory=list)

    def run(self, host: HostAddress, argv: Sequence[str], stdin: bytes, deadline: Deadline) -> Observed[Ran]:
        self.asked.append(argv)
        since = next((word for word in argv if word.startswith("--since=@")), None)
        if since is None:
            return Observed(Ran(exit_status=0, stdout="", stderr="", seconds=0.1), ())
        at = int(since.partition("@")[2]) * 1_000_000 + 5_000_000
        return Observed(Ran(exit_status=0, stdout=LINE.format(at=at, text=self.text), stderr="", seconds=0.1), ())


@dataclass
class OneBmc:
    """Opens itself; its log has `entries`, or it does not answer."""

    entries: tuple[LogEntry, ...] | None = ()

    def open(self, address: BmcAddress, deadline: Deadline) -> OneBmc:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def event_log(self, deadline: Deadline) -> Observed[tuple[LogEntry, ...]]:
        if self.entries is None:
            raise UnreachableError("no answer", where="10.0.0.1")
        return Observed(self.entries, ())


@pytest.fixture
def context(tmp_path: Path) -> Iterator[SiteContext]:
    """n1 has an address, a host key, a figure, and a part with a hostile slot."""
    opened = open_site(write(tmp_path))
    measured = passed("ib_write_bw", "", measured=Quantity(391, "Gb/s"), expected=at_least(380, "Gb/s"))
    report = report_to_data(Report("burnin", "bootstrap", (measured,), frozenset({Origin.REAL})))
    seen = PartSeen(component="gpu", slot=EVIL, model="H100", node="n1", other="")
    opened.journal.append(
        [
            new_event("node", "id-n1", Kind.HOST_KEY_PINNED, {"public": "ssh-ed25519 AAAA"}),
            new_event("node", "id-n1", Kind.REPORT_RECORDED, {"report": report}),
            NewEvent(Stream.PART, "16/50", seen),
        ]
    )
    yield opened
    opened.journal.close()


def browser(context: SiteContext, folder: Path, user: str = "operator", **outside: Any) -> Browser:
    found = Browser(
        replace(context, connect=lambda site, _access: SilentOutside(site, **outside)), access(folder / user)
    )
    found.sign_in(user)
    return found


def test_the_log_of_a_node_is_read_when_it_is_asked_for(context: SiteContext, tmp_path: Path) -> None:
    """Lines and events by time; text of the node is escaped; the node's page itself asks no machine."""
    shell = Journald("NVRM: Xid 79 <script>alert(1)</script>")
    page = browser(context, tmp_path, shell=shell)
    assert "/nodes/n1/logs" in page.get("/nodes/n1").text
    assert shell.asked == []
    text = page.get("/nodes/n1/logs?since=4h&grep=xid").text
    assert "kernel: NVRM: Xid 79 &lt;script&gt;" in text
    assert any(word == "--grep=xid" for word in shell.asked[0])


def test_a_log_that_cannot_be_read_is_reported(context: SiteContext, tmp_path: Path) -> None:
    """The page has the events and the reason."""
    text = browser(context, tmp_path, shell=Silent()).get("/nodes/n1/logs").text
    assert "the log could not be read from n1&#39;s journald" in text


@dataclass
class Silent:
    """No host answers."""

    def run(self, host: HostAddress, argv: Sequence[str], stdin: bytes, deadline: Deadline) -> Observed[Ran]:
        raise UnreachableError("no SSH", where=host.name)


def test_the_log_of_a_bmc(context: SiteContext, tmp_path: Path) -> None:
    """Its entries, escaped; a BMC that does not answer is named."""
    entry = LogEntry("2026-11-27T19:00:00Z", "Critical", f"fan 3 {EVIL}")
    text = browser(context, tmp_path, bmcs=OneBmc((entry,))).get("/nodes/n1/bmc-log").text
    assert "fan 3 &lt;script&gt;" in text
    assert "\x1b" not in text
    silent = browser(context, tmp_path, "admin", bmcs=OneBmc(None)).get("/nodes/n1/bmc-log")
    assert "no answer" in silent.text
    assert silent.status_code == 503


@pytest.mark.parametrize("path", ["/nodes/n1/logs", "/nodes/n1/bmc-log"])
def test_viewers_read_no_log(context: SiteContext, tmp_path: Path, path: str) -> None:
    """It may hold texts of other users' jobs; no machine is asked."""
    shell = Journald("x")
    page = browser(context, tmp_path, "viewer", shell=shell)
    assert page.get(path).status_code == 403
    assert path not in page.get("/nodes/n1").text
    assert shell.asked == []


@pytest.mark.parametrize("query", ["since=99d", "since=", "grep=a%0Ab", f"grep={'x' * 300}"])
def test_a_wrong_question_is_refused(context: SiteContext, tmp_path: Path, query: str) -> None:
    shell = Journald("x")
    answer = browser(context, tmp_path, shell=shell).get(f"/nodes/n1/logs?{query}")
    assert answer.status_code in (400, 404)
    assert shell.asked == []


def test_figures_stand_among_the_fleet(context: SiteContext, tmp_path: Path) -> None:
    page = browser(context, tmp_path, "viewer")
    text = page.get("/nodes/n1/figures").text
    assert "391 Gb/s" in text
    assert "at least 380 Gb/s" in text
    assert "1 of 1" in text
    assert "no figures" in page.get("/nodes/n3/figures").text


def test_a_part_has_its_history(context: SiteContext, tmp_path: Path) -> None:
    """Also a serial with a slash; an unknown one is reported; what its slot is called stays text."""
    page = browser(context, tmp_path, "viewer")
    text = page.get("/parts/16%2F50").text
    assert "n1" in text
    assert "<script>alert" not in text
    assert page.get("/parts/unknown").status_code in (400, 404)


def test_a_stopped_node_names_its_work_order(context: SiteContext, tmp_path: Path) -> None:
    """And its finding's part leads to that part's history."""
    text = browser(context, tmp_path, "viewer").get("/nodes/n2").text
    assert 'href="/work-orders#order-1"' in text
    assert 'href="/parts/1650"' in text


def test_the_api_has_the_same_as_described(context: SiteContext, tmp_path: Path) -> None:
    """Logs, figures and a part: each answer fits its schema and has no other keys; the line of the log stays text."""
    entry = LogEntry("2026-11-27T19:00:00Z", "Critical", f"fan 3 {EVIL}")
    page = browser(context, tmp_path, shell=Journald("NVRM: Xid 79"), bmcs=OneBmc((entry,)))
    found = {}
    for path, asked in (
        ("/nodes/{name}/logs", "/nodes/n1/logs?since=4h&grep=xid"),
        ("/nodes/{name}/bmc-log", "/nodes/n1/bmc-log"),
        ("/nodes/{name}/figures", "/nodes/n1/figures"),
        ("/parts/{serial}", "/parts/16%2F50"),
    ):
        answer = page.get(BASE + asked)
        described = document()["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        Draft202012Validator({**described, "components": document()["components"]}).validate(answer.json())
        assert [*undocumented(described, answer.json())] == []
        assert "\x1b" not in answer.text
        found[path] = answer.json()
    assert "NVRM: Xid 79" in [one["line"]["text"] for one in found["/nodes/{name}/logs"]["entries"] if "line" in one]
    assert found["/nodes/{name}/bmc-log"]["entries"][0]["severity"] == "Critical"
    (figure,) = found["/nodes/{name}/figures"]["figures"]
    assert (figure["check"], figure["value"], figure["rank"], figure["nodes"]) == ("ib_write_bw", 391, 1, 1)
    assert [event["kind"] for event in found["/parts/{serial}"]["events"]] == ["part.seen"]


@pytest.mark.parametrize(
    ("path", "user", "status"),
    [
        ("/nodes/n1/logs", "viewer", 403),
        ("/nodes/n1/bmc-log", "viewer", 403),
        ("/nodes/n1/logs?since=99d", "operator", 404),
        ("/nodes/none/figures", "viewer", 404),
        ("/parts/unknown", "viewer", 404),
    ],
)
def test_the_api_refuses_what_the_page_refuses(
    context: SiteContext, tmp_path: Path, path: str, user: str, status: int
) -> None:
    """And no machine is asked."""
    shell = Journald("x")
    answer = browser(context, tmp_path, user, shell=shell).get(BASE + path)
    assert (answer.status_code, answer.json().keys()) == (status, {"error"})
    assert shell.asked == []

"""Whatever a BMC answers to a write, it ends: in the change seen, or in an error of ours; never in a traceback or hang."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redfish.rest.v1 import StaticRestResponse

from clusterctl.edges.redaction import Redaction
from clusterctl.edges.redfish.connection import Reply, messages_of
from clusterctl.edges.redfish.quirks import STANDARD, VENDORS, Quirks, quirks_of_root
from clusterctl.edges.redfish.session import RedfishSession
from clusterctl.edges.redfish.timing import Timing
from clusterctl.edges.redfish.write import RedfishChange, RefusedError, Writer, WriteReading, if_match_values
from clusterctl.fleet.errors import ClusterctlError, EdgeError, OutcomeUnknownError
from clusterctl.fleet.node import Serial
from clusterctl.formats.redfish.tree import Unreadable
from clusterctl.ports import Deadline
from tests.edges.redfish.replay import error
from tests.edges.redfish.trees import recorded

SERIAL = Serial("EX00042")
NO_TIME = Timing(busy=0, busy_max=0, poll=0.0001, settle=0.0005, refused=0, refused_max=0, unknown=0.0005)
LOST = "lost"


class Answering:
    """A session whose BMC gives these answers to writes, in order, then takes them; each may do what was asked."""

    def __init__(self, answers: list[tuple[Any, bool]], quirks: Quirks = STANDARD) -> None:
        self.answers = answers
        self.quirks = quirks
        self.logins = 1
        self.done = False
        self.sent: list[str] = []

    def write(
        self, path: str, body: Mapping[str, Any], deadline: Deadline, *, method: str, if_match: str = ""
    ) -> Reply:
        deadline.check("writing")
        assert path == "/redfish/v1/Systems/1"
        assert body
        self.sent.append(if_match)
        answer, done = self.answers.pop(0) if self.answers else (Reply(204, b"", {}), True)
        self.done = self.done or done
        if answer is LOST:
            raise OutcomeUnknownError("no answer")
        if answer.status == 401:
            self.logins += 1
        return cast("Reply", answer)

    def read(self, _deadline: Deadline) -> WriteReading:
        return WriteReading(SERIAL, self.done, "as it is", 'W/"1"')


def made(session: Answering, method: Any = "PATCH", again: bool = True) -> WriteReading | ClusterctlError:
    """What came of a change; an error of ours is an outcome too, any other is not caught."""
    change = RedfishChange(
        "a change", method, "/redfish/v1/Systems/1", ({"a": 1}, {"b": 2}), session.read, 0.0005, again=again
    )
    try:
        return Writer(cast("RedfishSession", session), NO_TIME, SERIAL).make(change, Deadline.after(60))
    except ClusterctlError as failed:
        return failed


WORDS = ["", "UnableToModifyDuringSystemPOST", "SYS518", "lockdown", "x" * 1000]
BODIES = st.one_of(
    st.binary(max_size=20),
    st.sampled_from(
        [b"", b"[", b"[" * 5000, b"null", b"7", b'{"error": 3}', b'{"error": {"@Message.ExtendedInfo": 7}}']
    ),
    st.sampled_from(WORDS).map(lambda words: json.dumps(error(words, words)).encode()),
)


def reply(status: int, body: bytes, headers: Mapping[str, str]) -> Reply:
    """As `Connection` makes it from the library's response."""
    response = StaticRestResponse(Status=status, Headers=headers, Content=body.decode(errors="ignore"))
    return Reply(status, body, headers, messages_of(response, Redaction()))


HEADERS = st.dictionaries(st.just("retry-after"), st.sampled_from(["", "0", "-1", "x", "9" * 400, "²", "1e9"]))
STATUSES = st.sampled_from(
    [100, 200, 202, 204, 302, 400, 401, 403, 404, 405, 406, 409, 412, 422, 428, 429, 500, 503, 599]
)
REPLIES = st.builds(reply, STATUSES, BODIES, HEADERS)
ANSWERS = st.lists(st.tuples(st.one_of(REPLIES, st.just(LOST)), st.booleans()), max_size=60)


@settings(max_examples=300, deadline=None)
@given(answers=ANSWERS, quirks=st.sampled_from([STANDARD, *VENDORS]), method=st.sampled_from(["PATCH", "POST"]))
def test_any_order_of_answers_ends(answers: list[tuple[Any, bool]], quirks: Quirks, method: str) -> None:
    """In what was asked for, seen, or in a typed error; after a bounded number of requests; actions without If-Match."""
    session = Answering(answers, quirks)
    outcome = made(session, method)
    assert isinstance(outcome, ClusterctlError) or (outcome.done and session.done)
    assert len(session.sent) <= 40
    assert method == "PATCH" or set(session.sent) <= {""}


@settings(max_examples=100, deadline=None)
@given(answers=ANSWERS)
def test_what_is_done_is_never_called_undone(answers: list[tuple[Any, bool]]) -> None:
    """Once the change is there, no answer makes an error of it, and nothing more is sent."""
    session = Answering([(answer, True) for answer, _ in answers] or [(LOST, True)])
    outcome = made(session)
    assert isinstance(outcome, WriteReading)
    assert len(session.sent) == 1


def test_a_toggle_is_never_pressed_twice() -> None:
    """Where the result of the first try is unknown, a second press could undo it."""
    assert isinstance(made(Answering([(LOST, False)]), "POST", again=False), OutcomeUnknownError)
    session = Answering([(Reply(500, b"", {}), False)])
    assert isinstance(made(session, "POST", again=False), RefusedError)
    assert len(session.sent) == 1


def test_another_machine() -> None:
    """A look that finds another serial stops everything."""
    session = Answering([])
    change = RedfishChange("a change", "POST", "/redfish/v1/Systems/1", ({"a": 1},), session.read)
    with pytest.raises(EdgeError, match="belongs to machine"):
        Writer(cast("RedfishSession", session), NO_TIME, Serial("EX1")).make(change, Deadline.after(60))
    assert session.sent == []


@settings(max_examples=200)
@given(etag=st.text(max_size=8), status=st.integers(0, 599))
def test_rungs(etag: str, status: int) -> None:
    """Never empty, each once, and the one that waives all protection comes last and only on demand."""
    ladder = if_match_values(etag, status)
    assert ladder
    assert len(set(ladder)) == len(ladder)
    assert "*" not in ladder[:-1] or etag == "*"
    assert ladder[-1] != "*" or status in (412, 428) or etag == "*"


@pytest.mark.parametrize(("vendor", "made_by"), [("dell", "dell"), ("hpe", "hpe"), ("supermicro", "supermicro")])
def test_vendors_of_recorded_roots(vendor: str, made_by: str) -> None:
    """Each recorded BMC is known by its service root alone, as it shows it without a login."""
    assert quirks_of_root(recorded(vendor)["/redfish/v1"]).vendor == made_by


@pytest.mark.parametrize(
    ("root", "made_by"),
    [
        ({"Vendor": "AMI"}, "ami"),
        ({"Vendor": "Unnamed"}, "standard"),
        ({"Vendor": 7}, "standard"),
        ({"Oem": []}, "standard"),
        (Unreadable("HTTP 401"), "standard"),
        ({"Vendor": None, "Oem": {"Hpe": {}}}, "hpe"),
    ],
)
def test_vendors(root: Any, made_by: str) -> None:
    """A BMC of none of them, or with nonsense, gets the standard."""
    assert quirks_of_root(root).vendor == made_by

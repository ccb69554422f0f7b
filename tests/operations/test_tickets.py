"""Tickets of incidents: one each, whatever happens on the way; what they hold; what a closed one offers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from clusterctl.fleet.errors import ClaimLostError, OutcomeUnknownError, PrivilegeError, UsageError
from clusterctl.fleet.event import Kind, NewEvent, Stream
from clusterctl.fleet.incidents.ticket_text import Attachment, TicketText
from clusterctl.fleet.payloads.incidents import TicketAttached, TicketFailed, TicketSeen
from clusterctl.operations import tickets
from clusterctl.operations.context import Invocation, SiteContext, open_site
from clusterctl.ports import Deadline
from clusterctl.ports.tickets import Ticket
from clusterctl_cli.main import run
from tests.cli.site_of_three import append, quarantined, write
from tests.edges.tickets.emulators import TOKEN, Jira, TicketServer, running
from tests.events import new_event
from tests.fleet.people import WARM

NOTHING = timedelta(0)


def configured(folder: Path, url: str) -> Path:
    """n2 is in quarantine."""
    site = write(folder)
    (site / "secrets/tickets").write_text(TOKEN)
    (site / "secrets/tickets").chmod(0o600)
    with (site / "site.yml").open("a") as file:
        file.write(
            f"tickets: {{kind: jira, url: '{url}', project: OPS, user: bot, token: {{file: secrets/tickets}}}}\n"
        )
    return site


@pytest.fixture
def server() -> Iterator[TicketServer]:
    with running(Jira()) as found:
        yield found


@pytest.fixture
def site(tmp_path: Path, server: TicketServer) -> Path:
    return configured(tmp_path, server.url)


@pytest.fixture
def context(tmp_path: Path) -> Iterator[SiteContext]:
    opened = open_site(configured(tmp_path, "https://127.0.0.1:1"))
    yield opened
    opened.journal.close()


def sync(site: Path, capsys: pytest.CaptureFixture[str], code: int = 0) -> dict[str, object]:
    capsys.readouterr()
    assert run(["tickets", "sync", "--json", "--site", str(site)]) == code
    (found,) = json.loads(capsys.readouterr().out)["tickets"]
    assert isinstance(found, dict)
    return found


def test_an_incident_gets_one_ticket(site: Path, server: TicketServer, capsys: pytest.CaptureFixture[str]) -> None:
    """With title, serials, place, work order and the vendor's sheet; the next runs create none and add nothing."""
    found = sync(site, capsys)
    assert (found["key"], found["did"]) == ("OPS-1", ["created"])
    (item,) = server.items
    assert item.title == "[my-site] n2: 2 uncorrectable errors"
    for text in (
        f"clusterctl-incident: {found['incident']}",
        "serial S2",
        "rack A01 U4",
        "do: replace GPU 3",
        "serial 1650",
    ):
        assert text in item.body
    assert "serial S2" in item.files["n2.md"]
    assert sync(site, capsys)["did"] == []
    assert len(server.items) == 1
    assert not server.items[0].notes


def test_a_change_is_a_note_and_a_closed_ticket_offers_a_release(
    site: Path, server: TicketServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is released by itself; once the nodes are released, the ticket has a last note."""
    sync(site, capsys)
    append(site, quarantined("n1", "burnin", WARM))
    assert sync(site, capsys)["did"] == ["note 2"]
    assert "new: n1" in server.items[0].notes[0]
    server.items[0].closed = True
    found = sync(site, capsys)
    assert found["did"] == ["closed"]
    assert str(found["release"]).startswith("clusterctl release n1 n2 --reason")
    assert run(["incident", "show", str(found["incident"]), "--site", str(site)]) == 0
    assert "its ticket is closed; after the repair: clusterctl release n1 n2" in capsys.readouterr().out
    assert run(["release", "n1", "n2", "--reason", "repaired", "--yes", "--site", str(site)]) == 0
    assert sync(site, capsys)["did"] == ["note 3"]
    assert "Resolved" in server.items[0].notes[1]
    capsys.readouterr()
    assert run(["tickets", "sync", "--site", str(site)]) == 0
    assert "OPS-1" not in capsys.readouterr().out


def test_an_answer_that_is_lost_makes_no_second_ticket(
    site: Path, server: TicketServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """The ticket was created, its answer did not come: the next run finds it by its marker."""
    server.drops.append("/rest/api/2/issue")
    assert sync(site, capsys, code=1)["key"] == ""
    context = open_site(site)
    (state,) = context.journal.incidents()
    assert state.ticket.intended_at is not None
    assert state.ticket.retry_at is not None
    context.journal.append(
        [new_event("incident", state.id, Kind.TICKET_FAILED, {"reason": "x", "retry_at": "2026-01-01T00:00:00Z"})]
    )
    context.journal.close()
    found = sync(site, capsys)
    assert (found["key"], found["did"]) == ("OPS-1", ["found"])
    assert len(server.items) == 1
    assert "n2.md" in server.items[0].files
    assert sync(site, capsys)["did"] == []


class Killed(BaseException):
    """The process is gone: nothing after it runs."""


class FakeTickets:
    """Meets `Tickets`. `dies`: the call at which the process dies, before or after it has taken effect; `blind`: so many
    searches find nothing, as a search whose index is behind.
    """

    def __init__(self) -> None:
        self.made: list[str] = []
        self.notes: list[str] = []
        self.files: list[str] = []
        self.dies = ""
        self.blind = 0
        self.closed = False

    def _at(self, call: str, effect: Callable[[], None]) -> None:
        if self.dies == f"before {call}":
            raise Killed
        effect()
        if self.dies == f"after {call}":
            raise Killed

    def find(self, incident: str, since: datetime, deadline: Deadline) -> Ticket | None:
        if self.blind:
            self.blind -= 1
            return None
        return Ticket(key="T-1", url="u") if incident in self.made else None

    def create(self, text: TicketText, deadline: Deadline) -> Ticket:
        self._at("create", lambda: self.made.append(text.incident))
        return Ticket(key="T-1", url="u")

    def attach(self, key: str, attachment: Attachment, deadline: Deadline) -> None:
        if attachment.name not in self.files:
            self._at("attach", lambda: self.files.append(attachment.name))

    def note(self, key: str, text: str, deadline: Deadline) -> None:
        self._at("note", lambda: self.notes.append(text))

    def resolve(self, key: str, deadline: Deadline) -> None:
        self._at("resolve", lambda: setattr(self, "closed", True))

    def has_note(self, key: str, marker: str, deadline: Deadline) -> bool:
        return any(marker in note for note in self.notes)

    def read(self, key: str, deadline: Deadline) -> Ticket:
        return Ticket(key=key, url="u", closed=self.closed)


def go(context: SiteContext, system: FakeTickets, settle: timedelta = NOTHING) -> list[tuple[str, ...]]:
    return [one.did for one in tickets.run(context, lambda node: f"sheet of {node.name}", system, settle).tickets]


@pytest.mark.parametrize("dies", ["before create", "after create", "before attach", "after attach"])
def test_a_kill_at_any_point_of_creating_makes_one_ticket(context: SiteContext, dies: str) -> None:
    """With its sheet, once."""
    system = FakeTickets()
    system.dies = dies
    with pytest.raises(Killed):
        go(context, system)
    system.dies = ""
    go(context, system)
    assert go(context, system) == [()]
    assert (len(system.made), system.files, system.notes) == (1, ["n2.md"], [])


@pytest.mark.parametrize("dies", ["before note", "after note"])
def test_a_kill_at_any_point_of_a_note_writes_one_note(context: SiteContext, dies: str) -> None:
    system = FakeTickets()
    go(context, system)
    append(context.site.folder, quarantined("n1", "burnin", WARM))
    system.dies = dies
    with pytest.raises(Killed):
        go(context, system)
    system.dies = ""
    go(context, system)
    assert go(context, system) == [()]
    assert len(system.notes) == 1


def test_a_search_that_is_behind_makes_no_second_ticket(context: SiteContext) -> None:
    """After an attempt without a result, nothing is created until the search must have caught up."""
    system = FakeTickets()
    system.dies = "after create"
    with pytest.raises(Killed):
        go(context, system)
    system.dies, system.blind = "", 1
    assert go(context, system, timedelta(hours=1)) == [
        ("waits until the ticket system shows what an earlier attempt has created",)
    ]
    assert go(context, system, timedelta(hours=1)) == [("found",)]
    assert len(system.made) == 1


class Failing(FakeTickets):
    def create(self, text: TicketText, deadline: Deadline) -> Ticket:
        raise OutcomeUnknownError("no answer came", where="tickets")


def test_a_failure_is_tried_again_later(context: SiteContext) -> None:
    """Exit code 1, with the error; not before its time."""
    system = Failing()
    result = tickets.run(context, lambda _node: "", system, NOTHING)
    assert (result.exit_code, result.tickets[0].did) == (1, ())
    assert "no answer came" in result.tickets[0].failure
    (state,) = context.journal.incidents()
    assert state.ticket.attempts == 1
    tickets.run(context, lambda _node: "", FakeTickets(), NOTHING)
    (state,) = context.journal.incidents()
    assert not state.ticket.key


class NoFiles(FakeTickets):
    """Takes no attachment."""

    refusals = 0

    def attach(self, key: str, attachment: Attachment, deadline: Deadline) -> None:
        self.refusals += 1
        raise PrivilegeError("HTTP 403: no attachments here", where=key)


def soon(context: SiteContext) -> None:
    """Let the next attempt to attach be due now."""
    (state,) = context.journal.incidents()
    payload = TicketAttached(failure="x", retry_at=datetime(2026, 1, 1, tzinfo=UTC))
    context.journal.append([NewEvent(Stream.INCIDENT, state.id, payload)])


def test_a_refused_sheet_loses_no_ticket(context: SiteContext) -> None:
    """The ticket is filed and goes on; the sheet is tried again for itself, some times, and its failure is reported."""
    system = NoFiles()
    result = tickets.run(context, lambda _node: "", system, NOTHING)
    assert (result.exit_code, result.tickets[0].key, result.tickets[0].did) == (1, "T-1", ("created",))
    assert "a sheet was not attached: T-1: HTTP 403" in result.tickets[0].failure
    append(context.site.folder, quarantined("n1", "burnin", WARM))
    again = tickets.run(context, lambda _node: "", system, NOTHING)
    assert (again.tickets[0].did, system.refusals) == (("note 2",), 1)
    assert again.tickets[0].failure == result.tickets[0].failure
    soon(context)
    taken = FakeTickets()
    taken.made = system.made
    assert tickets.run(context, lambda _node: "", taken, NOTHING).exit_code == 0
    assert sorted(taken.files) == ["n1.md", "n2.md"]
    assert len(system.made) == 1


def test_a_system_that_takes_no_files_is_not_asked_for_ever(context: SiteContext) -> None:
    """Then the incident shows that its ticket has no sheet, and the timer succeeds."""
    system = NoFiles()
    for _ in range(tickets.SHEET_ATTEMPTS):
        tickets.run(context, lambda _node: "", system, NOTHING)
        (state,) = context.journal.incidents()
        if not state.ticket.unattached:
            break
        soon(context)
    assert not state.ticket.unattached
    assert "403" in state.ticket.attach_failure
    asked = system.refusals
    assert tickets.run(context, lambda _node: "", system, NOTHING).exit_code == 0
    assert system.refusals == asked


class Outlived(FakeTickets):
    """At a search, by number, the machine is suspended for an hour: meanwhile another process takes the claim."""

    def __init__(self, context: SiteContext, at: int) -> None:
        super().__init__()
        self.context, self.left, self.seconds = context, at, 1000.0

    def find(self, incident: str, since: datetime, deadline: Deadline) -> Ticket | None:
        found = super().find(incident, since, deadline)
        self.left -= 1
        if self.left == 0:
            self.seconds += 3600
            taken(self.context)
        return found

    def create(self, text: TicketText, deadline: Deadline) -> Ticket:
        deadline.check("asking the ticket system")  # as each request does
        return super().create(text, deadline)


def taken(context: SiteContext) -> None:
    """End the claim of the pass: its lease is over, and another process has had it."""
    (owner,) = context.journal.owners(str(tickets.CLAIM))
    other = open_site(context.site.folder, Invocation(run=owner.run))
    granted = other.journal.claim([tickets.CLAIM], owner.run).granted
    other.journal.release(granted.values())
    other.journal.close()


@pytest.mark.parametrize("at", [1, 2])
def test_a_pass_that_outlives_its_claim_creates_nothing(context: SiteContext, at: int) -> None:
    """Neither after the first search nor after the one that follows the intent; the next pass creates one ticket."""
    system = Outlived(context, at)
    with pytest.raises(ClaimLostError):
        tickets.run(context, lambda _node: "", system, NOTHING, lambda: system.seconds)
    assert system.made == []
    go(context, system)
    assert go(context, system) == [()]
    assert len(system.made) == 1


class Raced(FakeTickets):
    """Another process creates the ticket after the first search."""

    def find(self, incident: str, since: datetime, deadline: Deadline) -> Ticket | None:
        found = super().find(incident, since, deadline)
        self.made = [incident]
        return found


def test_the_ticket_is_searched_again_after_the_intent(context: SiteContext) -> None:
    system = Raced()
    assert go(context, system) == [("found",)]
    assert len(system.made) == 1


def released(context: SiteContext) -> None:
    append(context.site.folder, [new_event("node", "id-n2", Kind.NODE_RELEASED, {"to": "cabled", "reason": "r"})])


@pytest.fixture
def closing(tmp_path: Path) -> Iterator[SiteContext]:
    """A site that closes the tickets of resolved incidents."""
    site = configured(tmp_path, "https://127.0.0.1:1")
    file = site / "site.yml"
    file.write_text(file.read_text().replace("project: OPS", "project: OPS, close_resolved: true"))
    opened = open_site(site)
    yield opened
    opened.journal.close()


def test_a_resolved_incident_closes_its_ticket_once(closing: SiteContext) -> None:
    """After its last note. A person who opens it again keeps it open; by default no ticket is closed."""
    system = FakeTickets()
    go(closing, system)
    assert not system.closed
    released(closing)
    assert go(closing, system) == [("note 2", "resolved")]
    assert system.closed
    (state,) = closing.journal.incidents()
    assert (state.ticket.closed, state.unfinished) == (True, False)
    closing.journal.append([NewEvent(Stream.INCIDENT, state.id, TicketSeen(closed=False))])
    system.closed = False
    assert go(closing, system) == [()]
    assert not system.closed


@pytest.mark.parametrize("dies", ["before resolve", "after resolve"])
def test_a_kill_while_a_ticket_is_closed(closing: SiteContext, dies: str) -> None:
    system = FakeTickets()
    go(closing, system)
    released(closing)
    system.dies = dies
    with pytest.raises(Killed):
        go(closing, system)
    system.dies = ""
    assert go(closing, system) == [("resolved",) if dies == "before resolve" else ("closed",)]
    assert (system.closed, len(system.notes)) == (True, 1)


def test_a_closed_ticket_that_is_opened_again_stays_open(closing: SiteContext) -> None:
    """Also one that was closed before its incident was resolved."""
    system = FakeTickets()
    go(closing, system)
    system.closed = True
    assert go(closing, system) == [("closed",)]
    released(closing)
    assert go(closing, system) == [("note 2",)]
    (state,) = closing.journal.incidents()
    closing.journal.append([NewEvent(Stream.INCIDENT, state.id, TicketSeen(closed=False))])
    system.closed = False
    assert go(closing, system) == [()]


def test_by_default_no_ticket_is_closed(context: SiteContext) -> None:
    system = FakeTickets()
    go(context, system)
    released(context)
    assert go(context, system) == [("note 2",)]
    assert not system.closed


class Unread(FakeTickets):
    """Cannot be read the first time."""

    failed = False

    def read(self, key: str, deadline: Deadline) -> Ticket:
        if not self.failed:
            self.failed = True
            raise PrivilegeError("HTTP 403", where=key)
        return super().read(key, deadline)


def test_a_failure_that_is_over_is_forgotten(context: SiteContext) -> None:
    system = Unread()
    go(context, system)
    go(context, system)
    (state,) = context.journal.incidents()
    assert state.ticket.failure
    failed = TicketFailed(reason="HTTP 403", retry_at=datetime(2026, 1, 1, tzinfo=UTC))
    context.journal.append([NewEvent(Stream.INCIDENT, state.id, failed)])
    assert tickets.run(context, lambda _node: "", system, NOTHING).exit_code == 0
    (state,) = context.journal.incidents()
    assert (state.ticket.failure, state.ticket.attempts) == ("", 0)


def test_incidents_of_other_kinds_have_no_ticket(context: SiteContext) -> None:
    """The site names the kinds; a released incident that never had a ticket gets none."""
    append(context.site.folder, [new_event("node", "id-n2", Kind.NODE_RELEASED, {"to": "cabled", "reason": "r"})])
    assert go(context, FakeTickets()) == []


def test_a_site_without_a_ticket_system(tmp_path: Path) -> None:
    context = open_site(write(tmp_path))
    with pytest.raises(UsageError, match="no ticket system"):
        tickets.run(context, lambda _node: "")
    context.journal.close()

"""Each ticket system against an emulator of its API: found, created, attached, noted, closed."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from clusterctl.edges.redaction import KNOWN
from clusterctl.edges.site import Site, load_site
from clusterctl.edges.tickets import site_tickets
from clusterctl.fleet.errors import (
    AuthenticationError,
    EdgeError,
    OutcomeUnknownError,
    ParseError,
    PrivilegeError,
    UnreachableError,
    UsageError,
)
from clusterctl.fleet.incidents.ticket_text import Attachment, TicketText, marker
from clusterctl.ports import Deadline
from clusterctl.ports.tickets import Tickets
from tests.edges.site.ready import write_ready_site
from tests.edges.tickets.emulators import TOKEN, Github, Item, Jira, JiraDataCenter, TicketServer, Webhook, running

SINCE = datetime(2026, 1, 1, tzinfo=UTC)
INCIDENT = "inc-0123456789"
TEXT = TicketText(incident=INCIDENT, title="[lab] n2: 2 uncorrectable errors", body=f"{marker(INCIDENT)}\n\nn2")
SHEET = Attachment(name="n2.md", text="# S2")
SETTINGS = {
    Jira: "{kind: jira, url: URL, project: OPS, user: bot@site.example, token: {file: secrets/tickets}}",
    JiraDataCenter: "{kind: jira, url: URL, project: OPS, token: {file: secrets/tickets}}",
    Github: "{kind: github, url: URL, repository: acme/ops, token: {file: secrets/tickets}}",
    Webhook: "{kind: webhook, url: URL, token: {file: secrets/tickets}}",
}


def site_with(folder: Path, settings: str) -> Site:
    write_ready_site(folder)
    (folder / "secrets/tickets").write_text(TOKEN)
    (folder / "secrets/tickets").chmod(0o600)
    with (folder / "site.yml").open("a") as file:
        file.write(f"tickets: {settings}\n")
    return load_site(folder)


def tickets_of(folder: Path, settings: str) -> Tickets:
    site = site_with(folder, settings)
    assert site.settings.tickets is not None
    return site_tickets(site, site.settings.tickets)


@pytest.fixture(params=list(SETTINGS), ids=lambda kind: kind.__name__)
def server(request: pytest.FixtureRequest) -> Iterator[TicketServer]:
    with running(request.param()) as found:
        yield found


@pytest.fixture
def tickets(server: TicketServer, tmp_path: Path) -> Tickets:
    return tickets_of(tmp_path, SETTINGS[type(server)].replace("URL", server.url))


def deadline() -> Deadline:
    return Deadline.after(600)


def test_a_ticket_is_created_found_and_closed(server: TicketServer, tickets: Tickets) -> None:
    """Another incident's ticket is not found; a closed ticket is still found."""
    assert tickets.find(INCIDENT, SINCE, deadline()) is None
    made = tickets.create(TEXT, deadline())
    assert not made.closed
    assert made.url.startswith("http")
    found = tickets.find(INCIDENT, SINCE, deadline())
    assert found is not None
    assert (found.key, found.url) == (made.key, made.url)
    assert tickets.find("inc-ffffffffff", SINCE, deadline()) is None
    server.items[0].closed = True
    assert tickets.read(made.key, deadline()).closed
    assert (server.items[0].title, server.items[0].body) == (TEXT.title, TEXT.body)


def test_a_ticket_is_closed_as_done(server: TicketServer, tickets: Tickets) -> None:
    key = tickets.create(TEXT, deadline()).key
    assert not tickets.read(key, deadline()).closed
    tickets.resolve(key, deadline())
    assert server.items[0].closed
    assert tickets.read(key, deadline()).closed


@pytest.mark.parametrize(("name", "closed"), [("Done", True), ("In Progress", False)])
def test_the_transition_of_the_settings_is_taken(tmp_path: Path, name: str, closed: bool) -> None:
    with running(Jira()) as server:
        settings = SETTINGS[Jira].replace("URL", server.url).replace("}}", f"}}, close_transition: {name}}}")
        system = tickets_of(tmp_path, settings)
        system.resolve(system.create(TEXT, deadline()).key, deadline())
        assert server.items[0].closed is closed


def test_a_workflow_without_such_a_transition_is_an_error(tmp_path: Path) -> None:
    """The error names the setting."""
    with running(Jira()) as server:
        settings = SETTINGS[Jira].replace("URL", server.url).replace("}}", "}, close_transition: Archive}")
        system = tickets_of(tmp_path, settings)
        key = system.create(TEXT, deadline()).key
        with pytest.raises(EdgeError, match="no transition 'Archive'") as error:
            system.resolve(key, deadline())
        assert "close_transition" in error.value.remedy


def test_a_sheet_is_attached_once(server: TicketServer, tickets: Tickets) -> None:
    key = tickets.create(TEXT, deadline()).key
    tickets.attach(key, SHEET, deadline())
    tickets.attach(key, SHEET, deadline())
    if isinstance(server, Github):
        assert server.items[0].notes == ["clusterctl-sheet: n2.md\n\n~~~~~~~~\n# S2\n~~~~~~~~"]
    else:
        assert server.items[0].files == {"n2.md": "# S2"}


def test_notes_are_found_by_their_marker(server: TicketServer, tickets: Tickets) -> None:
    """The webhook's receiver recognises a repeat by its key."""
    key = tickets.create(TEXT, deadline()).key
    tickets.note(key, "clusterctl-note: x/2\n\nchanged", deadline())
    assert len(server.items[0].notes) == 1
    if isinstance(server, Webhook):
        tickets.note(key, "clusterctl-note: x/2\n\nchanged", deadline())
        assert len(server.items[0].notes) == 1
    else:
        assert tickets.has_note(key, "clusterctl-note: x/2", deadline())
        assert not tickets.has_note(key, "clusterctl-note: x/3", deadline())


def test_a_ticket_that_is_gone_is_an_error(server: TicketServer, tickets: Tickets) -> None:
    key = tickets.create(TEXT, deadline()).key
    server.items.clear()
    with pytest.raises(EdgeError, match="no such ticket"):
        tickets.read(key, deadline())


@pytest.mark.parametrize(
    ("status", "error"),
    [(401, AuthenticationError), (403, PrivilegeError), (302, EdgeError), (422, EdgeError), (500, OutcomeUnknownError)],
)
def test_refusals_have_their_errors(
    server: TicketServer, tickets: Tickets, status: int, error: type[EdgeError], caplog: pytest.LogCaptureFixture
) -> None:
    """One request each: nothing is tried again, no redirect is followed; the token is in no message."""
    caplog.set_level(logging.DEBUG)
    server.statuses.append(status)
    with pytest.raises(error) as found:
        tickets.create(TEXT, deadline())
    assert len(server.asked) == 1
    assert TOKEN not in f"{found.value}{KNOWN(caplog.text)}"


def test_a_post_without_an_answer_may_have_taken_effect(server: TicketServer, tickets: Tickets) -> None:
    """It is not sent again; a GET without an answer is a peer that cannot be reached."""
    server.drops.append(
        {Jira: "/rest/api/2/issue", Github: "/repos/acme/ops/issues", Webhook: "/tickets"}[_kind(server)]
    )
    with pytest.raises(OutcomeUnknownError):
        tickets.create(TEXT, deadline())
    assert len(server.items) == 1
    assert len(server.asked) == 1


def _kind(server: TicketServer) -> type[TicketServer]:
    return Jira if isinstance(server, Jira) else type(server)


def test_a_port_where_nothing_listens(tmp_path: Path) -> None:
    with running(Webhook()) as gone:
        url = gone.url
    system = tickets_of(tmp_path, SETTINGS[Webhook].replace("URL", url))
    with pytest.raises(UnreachableError):
        system.find(INCIDENT, SINCE, deadline())


def test_github_is_searched_page_by_page(tmp_path: Path) -> None:
    """The marker is a line of the text, not a part of one."""
    with running(Github()) as server:
        server.items = [Item(number, "t", f"x{marker(INCIDENT)}") for number in range(2, 250)]
        server.items.insert(0, Item(1, "t", f"{marker(INCIDENT)}\r\n\r\nn2"))
        found = tickets_of(tmp_path, SETTINGS[Github].replace("URL", server.url)).find(INCIDENT, SINCE, deadline())
        assert found is not None
        assert found.key == "1"
        assert len(server.asked) == 3


class Hostile(Webhook):
    """Names a key that leads to another path."""

    def ticket(self, item: Item) -> dict[str, object]:
        return {"key": "../../admin", "url": "x"}


def test_a_key_is_no_path(tmp_path: Path) -> None:
    with running(Hostile()) as server:
        system = tickets_of(tmp_path, SETTINGS[Webhook].replace("URL", server.url))
        with pytest.raises(ParseError, match="key of a ticket"):
            system.create(TEXT, deadline())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("{kind: jira, url: 'http://jira.example', project: OPS, token: {file: x}}", "must be https"),
        ("{kind: jira, url: 'https://u:p@jira.example', project: OPS, token: {file: x}}", "by reference"),
        ("{kind: jira, url: 'https://jira.example', project: 'ops\" OR', token: {file: x}}", "project"),
        ("{kind: github, repository: 'a/b/c', token: {file: x}}", "repository"),
        ("{kind: webhook, url: 'https://x.example', token: plain-text}", "never stands in this file"),
    ],
)
def test_wrong_settings_are_named(tmp_path: Path, settings: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as error:
        site_with(tmp_path, settings)
    assert "site.yml" in error.value.where
    assert "u:p" not in str(error.value)

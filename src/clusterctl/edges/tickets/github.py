"""Issues of a GitHub repository.

Source: https://docs.github.com/en/rest/issues/issues and https://docs.github.com/en/rest/issues/comments, version
2022-11-28. An issue is found in the list of issues, by the marker in its text: the index of GitHub's search is behind,
and labels need further rights. The API takes no files: a sheet is a comment.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from clusterctl.edges.tickets.http import TicketApi, key_of, list_of, text_of
from clusterctl.fleet.errors import EdgeError
from clusterctl.fleet.incidents.ticket_text import Attachment, TicketText, marker
from clusterctl.ports.deadline import Deadline
from clusterctl.ports.tickets import Ticket
from clusterctl.site.tickets import GithubSettings

HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
_FENCE = "~~~~~~~~"
"""Around a sheet: GitHub finds no mention and no markup in it."""
_PAGE = 100
_PAGES = 20
_SLACK = timedelta(days=1)
"""Clocks differ: an issue is looked for from this time before the incident on."""


@dataclass(frozen=True, slots=True)
class GithubIssues:
    """Meets `ports.Tickets`."""

    api: TicketApi
    settings: GithubSettings

    @property
    def _path(self) -> str:
        return f"/repos/{self.settings.repository}/issues"

    def find(self, incident: str, since: datetime, deadline: Deadline) -> Ticket | None:
        after = f"{(since - _SLACK).astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        wanted = marker(incident)
        for page in range(1, _PAGES + 1):
            query = {"state": "all", "since": after, "per_page": str(_PAGE), "page": str(page)}
            issues = list_of(self.api.get(self._path, deadline, query), self._path)
            for issue in issues:
                if isinstance(issue, dict) and wanted in str(issue.get("body") or "").splitlines():
                    return self._ticket(issue)
            if len(issues) < _PAGE:
                return None
        remedy = "let fewer issues change in this repository: give the site's tickets one of their own"
        raise EdgeError(f"has more than {_PAGE * _PAGES} issues since {after}", where=self._path, remedy=remedy)

    def create(self, text: TicketText, deadline: Deadline) -> Ticket:
        content = {"title": text.title, "body": text.body}
        return self._ticket(self.api.post(self._path, deadline, json=content, headers=HEADERS))

    def attach(self, key: str, attachment: Attachment, deadline: Deadline) -> None:
        """Write a sheet as a comment, unless there is one of its name."""
        name = f"clusterctl-sheet: {attachment.name}"
        if not self.has_note(key, name, deadline):
            self.note(key, f"{name}\n\n{_FENCE}\n{attachment.text.replace(_FENCE, '')}\n{_FENCE}", deadline)

    def note(self, key: str, text: str, deadline: Deadline) -> None:
        self.api.post(f"{self._path}/{key}/comments", deadline, json={"body": text}, headers=HEADERS)

    def has_note(self, key: str, marker: str, deadline: Deadline) -> bool:
        path = f"{self._path}/{key}/comments"
        for page in range(1, _PAGES + 1):
            notes = list_of(self.api.get(path, deadline, {"per_page": str(_PAGE), "page": str(page)}), path)
            if any(isinstance(note, dict) and marker in str(note.get("body") or "").splitlines() for note in notes):
                return True
            if len(notes) < _PAGE:
                break
        return False

    def resolve(self, key: str, deadline: Deadline) -> None:
        content = {"state": "closed", "state_reason": "completed"}
        self.api.patch(f"{self._path}/{key}", deadline, json=content, headers=HEADERS)

    def read(self, key: str, deadline: Deadline) -> Ticket:
        found = self.api.get(f"{self._path}/{key}", deadline)
        if not isinstance(found, dict):
            raise EdgeError("there is no such ticket", where=key, remedy="look whether it was moved or deleted")
        return self._ticket(found)

    def _ticket(self, issue: Any) -> Ticket:
        key = key_of(issue, "number", self._path)
        return Ticket(key=key, url=text_of(issue, "html_url", self._path), closed=issue.get("state") == "closed")

"""Jira Cloud and Jira Data Center.

Source: https://developer.atlassian.com/cloud/jira/platform/rest/v2/ (issues, issue search with `/search/jql`, issue
comments, issue attachments) and https://docs.atlassian.com/software/jira/docs/api/REST/9.12.0/ (`/search`).
An issue is found by its label, which is the incident's id. Cloud's search may be some seconds behind.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from clusterctl.edges.tickets.http import TicketApi, key_of, list_of
from clusterctl.fleet.errors import EdgeError
from clusterctl.fleet.incidents.ticket_text import Attachment, TicketText
from clusterctl.ports.deadline import Deadline
from clusterctl.ports.tickets import Ticket
from clusterctl.site.tickets import JiraSettings

LABEL = "clusterctl"
_API = "/rest/api/2"
_FIELDS = "status,attachment"
_NOTES = "50"


@dataclass(frozen=True, slots=True)
class JiraIssues:
    """Meets `ports.Tickets`."""

    api: TicketApi
    settings: JiraSettings

    def find(self, incident: str, since: datetime, deadline: Deadline) -> Ticket | None:
        del since
        jql = f'project = "{self.settings.project}" AND labels = "{incident}" ORDER BY created ASC'
        path = f"{_API}/search/jql" if self.settings.user else f"{_API}/search"
        answer = self.api.get(path, deadline, {"jql": jql, "fields": _FIELDS, "maxResults": "2"})
        issues = list_of(answer.get("issues") if isinstance(answer, dict) else None, path)
        return self._ticket(issues[0], path) if issues else None

    def create(self, text: TicketText, deadline: Deadline) -> Ticket:
        fields = {
            "project": {"key": self.settings.project},
            "issuetype": {"name": self.settings.issue_type},
            "summary": text.title,
            "description": text.body,
            "labels": [LABEL, text.incident],
        }
        path = f"{_API}/issue"
        return self._ticket(self.api.post(path, deadline, json={"fields": fields}), path)

    def attach(self, key: str, attachment: Attachment, deadline: Deadline) -> None:
        """Attach a file unless the issue has one of its name."""
        issue = self._issue(key, deadline)
        known = issue.get("fields", {}).get("attachment") or []
        if any(isinstance(one, dict) and one.get("filename") == attachment.name for one in known):
            return
        files = {"file": (attachment.name, attachment.text.encode(), "text/markdown")}
        headers = {"X-Atlassian-Token": "no-check"}
        self.api.post(f"{_API}/issue/{key}/attachments", deadline, files=files, headers=headers)

    def note(self, key: str, text: str, deadline: Deadline) -> None:
        self.api.post(f"{_API}/issue/{key}/comment", deadline, json={"body": text})

    def has_note(self, key: str, marker: str, deadline: Deadline) -> bool:
        path = f"{_API}/issue/{key}/comment"
        answer = self.api.get(path, deadline, {"orderBy": "-created", "maxResults": _NOTES})
        notes = list_of(answer.get("comments") if isinstance(answer, dict) else None, path)
        return any(isinstance(note, dict) and marker in str(note.get("body", "")) for note in notes)

    def resolve(self, key: str, deadline: Deadline) -> None:
        """Take the transition of the site's settings, or the first one that leads to a status of the category done."""
        path = f"{_API}/issue/{key}/transitions"
        answer = self.api.get(path, deadline)
        found = list_of(answer.get("transitions") if isinstance(answer, dict) else None, path)
        for transition in found:
            if isinstance(transition, dict) and self._closes(transition):
                chosen = {"transition": {"id": key_of(transition, "id", path)}}
                self.api.post(path, deadline, json=chosen)
                return
        named = f"transition {self.settings.close_transition!r}" if self.settings.close_transition else "transition"
        remedy = "name one in tickets.close_transition, and let the token's account transition issues"
        raise EdgeError(f"its workflow has no {named} to a status that is done", where=key, remedy=remedy)

    def _closes(self, transition: dict[str, object]) -> bool:
        if self.settings.close_transition:
            return transition.get("name") == self.settings.close_transition
        return _is_done(transition.get("to"))

    def read(self, key: str, deadline: Deadline) -> Ticket:
        return self._ticket(self._issue(key, deadline), key)

    def _issue(self, key: str, deadline: Deadline) -> dict[str, Any]:
        found = self.api.get(f"{_API}/issue/{key}", deadline, {"fields": _FIELDS})
        if not isinstance(found, dict):
            raise EdgeError("there is no such ticket", where=key, remedy="look whether it was moved or deleted")
        return found

    def _ticket(self, issue: Any, where: str) -> Ticket:
        key = key_of(issue, "key", where)
        fields = issue.get("fields") if isinstance(issue, dict) else None
        closed = _is_done(fields.get("status") if isinstance(fields, dict) else None)
        return Ticket(key=key, url=f"{self.settings.url}/browse/{key}", closed=closed)


def _is_done(status: Any) -> bool:
    """Return whether a status is of the category done; the others are new and indeterminate."""
    category = status.get("statusCategory") if isinstance(status, dict) else None
    return isinstance(category, dict) and category.get("key") == "done"

"""Ticket systems on the loopback, written from the public documentation of their APIs.

Jira Cloud, platform REST API v2: https://developer.atlassian.com/cloud/jira/platform/rest/v2/
GitHub, issues, version 2022-11-28: https://docs.github.com/en/rest/issues/issues
The webhook of docs/how-to/tickets.md.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.ports import reserve_port

HOST = "127.0.0.1"
TOKEN = "t0ken-of-the-ticket-system"


@dataclass
class Item:
    """A ticket as all of the systems know it."""

    number: int
    title: str
    body: str
    labels: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    closed: bool = False


@dataclass
class TicketServer:
    """One ticket system. `drops`: paths whose next POST is carried out and not answered. `statuses`: answers of the next
    requests instead of carrying them out. `asked`: method and path of each request.
    """

    port: int = field(default_factory=lambda: reserve_port(HOST))
    items: list[Item] = field(default_factory=list)
    drops: list[str] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def answer(
        self, method: str, path: str, query: dict[str, str], body: Any, headers: dict[str, str]
    ) -> tuple[int, Any]:
        raise NotImplementedError

    def item(self, number: str) -> Item | None:
        return next((item for item in self.items if str(item.number) == number), None)

    def authorised(self, headers: dict[str, str]) -> bool:
        return headers.get("authorization") == f"Bearer {TOKEN}"


class Jira(TicketServer):
    """`cloud`: signs in with e-mail and token, and searches at `/search/jql`."""

    cloud = True

    def authorised(self, headers: dict[str, str]) -> bool:
        kind = headers.get("authorization", "").partition(" ")[0]
        return kind == ("Basic" if self.cloud else "Bearer")

    def answer(
        self, method: str, path: str, query: dict[str, str], body: Any, headers: dict[str, str]
    ) -> tuple[int, Any]:
        if path == f"/rest/api/2/search{'/jql' if self.cloud else ''}":
            label = re.search(r'labels = "([^"]+)"', query["jql"])
            assert label
            assert 'project = "OPS"' in query["jql"]
            return 200, {"issues": [self.issue(item) for item in self.items if label[1] in item.labels]}
        if (method, path) == ("POST", "/rest/api/2/issue"):
            fields = body["fields"]
            assert fields["project"] == {"key": "OPS"}
            assert fields["issuetype"] == {"name": "Task"}
            assert len(fields["summary"]) <= 255
            item = Item(len(self.items) + 1, fields["summary"], fields["description"], fields["labels"])
            self.items.append(item)
            return 201, {"id": str(10000 + item.number), "key": f"OPS-{item.number}", "self": "…"}
        return self.one(method, path, body, headers)

    def one(self, method: str, path: str, body: Any, headers: dict[str, str]) -> tuple[int, Any]:
        found = re.fullmatch(r"/rest/api/2/issue/OPS-(\d+)(/comment|/attachments|/transitions)?", path)
        item = self.item(found[1]) if found else None
        if found is None or item is None:
            return 404, {
                "errorMessages": ["Issue does not exist or you do not have permission to see it."],
                "errors": {},
            }
        if found[2] == "/comment":
            return self.comments(method, body, item)
        if found[2] == "/transitions":
            return self.transitions(method, body, item)
        if found[2] == "/attachments":
            assert headers["x-atlassian-token"] == "no-check"
            (name, text), *_ = parts(body, headers["content-type"])
            item.files[name] = text
            return 200, [{"filename": name}]
        return 200, self.issue(item)

    def comments(self, method: str, body: Any, item: Item) -> tuple[int, Any]:
        if method == "POST":
            item.notes.append(body["body"])
            return 201, {"id": "1", "body": body["body"]}
        return 200, {"comments": [{"body": note} for note in reversed(item.notes)], "total": len(item.notes)}

    def transitions(self, method: str, body: Any, item: Item) -> tuple[int, Any]:
        """Jira's simplified workflow: from each status to each status."""
        steps = {"11": ("To Do", "new"), "21": ("In Progress", "indeterminate"), "31": ("Done", "done")}
        if method == "POST":
            item.closed = steps[body["transition"]["id"]][1] == "done"
            return 204, None
        found = [
            {"id": key, "name": name, "to": {"name": name, "statusCategory": {"key": category}}}
            for key, (name, category) in steps.items()
        ]
        return 200, {"expand": "transitions", "transitions": found}

    def issue(self, item: Item) -> dict[str, Any]:
        status = {"statusCategory": {"key": "done" if item.closed else "new"}}
        files = [{"filename": name} for name in item.files]
        return {"key": f"OPS-{item.number}", "fields": {"status": status, "attachment": files}}


class JiraDataCenter(Jira):
    cloud = False


class Github(TicketServer):
    def answer(
        self, method: str, path: str, query: dict[str, str], body: Any, headers: dict[str, str]
    ) -> tuple[int, Any]:
        found = re.fullmatch(r"/repos/acme/ops/issues(?:/(\d+)(/comments)?)?", path)
        if found is None:
            return 404, {"message": "Not Found"}
        if found[1] is None:
            return self.create(body) if method == "POST" else self.listed(query)
        item = self.item(found[1])
        if item is None:
            return 404, {"message": "Not Found"}
        if found[2] and method == "POST":
            assert len(body["body"]) <= 65536
            item.notes.append(body["body"])
            return 201, {"id": 1, "body": body["body"]}
        if found[2]:
            return 200, [{"body": note} for note in page(item.notes, query)]
        if method == "PATCH":
            assert body == {"state": "closed", "state_reason": "completed"}
            item.closed = True
        return 200, self.issue(item)

    def create(self, body: Any) -> tuple[int, Any]:
        assert len(body["body"]) <= 65536
        item = Item(len(self.items) + 1, body["title"], body["body"])
        self.items.append(item)
        return 201, self.issue(item)

    def listed(self, query: dict[str, str]) -> tuple[int, Any]:
        assert query["state"] == "all"
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", query["since"])
        return 200, [self.issue(item) for item in page(list(reversed(self.items)), query)]

    def issue(self, item: Item) -> dict[str, Any]:
        return {
            "number": item.number,
            "html_url": f"https://github.com/acme/ops/issues/{item.number}",
            "body": item.body,
            "state": "closed" if item.closed else "open",
        }


class Webhook(TicketServer):
    def answer(
        self, method: str, path: str, query: dict[str, str], body: Any, headers: dict[str, str]
    ) -> tuple[int, Any]:
        if path == "/tickets" and method == "GET":
            found = next((item for item in self.items if item.labels == [query["incident"]]), None)
            return (200, self.ticket(found)) if found else (404, {})
        if method == "POST" and headers.get("idempotency-key") in self.keys:
            return 200, self.ticket(self.items[-1])
        if path == "/tickets":
            self.keys.add(headers["idempotency-key"])
            self.items.append(Item(len(self.items) + 1, body["title"], body["body"], [body["incident"]]))
            return 201, self.ticket(self.items[-1])
        found = re.fullmatch(r"/tickets/T-(\d+)(/notes|/attachments|/close)?", path)
        item = self.item(found[1]) if found else None
        if found is None or item is None:
            return 404, {}
        if found[2]:
            self.keys.add(headers.get("idempotency-key", ""))
            if found[2] == "/close":
                item.closed = True
            elif found[2] == "/notes":
                item.notes.append(body["text"])
            else:
                item.files[body["name"]] = body["text"]
            return 200, None
        return 200, self.ticket(item)

    def ticket(self, item: Item) -> dict[str, Any]:
        return {"key": f"T-{item.number}", "url": f"https://tickets.example/{item.number}", "closed": item.closed}


def page(items: list[Any], query: dict[str, str]) -> list[Any]:
    size, number = int(query["per_page"]), int(query["page"])
    return items[(number - 1) * size : number * size]


def parts(body: bytes, content_type: str) -> list[tuple[str, str]]:
    """Return file names and texts of a multipart form (RFC 7578)."""
    message = message_from_bytes(f"Content-Type: {content_type}\r\n\r\n".encode() + body, policy=policy.default)
    return [(str(part.get_filename()), part.get_content().strip()) for part in message.iter_parts()]


@contextmanager
def running(server: TicketServer) -> Iterator[TicketServer]:
    class Handler(BaseHTTPRequestHandler):
        def _handle(self) -> None:
            split = urlsplit(self.path)
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            server.asked.append(f"{self.command} {split.path}")
            query = {name: values[0] for name, values in parse_qs(split.query).items()}
            body = json.loads(content) if headers.get("content-type") == "application/json" else content
            if server.statuses:
                status, answer = (
                    server.statuses.pop(0),
                    {"message": f"an error that repeats {headers.get('authorization')}"},
                )
            elif not server.authorised(headers):
                status, answer = 401, {"message": "Bad credentials"}
            else:
                status, answer = server.answer(self.command, split.path, query, body, headers)
            if self.command == "POST" and split.path in server.drops:
                server.drops.remove(split.path)
                self.close_connection = True
                return
            text = json.dumps(answer).encode() if answer is not None else b""
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PATCH = _handle  # noqa: N815 — the library's names

        def log_message(self, *_: object) -> None:
            pass

    http = ThreadingHTTPServer((HOST, server.port), Handler)
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()

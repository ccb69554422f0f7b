"""An emulator of NetBox's REST API: lists with filters, fields and pages, single objects, changes of a
few kinds of objects, tokens.

Written from NetBox's documentation (https://netboxlabs.com/docs/netbox/integrations/rest-api/, the pages on pagination,
filtering, `fields` and authentication), and held against recorded answers of NetBox 4.6.8 by `test_emulator.py`. What it
does not have: nested serializers of its own (objects are kept as they are answered), GraphQL, permissions by object.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.ports import reserve_port

DEFAULT_PAGE, MAX_PAGE = 50, 1000
TOKEN = "0123456789abcdef0123456789abcdef01234567"
HOST = "http://netbox.example"
"""The host in the objects of a world, as in the recordings."""
Item = dict[str, Any]


def _choice(item: Item, name: str) -> Any:
    value = item.get(name)
    return value.get("value") if isinstance(value, dict) else value


def _of(name: str, key: str) -> Callable[[Item, World], Any]:
    return lambda item, _world: (item.get(name) or {}).get(key)


def _device_of(item: Item) -> Any:
    holder = item.get("assigned_object") or item
    return (holder.get("device") or {}).get("id")


def _site_of_device(item: Item, world: World) -> Any:
    device = world.pages["dcim/devices"].get(_device_of(item)) or {}
    return (device.get("site") or {}).get("id")


def _sites_of_cable(item: Item, world: World) -> set[Any]:
    ends = [end["object"] for end in (*item["a_terminations"], *item["b_terminations"])]
    return {_site_of_device(end, world) for end in ends}


Getter = Callable[[Item, Any], Any]
FILTERS: Mapping[str, Mapping[str, Getter]] = {
    "dcim/sites": {"slug": lambda item, _: item.get("slug")},
    "dcim/devices": {
        "role": _of("role", "slug"),
        "site": _of("site", "slug"),
        "site_id": _of("site", "id"),
        "rack_id": _of("rack", "id"),
        "status": lambda item, _: _choice(item, "status"),
        "serial": lambda item, _: (item.get("serial") or "").lower(),
        "name": lambda item, _: (item.get("name") or "").lower(),
    },
    "dcim/interfaces": {
        "device_id": lambda item, _: _device_of(item),
        "site_id": _site_of_device,
        "mgmt_only": lambda item, _: str(item.get("mgmt_only")).lower(),
    },
    "ipam/ip-addresses": {
        "device_id": lambda item, _: _device_of(item),
        "address": lambda item, _: item["address"].partition("/")[0],
    },
    "dcim/cables": {"site_id": _sites_of_cable, "status": lambda item, _: _choice(item, "status")},
    "dcim/inventory-items": {"device_id": lambda item, _: _device_of(item)},
    "extras/tags": {"slug": lambda item, _: item.get("slug")},
    "extras/journal-entries": {
        "assigned_object_id": lambda item, _: item.get("assigned_object_id"),
        "assigned_object_type": lambda item, _: item.get("assigned_object_type"),
    },
}
"""Page → filter → the value that it compares. Others are ignored, as NetBox does."""
KNOWN_VALUES = {"role", "site", "site_id", "rack_id", "status", "device_id"}
"""Filters whose unknown values are refused."""
STATUSES = {"offline", "active", "planned", "staged", "failed", "inventory", "decommissioning"}
JOURNAL_KINDS = {"info", "success", "warning", "danger"}
FOLDED = {"serial", "name"}


@dataclass
class World:
    """The objects by page and id, and what was asked. `on_request` may change the world before an answer."""

    pages: dict[str, dict[int, Item]] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=lambda: {TOKEN: "admin"})
    version: str = "4.6.8"
    max_page: int = MAX_PAGE
    asked: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    on_request: Callable[[World, str, str], Answer | None] | None = None
    base: str = HOST
    custom_fields: set[str] = field(default_factory=set)
    writes: int = 0
    lost: bool = False
    """The connection ends before the next answer: what was asked is done, and the client does not learn it."""

    def add(self, page: str, *items: Item) -> None:
        self.pages.setdefault(page, {}).update({item["id"]: item for item in items})


@dataclass(frozen=True)
class Answer:
    """One answer: JSON, or bytes as they are."""

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


def answer(world: World, method: str, target: str, headers: Mapping[str, str], body: bytes = b"") -> Answer:
    """Return NetBox's answer to one request."""
    parts = urlsplit(target)
    query = parse_qs(parts.query, keep_blank_values=True)
    with world.lock:
        world.asked.append(f"{method} {target}")
        if world.on_request is not None and (special := world.on_request(world, method, target)) is not None:
            return special
        refused = _unauthenticated(world, headers)
        if refused is not None:
            return refused
        if not parts.path.endswith("/"):
            return Answer(301, None, {"Location": f"{parts.path}/"})
        path = parts.path.removeprefix("/api/").strip("/")
        if method != "GET":
            return _write(world, method, path, headers, body)
        return _resource(world, path, query)


def _resource(world: World, path: str, query: Mapping[str, list[str]]) -> Answer:
    """Return the status, a list, or one object."""
    if path == "status":
        return Answer(200, {"netbox-version": world.version, "netbox-full-version": world.version})
    if path in world.pages:
        return _list(world, path, query)
    page, _, rest = path.rpartition("/")
    if page in world.pages:
        found = world.pages[page].get(int(rest)) if rest.isdecimal() else None
        detail = "No Device matches the given query." if rest.isdecimal() else "Not found."
        return Answer(200, found, _etag(world, found)) if found else Answer(404, {"detail": detail})
    return Answer(404, b"<!DOCTYPE html>", {"Content-Type": "text/html"})


def _unauthenticated(world: World, headers: Mapping[str, str]) -> Answer | None:
    words = headers.get("authorization", "").split()
    if not words or words[0].lower() not in ("token", "bearer"):
        return Answer(403, {"detail": "Authentication credentials were not provided."})
    if len(words) != 2:
        form = 'Must be in the form "Bearer <key>.<token>" or "Token <token>"'
        return Answer(403, {"detail": f"Invalid authorization header: {form}"})
    if words[1] not in world.tokens:
        return Answer(403, {"detail": f"Invalid {'v2' if words[1].startswith('nbt_') else 'v1'} token"})
    return None


def _etag(world: World, item: Item) -> dict[str, str]:
    """Return the ETag of a single object, which NetBox has since 4.6."""
    new = tuple(map(int, world.version.split(".")[:2])) >= (4, 6)
    return {"ETag": f'W/"{item.get("last_updated")}"'} if new else {}


def _write(world: World, method: str, path: str, headers: Mapping[str, str], content: bytes) -> Answer:
    """Create or change one object; a token of a user `ro` may not."""
    token = headers.get("authorization", "").split()[-1]
    if world.tokens[token] == "ro":
        return Answer(403, {"detail": "You do not have permission to perform this action."})
    try:
        body = json.loads(content)
    except ValueError as error:
        return Answer(400, {"detail": f"JSON parse error - {error}"})
    if method == "POST":
        return _create_all(world, path, body) if isinstance(body, list) else _create(world, path, body)
    page, _, rest = path.rpartition("/")
    item = world.pages[page].get(int(rest))
    if item is None:
        return Answer(404, {"detail": "No Device matches the given query."})
    expected, etag = headers.get("if-match"), _etag(world, item).get("ETag", "")
    if expected and etag and expected != etag:
        return Answer(412, {"detail": "Precondition failed."}, {"ETag": etag})
    return _change(world, page, item, body)


def _change(world: World, page: str, item: Item, body: Item) -> Answer:
    """Change the known fields of one object; unknown ones are ignored, as NetBox does."""
    problems = _wrong(world, body, STATUSES if page == "dcim/devices" else {"active", "failed"})
    if problems:
        return Answer(400, problems)
    if "status" in body:
        item["status"] = {"value": body["status"], "label": body["status"].title()}
    if "custom_fields" in body:
        item["custom_fields"] = {**item["custom_fields"], **body["custom_fields"]}
    if "tags" in body:
        item["tags"] = [_tag(world, tag) for tag in body["tags"]]
    item |= {name: body[name] for name in ("serial", "part_id") if name in body}
    world.writes += 1
    item["last_updated"] = f"2026-01-02T00:00:00.{world.writes:06}Z"
    return Answer(200, item, _etag(world, item))


def _wrong(world: World, body: Item, statuses: set[str]) -> Item:
    """Return NetBox's complaint about a body, empty where there is none."""
    status = body.get("status", "active")
    if isinstance(status, dict):
        reason = 'Value must be passed directly (e.g. "foo": 123); do not use a dictionary or list.'
        return {"status": [reason]}
    if status not in statuses:
        return {"status": [f"{status} is not a valid choice."]}
    for name in body.get("custom_fields", {}):
        if name not in world.custom_fields:
            return {"custom_fields": {name: f"Custom field '{name}' does not exist for this object type."}}
    for tag in body.get("tags", []):
        if isinstance(tag, str):
            reason = "Related objects must be referenced by numeric ID or by dictionary of attributes."
            return {"tags": [f"{reason} Received an unrecognized value: {tag}"]}
        if _tag(world, tag) is None:
            return {"tags": [f"Related object not found using the provided attributes: {tag}"]}
    return {}


def _tag(world: World, wanted: Item) -> Item | None:
    tags = world.pages.get("extras/tags", {}).values()
    return next((tag for tag in tags if all(tag.get(name) == value for name, value in wanted.items())), None)


def _create(world: World, page: str, body: Item) -> Answer:
    items = world.pages.setdefault(page, {})
    new: Item = {"id": max(items, default=0) + 1, "last_updated": "2026-01-02T00:00:00Z", "tags": []}
    devices = world.pages["dcim/devices"]
    if page == "dcim/inventory-items":
        if "device" not in body:
            return Answer(400, {"device": ["This field is required."]})
        device = devices[body["device"]]
        new |= {**body, "device": {"id": device["id"], "name": device["name"]}, "status": {"value": "active"}}
    elif page == "extras/journal-entries":
        if body.get("kind", "info") not in JOURNAL_KINDS:
            return Answer(400, {"kind": [f"{body['kind']} is not a valid choice."]})
        if body["assigned_object_id"] not in devices:
            where = f"DCIM > Device ID {body['assigned_object_id']}"
            return Answer(400, {"non_field_errors": [f"Invalid assigned_object: {where}"]})
        new |= {**body, "kind": {"value": body.get("kind", "info")}}
    world.writes += 1
    items[new["id"]] = new
    return Answer(201, new)


def _create_all(world: World, page: str, bodies: list[Item]) -> Answer:
    """Create all or none, as NetBox does; its complaint does not name the entry (recorded: bulk-post-one-bad)."""
    pages, writes = {name: dict(items) for name, items in world.pages.items()}, world.writes
    answers = [_create(world, page, body) for body in bodies]
    wrong = next((one for one in answers if one.status != 201), None)
    if wrong is not None:
        world.pages, world.writes = pages, writes
        return wrong
    return Answer(201, [one.body for one in answers])


def _list(world: World, page: str, query: Mapping[str, list[str]]) -> Answer:
    items = list(world.pages[page].values())
    for name, values in query.items():
        problem = _problem(world, page, name, values)
        if problem is not None:
            return problem
        items = [item for item in items if _fits(world, page, item, name, values)]
    ordering = query.get("ordering", [""])[0]
    if ordering.removeprefix("-") in ("id", "serial", "name"):
        key = ordering.removeprefix("-")
        items.sort(key=lambda item: (item.get(key) or 0) if key == "id" else (item.get(key) or ""))
        if ordering.startswith("-"):
            items.reverse()
    limit, offset = _limit(world, query), _number(query, "offset") or 0
    shown = [_fielded(item, query) for item in items[offset : offset + limit]]
    return Answer(200, {"count": len(items), **_links(world, page, query, len(items)), "results": shown})


def _limit(world: World, query: Mapping[str, list[str]]) -> int:
    """Return the page size: 0 and more than the largest are that one, what is no number is the default."""
    limit = _number(query, "limit")
    if limit is None:
        return DEFAULT_PAGE
    return min(limit or world.max_page, world.max_page)


def _number(query: Mapping[str, list[str]], name: str) -> int | None:
    text = query.get(name, [""])[0]
    return int(text) if text.isdecimal() else None


def _links(world: World, page: str, query: Mapping[str, list[str]], count: int) -> Item:
    limit, offset = _limit(world, query), _number(query, "offset") or 0

    def link(at: int) -> str:
        pairs = [(name, value) for name in sorted({*query, "limit", "offset"}) for value in _pairs(name, at)]
        return f"{world.base}/api/{page}/?{urlencode(pairs)}"

    def _pairs(name: str, at: int) -> list[str]:
        if name == "offset":
            return [str(at)] if at else []
        return [str(limit)] if name == "limit" else list(query[name])

    return {
        "next": link(offset + limit) if offset + limit < count else None,
        "previous": link(max(offset - limit, 0)) if offset > 0 else None,
    }


def _fielded(item: Item, query: Mapping[str, list[str]]) -> Item:
    wanted = query.get("fields", [""])[0]
    left_out = set(query.get("omit", [""])[0].split(","))
    if wanted:
        return {name: value for name, value in item.items() if name in wanted.split(",")}
    return {name: value for name, value in item.items() if name not in left_out}


def _problem(world: World, page: str, name: str, values: list[str]) -> Answer | None:
    getter = FILTERS.get(page, {}).get(name)
    if getter is None or name not in KNOWN_VALUES:
        return None
    for value in values:
        if name.endswith("_id") and value != "null" and not value.isdecimal():
            return Answer(400, {name: [f"“{value}” is not a valid value."]})
        if value not in _known(world, page, name):
            return Answer(400, {name: [f"Select a valid choice. {value} is not one of the available choices."]})
    return None


def _known(world: World, page: str, name: str) -> set[str]:
    if name == "status":
        return STATUSES if page == "dcim/devices" else {"connected", "planned", "decommissioning"}
    if name == "device_id":
        return {str(id_) for id_ in world.pages["dcim/devices"]}
    found: set[str] = {"null"} if name == "rack_id" else set()
    for item in world.pages["dcim/devices"].values():
        value = FILTERS["dcim/devices"][name](item, world)
        found.add(str(value))
    return found


def _fits(world: World, page: str, item: Item, name: str, values: list[str]) -> bool:
    if name == "id":
        return str(item["id"]) in values
    if name == "tag":
        return page != "dcim/devices" or {*values} <= {tag["slug"] for tag in item.get("tags", [])}
    getter = FILTERS.get(page, {}).get(name)
    if getter is None:
        return True
    found = getter(item, world)
    wanted = {value.lower() for value in values} if name in FOLDED else {*values}
    if isinstance(found, set):
        return bool(wanted & {str(one) for one in found})
    return ("null" if found is None else str(found)) in wanted


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each answer to a write waits 40 ms for an acknowledgement
    world: World

    def _answer(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        headers = {name.lower(): value for name, value in self.headers.items()}
        found = answer(self.world, self.command, self.path, headers, self.rfile.read(length))
        if self.world.lost:
            self.world.lost = False
            self.close_connection = True
            return
        body = found.body if isinstance(found.body, bytes) else b"" if found.body is None else _json(found.body)
        self.send_response(found.status)
        for name, value in {"Content-Type": "application/json", "API-Version": "4.6", **found.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_PATCH(self) -> None:
        self._answer()

    def log_message(self, *_arguments: object) -> None:
        """Print nothing."""


def _json(body: Any) -> bytes:
    return json.dumps(body).encode()


@contextmanager
def served(world: World, wrap: Callable[[ThreadingHTTPServer], None] = lambda _server: None) -> Iterator[str]:
    """Serve a world at the returned URL; `wrap` may put TLS around the server's socket."""
    port = reserve_port("127.0.0.1")
    handler = type("Handler", (_Handler,), {"world": world})
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    wrap(server)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

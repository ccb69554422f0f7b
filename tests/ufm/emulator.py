"""An emulator of UFM's REST API: events, alarms, ports, links, systems, unhealthy ports, jobs, version.

Written from NVIDIA's public documentation, UFM Enterprise REST API Guide 6.12 to 6.22
(https://docs.nvidia.com/networking/display/ufmenterpriserestapiv6221), and its public SDK
(https://github.com/Mellanox/ufm_sdk_3.0: isolation through `unhealthy_ports`, tokens below `ufmRestV3`; the actions
`sw_upgrade` and `reboot` of scripts/ufm_devices, which ask for the capability of that name). What it does not have: other
actions, monitoring, and the delays of a real subnet manager.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from tests.ports import reserve_port

TOKEN = "0gUy7TwLvTmFkXyTkcsEWD9KKNvq6f"
USER, PASSWORD = "monitor", "ufm-password-81c2"
NAMES = {110: "Symbol Error", 112: "Link Downed", 328: "Link is Up", 329: "Link is Down", 512: "SM UP"}


@dataclass
class Ufm:
    """One UFM. `old`: events have their code in `type`, as before 6.17. `statuses`: answers of the next requests.
    `jobs`: by number, how each is at the next looks, the last one for ever; `parts`: of a job. `dropped`: the next order is carried out and not answered. `orders`: every
    action as it was asked for, and `on_order` receives it with its job; `marks`: every marking, as it was asked for.
    """

    events: list[dict[str, Any]] = field(default_factory=list)
    alarms: list[dict[str, Any]] = field(default_factory=list)
    ports: list[dict[str, Any]] = field(default_factory=list)
    links: list[dict[str, Any]] = field(default_factory=list)
    systems: list[dict[str, Any]] = field(default_factory=list)
    unhealthy: list[str] = field(default_factory=list)
    jobs: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    parts: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    marks: list[tuple[str, str]] = field(default_factory=list)
    orders: list[dict[str, Any]] = field(default_factory=list)
    on_order: Callable[[dict[str, Any], str], None] = lambda _order, _job: None
    version: str = "6.18.0-5"
    old: bool = False
    statuses: list[int] = field(default_factory=list)
    dropped: bool = False
    asked: list[str] = field(default_factory=list)

    def add_event(self, code: int, port: str, at: datetime, text: str = "", kind: str = "IBPort") -> None:
        """Add an event about a port (`GUID_NUMBER`), as UFM writes it."""
        coded = {"type": str(code)} if self.old else {"type": kind, "event_type": str(code)}
        self.events.append(
            {
                "id": len(self.events) + 1,
                "name": NAMES.get(code, "Event"),
                **coded,
                "severity": "Warning",
                "timestamp": at.strftime("%Y-%m-%d %H:%M:%S"),
                "counter": "N/A",
                "category": "Hardware",
                "object_name": port,
                "object_path": f"default / Switch: {port}",
                "write_to_syslog": False,
                "description": text,
            }
        )

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        lists = {
            "/app/events": self.events,
            "/app/alarms": self.alarms,
            "/resources/ports": self.ports,
            "/resources/links": self.links,
            "/resources/systems": self.systems,
        }
        if method == "GET" and path in lists:
            return 200, lists[path]
        if (method, path) == ("GET", "/app/ufm_version"):
            return 200, {"ufm_release_version": self.version, "opensm": "5.20.0_ef1f438", "plugins": {}}
        if method == "GET" and path.startswith("/jobs"):
            return self.jobs_at(path)
        if (method, path) == ("POST", "/actions"):
            return self.act(body)
        if path == "/app/unhealthy_ports":
            return self.mark(body) if method == "PUT" else (200, [_unhealthy(name) for name in self.unhealthy])
        return 404, {"error": f"no such resource: {path}"}

    def jobs_at(self, path: str) -> tuple[int, Any]:
        """Answer as the SDK's utils/job_polling.py asks: all jobs, one by its number, or the parts of one."""
        target, _, query = path.partition("?")
        number = target.removeprefix("/jobs").strip("/")
        if parent := query.removeprefix("parent_id="):
            return 200, self.parts.get(parent, [])
        if not number:
            return 200, [looks[0] for looks in self.jobs.values()]
        if number not in self.jobs:
            return 404, {"error": f"no such job: {number}"}
        looks = self.jobs[number]
        return 200, looks.pop(0) if len(looks) > 1 else looks[0]

    def act(self, body: Any) -> tuple[int, Any]:
        """Take an action on systems that have the capability, as a job."""
        needed = {"sw_upgrade": {"username", "password", "path", "image", "protocol", "server"}, "reboot": set()}
        action, ids = body.get("action"), body.get("object_ids", [])
        able = [one["guid"] for one in self.systems if action in one.get("capabilities", [])]
        if action not in needed or (body.get("object_type"), body.get("identifier")) != ("System", "id"):
            return 400, "no such action"
        if set(body.get("params", {})) != needed[action] or not set(ids) <= set(able):
            return 400, f"{action} is not supported on {ids}: {body.get('params')}"
        number = str(1 + max((int(one.partition(".")[0]) for one in self.jobs), default=40))
        self.orders.append(body)
        self.jobs[number] = [
            {"ID": number, "Status": "Running", "Progress": 0, "Operation": action, "RelatedObjects": " ".join(ids)}
        ]
        self.on_order(body, number)
        return 202, f"/ufmRest/jobs/{number}"

    def mark(self, body: Any) -> tuple[int, Any]:
        policy = body.get("ports_policy") if isinstance(body, dict) else None
        if policy == "UNHEALTHY" and body.get("action") not in ("isolate", "no_discover"):
            return 400, "action must be isolate or no_discover"
        if policy not in ("UNHEALTHY", "HEALTHY"):
            return 400, "ports_policy must be HEALTHY or UNHEALTHY"
        for name in body["ports"]:
            self.marks.append((policy, name))
            if policy == "UNHEALTHY" and name not in self.unhealthy:
                self.unhealthy.append(name)
            if policy == "HEALTHY" and name in self.unhealthy:
                self.unhealthy.remove(name)
        return 200, {}


def _unhealthy(name: str) -> dict[str, Any]:
    guid, _, number = name.partition("_")
    return {
        "UnhealthyGUID": guid,
        "UnhealthyPortNumber": int(number),
        "UnhealthyPort": f"{guid}/{number}",
        "Condition": ["MANUAL"],
        "State": "Warning",
        "StatusTime": "Sun Apr 21 12:22:13 2024",
    }


class _Handler(BaseHTTPRequestHandler):
    ufm: Ufm

    def _answered(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = urlsplit(self.path).path
        query = urlsplit(self.path).query
        self.ufm.asked.append(f"{self.command} {path}")
        base, _, rest = path.lstrip("/").partition("/")
        body = json.loads(content) if content else None
        if self.ufm.statuses:
            status, answer = self.ufm.statuses.pop(0), f"refused: {self.headers.get('Authorization')}"
        elif not self._authorised(base):
            status, answer = 401, "Unauthorized"
        else:
            status, answer = self.ufm.answer(self.command, f"/{rest}?{query}" if query else f"/{rest}", body)
        if self.command in ("PUT", "POST") and self.ufm.dropped:
            self.ufm.dropped = False
            self.close_connection = True
            return
        text = json.dumps(answer).encode()
        self.send_response(status)
        if status == 202:
            self.send_header("Location", answer)
        if 300 <= status < 400:
            self.send_header("Location", "http://192.0.2.1/ufm")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def _authorised(self, base: str) -> bool:
        plain = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        wanted = {"ufmRest": f"Basic {plain}", "ufmRestV3": f"Basic {TOKEN}"}
        return self.headers.get("Authorization") == wanted.get(base)

    do_GET = do_PUT = do_POST = _answered  # noqa: N815 — the library's names

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@contextmanager
def served(ufm: Ufm, wrap: Callable[[ThreadingHTTPServer], None] = lambda _server: None) -> Iterator[str]:
    """Serve at the returned URL; `wrap` may put TLS around the server's socket."""
    port = reserve_port("127.0.0.1")
    server = ThreadingHTTPServer(("127.0.0.1", port), type("Handler", (_Handler,), {"ufm": ufm}))
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

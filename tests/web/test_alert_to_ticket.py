"""From a link that goes down to a ticket, and back: Prometheus, Alertmanager, the page and the commands of the timers are real.

The link is a series of an exporter; the chat is an HTTP server, and the ticket system an emulator. The rules are those of the role
prometheus, without the five minutes that a link must be down; the configurations are those of the roles, with intervals of a second.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusterctl.edges.resources import resource
from clusterctl.edges.web.accounts import AccountFile
from clusterctl.fleet.access import UserRole
from clusterctl.operations import incidents
from clusterctl.operations.context import SiteContext, open_site
from clusterctl.operations.incidents import ListedIncident
from clusterctl_cli.main import run
from lab.tests.lab_kit import eventually
from tests.cli.site_of_three import write
from tests.edges.ansible.role_cases import CASES
from tests.edges.notify.receivers import Receiver, http_receiver
from tests.edges.tickets.emulators import TOKEN, TicketServer, Webhook, running
from tests.ports import reserve_port
from tests.web.browser import MADE, QUICK
from tests.web.served import page

pytestmark = [
    pytest.mark.soak,  # once one step took more than two minutes, while three other processes ran tests
    pytest.mark.skipif(
        shutil.which("prometheus") is None or shutil.which("prometheus-alertmanager") is None,
        reason="prometheus or prometheus-alertmanager is not installed",
    ),
]
WAIT_S = 600.0
HOST = "127.0.0.1"
PORTS = 'node_infiniband_physical_state_id{{device="mlx5_0",port="1"}} {}\n'
DOWN, UP = 2, 5
"""Physical states of a port: polling, and link up."""
SECTIONS = """
notify:
  channels: {{chat: {{url: {{file: secrets/chat-url}}}}}}
  routes: [{{to: [chat], incidents: [alert]}}]
tickets: {{close_resolved: true, kind: webhook, url: '{tickets}', token: {{file: secrets/tickets}}, incidents: [alert]}}
"""


@dataclass
class Exporter:
    """node_exporter of n1, as far as its InfiniBand port goes."""

    state: int = UP
    port: int = field(default_factory=lambda: reserve_port(HOST))


@contextmanager
def exporting(exporter: Exporter) -> Iterator[Exporter]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(PORTS.format(exporter.state).encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer((HOST, exporter.port), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield exporter
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def program(folder: Path, *argv: str) -> Iterator[None]:
    with (folder / f"{argv[0]}.log").open("wb") as log:
        started = subprocess.Popen(argv, stdout=log, stderr=log)
    try:
        yield
    finally:
        started.kill()
        started.wait()


def golden(role: str, case: str, name: str) -> Any:
    """Return a configuration that the role writes: a test of the roles holds these files against the templates."""
    return yaml.safe_load((CASES / role / case / "golden" / f"{name}.j2").read_text())


def alertmanager_file(folder: Path, hook: str, token: str) -> Path:
    document = golden("alertmanager", "token", "alertmanager.yml")
    document["route"] |= {"group_wait": "1s", "group_interval": "1s"}
    (receiver,) = document["receivers"]
    (webhook,) = receiver["webhook_configs"]
    (folder / "token").write_text(token)
    webhook["url"] = hook
    webhook["http_config"]["authorization"]["credentials_file"] = str(folder / "token")
    (folder / "alertmanager.yml").write_text(yaml.safe_dump(document))
    return folder / "alertmanager.yml"


def prometheus_file(folder: Path, alertmanager: str, exporter: int) -> Path:
    """Return the role's configuration for these addresses; n1's exporter is the one scrape target of a node."""
    document = golden("prometheus", "default", "prometheus.yml")
    document["global"] |= {"scrape_interval": "1s", "evaluation_interval": "1s"}
    (folder / "rules").mkdir()
    for rules in (resource("roles") / "prometheus/files/rules").glob("*.yml"):
        text = rules.read_text()
        at_once = text.replace("for: 5m", "for: 0s") if rules.stem == "infiniband" else text
        (folder / "rules" / rules.name).write_text(at_once)
    document["rule_files"] = [f"{folder}/rules/*.yml"]
    document["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"] = [alertmanager]
    labels = {"exporter": "node_exporter", "node": "n1", "rack": "A01", "unit": "4"}
    (folder / "nodes.json").write_text(json.dumps([{"targets": [f"{HOST}:{exporter}"], "labels": labels}]))
    (job,) = [job for job in document["scrape_configs"] if job["job_name"] == "node_exporter"]
    job["file_sd_configs"] = [{"files": [f"{folder}/nodes.json"]}]
    document["scrape_configs"] = [job]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(document))
    return folder / "prometheus.yml"


@dataclass(frozen=True)
class Chain:
    """Everything from the exporter to the ticket system."""

    site: Path
    context: SiteContext
    exporter: Exporter
    alertmanager: str
    chat: Receiver
    tickets: TicketServer

    def firing(self) -> list[dict[str, Any]]:
        """Return the alerts that Alertmanager has; empty also while it does not answer."""
        try:
            with urllib.request.urlopen(f"http://{self.alertmanager}/api/v2/alerts", timeout=600) as answer:
                found: list[dict[str, Any]] = json.load(answer)
        except OSError:
            return []
        return found

    def open(self) -> list[ListedIncident]:
        return [one for one in incidents.listed(self.context) if one.facts.what.value == "alert"]

    def timers(self) -> None:
        """Run what the timers of the controller run each minute, two minutes long.

        While the page sends what the same alert has caused, the timer's command is refused; the next minute is not.
        """
        for command in (["notify", "send"], ["tickets", "sync"]) * 2:
            assert eventually(lambda argv=command: run([*argv, "--site", str(self.site)]) == 0, WAIT_S)


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[Chain]:
    site = write(tmp_path)
    with ExitStack() as stack:
        chat, tickets = stack.enter_context(http_receiver()), stack.enter_context(running(Webhook()))
        for name, text in (("chat-url", chat.url("a-token-of-the-chat")), ("tickets", TOKEN)):
            (site / "secrets" / name).write_text(text)
            (site / "secrets" / name).chmod(0o600)
        with (site / "site.yml").open("a") as file:
            file.write(SECTIONS.format(tickets=tickets.url))
        context = open_site(site)
        stack.callback(context.journal.close)
        account = AccountFile(site / "state" / "web", QUICK)
        token = account.add_token("alertmanager", UserRole.OPERATOR, "root", MADE, MADE + timedelta(days=36500))
        address = stack.enter_context(page(context))
        exporter = stack.enter_context(exporting(Exporter()))
        alertmanager = f"{HOST}:{reserve_port(HOST)}"
        config = alertmanager_file(tmp_path, f"{address}/alerts", token)
        argv = ("prometheus-alertmanager", f"--config.file={config}", f"--storage.path={tmp_path / 'am'}")
        listen = (f"--web.listen-address={alertmanager}", "--cluster.listen-address=")
        stack.enter_context(program(tmp_path, *argv, *listen))
        config = prometheus_file(tmp_path, alertmanager, exporter.port)
        argv = ("prometheus", f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'tsdb'}")
        listen = (f"--web.listen-address={HOST}:{reserve_port(HOST)}",)
        stack.enter_context(program(tmp_path, *argv, *listen))
        yield Chain(site, context, exporter, alertmanager, chat, tickets)


def test_a_link_that_goes_down_is_one_message_and_one_ticket(chain: Chain) -> None:
    """One alert, one incident, one message, one ticket, however often the timers run. With the link up again the alert
    ends, the incident is resolved, a message of the same incident follows, the ticket has a last note, and is closed.
    """
    chain.exporter.state = DOWN
    assert eventually(lambda: bool(chain.open()), WAIT_S)
    (alert,) = chain.firing()
    assert (alert["labels"]["alertname"], alert["labels"]["node"]) == ("InfinibandPortDown", "n1")
    (incident,) = chain.open()
    assert [member.node for member in incident.facts.active] == ["n1"]
    chain.timers()
    (opened,) = chain.chat.posts
    (ticket,) = chain.tickets.items
    assert incident.state.id in json.dumps(opened[1])
    assert ticket.labels == [incident.state.id]
    assert "port 1 of mlx5_0 of n1 has no link" in ticket.body
    assert ticket.notes == []

    chain.exporter.state = UP
    assert eventually(lambda: not chain.open(), WAIT_S)
    assert chain.firing() == []
    chain.timers()
    assert len(chain.chat.posts) == 2
    assert incident.state.id in json.dumps(chain.chat.posts[1][1])
    assert chain.tickets.items == [ticket]
    (note,) = ticket.notes
    assert "Resolved" in note
    assert ticket.closed

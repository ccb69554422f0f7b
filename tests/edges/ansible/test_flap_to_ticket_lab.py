"""A link flap of a lab host is one alert, one message and one ticket; healed, all three end. Nothing on the way is a stand-in
but the adapter's counters, the chat and the ticket system.

The lab's fault `flapping-port` counts in the files that the host's node_exporter reads. Prometheus finds the host by the page,
over TLS and with a token, and Alertmanager posts to the page. The rule is that of the role, by the last minutes instead of the
last hour, since it ends so much later than the flap.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from clusterctl.edges.web.accounts import AccountFile
from clusterctl.fleet.access import UserRole
from clusterctl.fleet.event import Kind
from clusterctl.operations import incidents
from clusterctl.operations.context import SiteContext, open_site
from clusterctl.operations.incidents import ListedIncident
from clusterctl_cli.main import run
from clusterctl_lab import faults
from lab.tests.lab_kit import eventually
from tests.cli.site_of_three import append, write
from tests.edges.ansible.rehearsal import rehearsal
from tests.edges.ansible.test_monitoring_lab import GET, Monitoring, put, ssh
from tests.edges.notify.receivers import Receiver, http_receiver
from tests.edges.tickets.emulators import TOKEN, TicketServer, Webhook, running
from tests.events import new_event
from tests.ports import reserve_port
from tests.web.test_alert_to_ticket import SECTIONS
from tests.web.test_service import certificate

pytestmark = [pytest.mark.lab, pytest.mark.soak, pytest.mark.timeout(5400)]
WAIT_S = 1800.0
PORT = "mlx5_0"
TREE = "/srv/sys"
RULES = "/etc/prometheus/rules/clusterctl-infiniband.yml"
CA = "/srv/page.pem"
ALERT = "InfinibandLinkDowned"
WEB = "web: {{certificate: {pem}, private_key: {key}}}\n"


@dataclass(frozen=True)
class Chain:
    """The hosts, and the controller's side: the site with its page, the chat, the ticket system."""

    hosts: Monitoring
    site: Path
    context: SiteContext
    page: str
    tokens: dict[str, str]
    chat: Receiver
    tickets: TicketServer

    def alerts(self) -> list[dict[str, Any]]:
        """Return Alertmanager's alerts about the link."""
        answer = ssh(self.hosts.monitor, "python3", "-c", GET, "http://127.0.0.1:9093/api/v2/alerts")
        return [alert for alert in json.loads(answer) if alert["labels"]["alertname"] == ALERT]

    def open(self) -> list[ListedIncident]:
        found = [one for one in incidents.listed(self.context) if one.facts.what.value == "alert"]
        return [one for one in found if one.facts.code == ALERT]

    def timers(self) -> None:
        """Run what the controller's timers run each minute, two minutes long."""
        for command in (["notify", "send"], ["tickets", "sync"]) * 2:
            assert eventually(lambda argv=command: run([*argv, "--site", str(self.site)]) == 0, WAIT_S)

    def messages(self, incident: str) -> int:
        """Return how many messages were about the incident."""
        return sum(incident in json.dumps(body) for _, body in self.chat.posts)


@contextmanager
def web(site: Path, listen: str) -> Iterator[str]:
    """Run `clusterctl web`; yield its address."""
    argv = [sys.executable, "-m", "clusterctl_cli.main", "web", "--site", str(site), "--listen", listen]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd="/") as served:
        try:
            assert served.stdout is not None
            assert "https://" in served.stdout.readline()
            yield f"https://{listen}"
        finally:
            served.terminate()


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[Chain]:
    if os.geteuid() != 0:
        pytest.skip("lab hosts need root")
    if shutil.which("mmdebstrap") is None or shutil.which("apt-ftparchive") is None:
        pytest.skip("mmdebstrap or apt-utils is not installed")
    with ExitStack() as stack:
        state = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fl", dir="/var/tmp")))
        lab = stack.enter_context(rehearsal(state, lab="flaptest", network="10.189.0.0/16", count=2))
        hosts = Monitoring(lab)
        chat, tickets = stack.enter_context(http_receiver()), stack.enter_context(running(Webhook()))
        site = write(tmp_path)
        append(site, [new_event("node", "id-n1", Kind.NODE_ADDRESSED, {"address": hosts.node.address})])
        pem, key = certificate(tmp_path, x509.IPAddress(ip_address(lab.services)))
        for name, text in (("chat-url", chat.url("a-token-of-the-chat")), ("tickets", TOKEN)):
            (site / "secrets" / name).write_text(text)
            (site / "secrets" / name).chmod(0o600)
        with (site / "site.yml").open("a") as file:
            file.write(SECTIONS.format(tickets=tickets.url) + WEB.format(pem=pem, key=key))
        context = open_site(site)
        stack.callback(context.journal.close)
        accounts, now = AccountFile(site / "state" / "web"), datetime.now(UTC)
        roles = {"alertmanager": UserRole.OPERATOR, "prometheus": UserRole.VIEWER}
        tokens = {
            name: accounts.add_token(name, role, "root", now, now + timedelta(days=1)) for name, role in roles.items()
        }
        page = stack.enter_context(web(site, f"{lab.services}:{reserve_port(lab.services)}"))
        put(hosts.monitor, CA, pem.read_text())
        yield Chain(hosts, site, context, page, tokens, chat, tickets)


def monitored(chain: Chain) -> None:
    """Set the monitoring host up and the exporter of the node, as an operator does; shorten the rule."""
    monitor, node = chain.hosts.monitor, chain.hosts.node
    ssh(monitor, "sudo", "apt-get", "update")
    settings = {
        "alertmanager_webhook_url": f"{chain.page}/alerts",
        "alertmanager_webhook_token": chain.tokens["alertmanager"],
        "alertmanager_webhook_ca_file": CA,
        "prometheus_discovery_url": chain.page,
        "prometheus_discovery_token": chain.tokens["prometheus"],
        "prometheus_discovery_ca_file": CA,
        "prometheus_bmc_exporter": "",
    }
    done = chain.hosts.play("monitoring.yml", monitor, **settings)
    assert done.ok, done.message
    ssh(monitor, "sudo", "sed", "--in-place", r"s/\[1h\]/[4m]/", RULES)
    ssh(monitor, "sudo", "systemctl", "reload", "prometheus")
    ssh(node, "sudo", "systemd-run", "--unit=adapter-sysfs", "adapter-sysfs", "--each", "1", TREE)
    arguments = [f"--path.sysfs={TREE}"]
    done = chain.hosts.play("configure.yml", node, configure_roles=["node_exporter"], node_exporter_arguments=arguments)
    assert done.ok, done.message


def downs(chain: Chain) -> list[str]:
    """Return how often the link went down, by Prometheus."""
    asked = f"node_infiniband_link_downed_total{{node='n1',device='{PORT}'}}"
    return [found["value"] for found in chain.hosts.query(asked)]


def test_a_flap_is_one_alert_one_message_and_one_ticket_until_it_is_healed(chain: Chain) -> None:
    """However often the timers run. The alert ends, the incident is resolved, the second message and the ticket's note are
    of the same incident, and the ticket is closed.
    """
    monitored(chain)
    lab = chain.hosts.lab
    healthy = lab.machines[1]
    assert eventually(lambda: downs(chain) == ["0"], WAIT_S)
    assert (chain.alerts(), chain.open()) == ([], [])

    (flapping,) = faults.inject_all({healthy.name: healthy}, "flapping-port", f"{healthy.name}:{PORT}")
    lab.change(flapping)
    assert eventually(lambda: bool(chain.open()), WAIT_S)
    (alert,) = chain.alerts()
    assert {name: alert["labels"][name] for name in ("node", "device", "rack", "unit", "site")} == {
        "node": "n1", "device": PORT, "rack": "A01", "unit": "4", "site": "lab",
    }  # fmt: skip
    (incident,) = chain.open()
    assert [member.node for member in incident.facts.active] == ["n1"]
    chain.timers()
    assert chain.messages(incident.state.id) == 1
    (ticket,) = [item for item in chain.tickets.items if item.labels == [incident.state.id]]
    assert f"the link of port 1 of {PORT} of n1 went down" in ticket.body
    assert (ticket.notes, ticket.closed) == ([], False)

    lab.change(healthy)
    assert eventually(lambda: not chain.open(), WAIT_S)
    assert chain.alerts() == []
    chain.timers()
    assert chain.messages(incident.state.id) == 2
    assert [item for item in chain.tickets.items if item.labels == [incident.state.id]] == [ticket]
    (note,) = ticket.notes
    assert "Resolved" in note
    assert ticket.closed

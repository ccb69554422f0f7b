"""Prometheus and Alertmanager themselves, on a loopback address, with what the roles write: from a journal's node to a webhook."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import tempfile
import threading
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml

from clusterctl.edges.resources import resource
from clusterctl.edges.site.roles import shipped_roles
from clusterctl.fleet.node import Location, NodeId, Stage
from clusterctl.fleet.roles.selection import RequestedRoles
from clusterctl.fleet.state import NodeState
from clusterctl.operations.scrape_targets import scrape_targets
from clusterctl.ports import Deadline
from tests.edges.ansible.support import host, playbooks

pytestmark = [
    pytest.mark.skipif(
        shutil.which("prometheus") is None or shutil.which("prometheus-alertmanager") is None,
        reason="prometheus or prometheus-alertmanager is not installed",
    ),
]
WAIT_S = 600.0
TOKEN = "a-token-of-the-test-7c1e"
XID = 'DCGM_FI_DEV_XID_ERRORS{{gpu="3",UUID="GPU-0b7a4c1e",modelName="NVIDIA H100 80GB HBM3"}} {}\n'


@dataclass
class Outside:
    """An exporter of which the test sets the text, and the receiver of the webhook."""

    metrics: str = ""
    posted: list[dict[str, Any]] = field(default_factory=list)

    def handler(self) -> type[BaseHTTPRequestHandler]:
        outside = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.end_headers()
                self.wfile.write(outside.metrics.encode())

            def do_POST(self) -> None:
                group = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outside.posted.append({"authorization": self.headers["Authorization"], **group})
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        return Handler


def free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return int(opened.getsockname()[1])


def rendered(folder: Path, variables: dict[str, Any]) -> None:
    """Let Ansible render the templates of both roles into `folder`/ROLE."""
    given = folder / "vars.yml"
    given.write_text(yaml.safe_dump(variables))
    cases = []
    for role in ("prometheus", "alertmanager"):
        source, into = resource("roles") / role, folder / role
        into.mkdir()
        templates = [str(path) for path in sorted((source / "templates").glob("*.j2"))]
        cases.append(
            {
                "role_folder": str(source),
                "of_role": ["defaults", "vars"],
                "vars": str(given),
                "templates": templates,
                "into": str(into),
            }
        )
    with tempfile.TemporaryDirectory(prefix="pb", dir="/tmp") as work_dir:
        (seen,) = playbooks(Path(work_dir)).run(
            "render.yml", [host("mon1")], {"render_cases": cases}, Deadline.after(900)
        )
    assert seen.value.ok, seen.value.message


def arguments(file: Path) -> list[str]:
    """Return the arguments in a file of /etc/default, as systemd takes them apart."""
    (line,) = [line for line in file.read_text().splitlines() if line.startswith("ARGS=")]
    return line.removeprefix("ARGS=").strip('"').split()


def start(folder: Path, outside_port: int, prometheus_port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Start both programs with their roles' files; the token lies where the test may write."""
    alertmanager_port = free_port()
    variables = {
        "prometheus_listen_address": f"127.0.0.1:{prometheus_port}",
        "prometheus_scrape_interval": "1s",
        "prometheus_external_labels": {"site": "west"},
        "prometheus_targets_directory": str(folder / "targets"),
        "prometheus_static_targets": [],
        "prometheus_alertmanagers": [f"127.0.0.1:{alertmanager_port}"],
        "alertmanager_listen_address": f"127.0.0.1:{alertmanager_port}",
        "alertmanager_webhook_url": f"http://127.0.0.1:{outside_port}/alerts",
        "alertmanager_webhook_token": TOKEN,
        "alertmanager_group_wait": "1s",
        "alertmanager_group_interval": "1s",
    }
    rendered(folder, variables)
    (folder / "token").write_text(TOKEN)
    for name, program, storage, replaced in (
        ("alertmanager", "prometheus-alertmanager", "--storage.path", "/etc/prometheus/alertmanager-webhook.token"),
        ("prometheus", "prometheus", "--storage.tsdb.path", "/etc/prometheus/rules"),
    ):
        config = folder / f"{name}.yml"
        here = str(folder / "token") if name == "alertmanager" else str(resource("roles") / "prometheus/files/rules")
        text = (folder / name / f"{name}.yml.j2").read_text()
        assert replaced in text
        config.write_text(text.replace(replaced, here))
        argv = [program, f"--config.file={config}", f"{storage}={folder / 'data' / name}"]
        with (folder / f"{name}.log").open("wb") as log:
            yield subprocess.Popen([*argv, *arguments(folder / name / "default.j2")], stdout=log, stderr=log)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[Outside, int, Path]]:
    """What is outside, Prometheus's port, and the folder of targets."""
    outside, prometheus_port = Outside(), free_port()
    server = ThreadingHTTPServer(("127.0.0.1", 0), outside.handler())
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = int(server.server_address[1])
    (tmp_path / "targets").mkdir()
    node = NodeState(
        NodeId("id-n1"), "n1", Stage.GOLD, location=Location("A01", 4), sku="h100", address="127.0.0.1", bmc="10.0.0.1"
    )
    requested = RequestedRoles(("node_exporter",), {"node_exporter_listen_address": f":{port}"})
    (tmp_path / "targets/nodes.json").write_text(json.dumps(scrape_targets([node], requested, shipped_roles())))
    programs: list[subprocess.Popen[bytes]] = []
    try:
        programs.extend(start(tmp_path, port, prometheus_port))
        yield outside, prometheus_port, tmp_path
    finally:
        for program in programs:
            program.kill()
            program.wait()
        server.shutdown()
        server.server_close()


def await_true(what: str, holds: Callable[[], object]) -> None:
    deadline = Deadline.after(WAIT_S)
    while not holds():
        deadline.sleep(0.3, f"waiting until {what}")


def scraped(port: int) -> dict[tuple[str, str], str]:
    """Return job and instance of each target, and whether it answers; empty while Prometheus does not."""
    url = f"http://127.0.0.1:{port}/api/v1/query?query={quote('up')}"
    try:
        with urllib.request.urlopen(url, timeout=600) as answer:
            rows = json.load(answer)["data"]["result"]
    except OSError:
        return {}
    return {(row["metric"]["job"], row["metric"]["instance"]): row["value"][1] for row in rows}


def test_an_xid_of_a_node_is_one_message_and_one_when_it_is_gone(site: tuple[Outside, int, Path]) -> None:
    """Prometheus finds the node by the journal's targets and leaves its BMC out; the message has place, Xid and token."""
    outside, port, _ = site
    await_true("the node is scraped", lambda: scraped(port).get(("node_exporter", "n1")) == "1")
    jobs = {"prometheus", "alertmanager", "node_exporter"}
    await_true("each job is scraped, and no other", lambda: {job for job, _ in scraped(port)} == jobs)
    assert outside.posted == []

    outside.metrics = XID.format(79)
    await_true("the alert is posted", lambda: outside.posted)
    group = outside.posted[0]
    (alert,) = group["alerts"]
    assert (group["status"], group["groupLabels"]) == ("firing", {"alertname": "GpuXid"})
    assert group["authorization"] == f"Bearer {TOKEN}"
    assert alert["labels"] == {
        "alertname": "GpuXid", "severity": "critical", "site": "west", "xid": "79", "gpu": "3", "UUID": "GPU-0b7a4c1e",
        "instance": "n1", "node": "n1", "rack": "A01", "unit": "4",
    }  # fmt: skip
    assert alert["annotations"]["summary"] == "GPU 3 (GPU-0b7a4c1e) of n1 has reported Xid 79"

    outside.metrics = XID.format(0)
    await_true("its end is posted", lambda: outside.posted[-1]["status"] == "resolved")


def test_a_retired_node_is_scraped_no_more(site: tuple[Outside, int, Path]) -> None:
    """Prometheus reads the file again by itself."""
    _, port, folder = site
    await_true("the node is scraped", lambda: ("node_exporter", "n1") in scraped(port))
    part = folder / "targets/.part"
    part.write_text("[]\n")
    part.rename(folder / "targets/nodes.json")
    await_true("the node is gone", lambda: ("node_exporter", "n1") not in scraped(port))

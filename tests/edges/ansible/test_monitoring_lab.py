"""`playbooks/monitoring.yml` makes a monitoring host of a bare lab host; an alert about another host reaches a webhook."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from clusterctl.edges.resources import resource
from clusterctl.fleet.event import Kind
from clusterctl.ports import Deadline, HostAddress, PlayOutcome
from clusterctl_cli.main import run
from tests.cli.site_of_three import append, write
from tests.edges.ansible.rehearsal import Rehearsal, rehearsal
from tests.edges.ansible.support import DATA, playbooks
from tests.events import new_event

pytestmark = [pytest.mark.lab, pytest.mark.soak, pytest.mark.timeout(3600)]
RUN_S = 1200.0
WAIT_S = 900.0
TOKEN = "a-token-of-the-test-7c1e"
IPMI_PASSWORD = "a-password-5d20"
TEXTFILES = "/var/lib/prometheus/node-exporter"
XID = 'DCGM_FI_DEV_XID_ERRORS{{gpu="3",UUID="GPU-0b7a4c1e-lab",modelName="NVIDIA H100 80GB HBM3"}} {}\n'
GET = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=600).read().decode())"


@dataclass(frozen=True, slots=True)
class Monitoring:
    """A monitoring host, and a host that it scrapes."""

    lab: Rehearsal

    @property
    def monitor(self) -> HostAddress:
        return self.lab.hosts[0]

    @property
    def node(self) -> HostAddress:
        return self.lab.hosts[1]

    def play(self, name: str, host: HostAddress, *, check: bool = False, **changed: object) -> PlayOutcome:
        """Run one of the shipped playbooks on a host."""
        variables = {
            "alertmanager_webhook_url": "http://127.0.0.1:8080/alerts",
            "alertmanager_webhook_token": TOKEN,
            "alertmanager_group_wait": "1s",
            "alertmanager_group_interval": "1s",
            "prometheus_scrape_interval": "1s",
            "prometheus_bmc_exporter": "127.0.0.1:9290",
            "prometheus_bmc_exporter_parameters": {"module": "bmc"},
            "ipmi_exporter_user": "monitor",
            "ipmi_exporter_password": IPMI_PASSWORD,
            "ipmi_exporter_timeout_s": 2,
            "prometheus_external_labels": {"site": "lab"},
        }
        with tempfile.TemporaryDirectory(prefix="pb", dir="/tmp") as work_dir:
            runner = playbooks(Path(work_dir), resource("playbooks"), check=check, silence_s=300.0)
            given = {**self.lab.variables, **variables, **changed}
            (seen,) = runner.run(name, [host], given, Deadline.after(RUN_S))
        return seen.value

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return what Prometheus answers: metric and value of each series."""
        url = f"http://127.0.0.1:9090/api/v1/query?query={quote(expression)}"
        answer = json.loads(ssh(self.monitor, "python3", "-c", GET, url))
        return [row["metric"] | {"value": row["value"][1]} for row in answer["data"]["result"]]

    def answering(self) -> set[tuple[str, str]]:
        """Return job and instance of the targets that answer. (Series of the package's own configuration stay a while.)"""
        answer = json.loads(
            ssh(self.monitor, "python3", "-c", GET, "http://127.0.0.1:9090/api/v1/targets?state=active")
        )
        found = [target for target in answer["data"]["activeTargets"] if target["health"] == "up"]
        return {(target["labels"]["job"], target["labels"]["instance"]) for target in found}

    def posted(self) -> list[dict[str, Any]]:
        """Return the groups that the webhook got."""
        return [json.loads(line) for line in ssh(self.monitor, "cat", "/srv/alerts").splitlines()]


def ssh(host: HostAddress, *argv: str, text: str = "") -> str:
    options = ("-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR")
    command = ["ssh", "-F", "none", "-i", host.key_file, *options, f"{host.user}@{host.address}", shlex.join(argv)]
    return subprocess.run(command, check=True, capture_output=True, text=True, input=text, timeout=600).stdout


def put(host: HostAddress, path: str, text: str) -> None:
    """Write a file of a host whole, as `clusterctl metrics` does."""
    ssh(host, "sudo", "tee", f"{path}.part", text=text)
    ssh(host, "sudo", "mv", f"{path}.part", path)


@pytest.fixture(scope="module")
def monitoring() -> Iterator[Monitoring]:
    if os.geteuid() != 0:
        pytest.skip("lab hosts need root")
    if shutil.which("mmdebstrap") is None or shutil.which("apt-ftparchive") is None:
        pytest.skip("mmdebstrap or apt-utils is not installed")
    with (
        tempfile.TemporaryDirectory(prefix="mo", dir="/var/tmp") as state,
        rehearsal(Path(state), lab="montest", network="10.188.0.0/16", count=2) as lab,
    ):
        yield Monitoring(lab)


def exported(folder: Path, address: str) -> tuple[str, str]:
    """Return the scrape targets and the metrics of a site whose node n1 has this address, as the command writes them."""
    site = write(folder)
    append(site, [new_event("node", "id-n1", Kind.NODE_ADDRESSED, {"address": address})])
    targets, metrics = folder / "nodes.json", folder / "clusterctl.prom"
    assert run(["metrics", "--site", str(site), "--targets", str(targets), "--write", str(metrics)]) == 0
    return targets.read_text(), metrics.read_text()


def await_true(what: str, holds: Any) -> None:
    deadline = Deadline.after(WAIT_S)
    while not holds():
        deadline.sleep(1.0, f"waiting until {what}")


def alerts(groups: Sequence[dict[str, Any]], status: str) -> list[dict[str, Any]]:
    return [alert for group in groups for alert in group["alerts"] if alert["status"] == status]


def test_an_alert_about_a_scraped_node_reaches_the_webhook(monitoring: Monitoring, tmp_path: Path) -> None:
    """Check mode fails nowhere; after the first run nothing is changed. Prometheus scrapes itself, Alertmanager, the
    monitoring host and the node of the journal. An Xid there is one message with the node's place, and one when it is gone.
    """
    monitor, node = monitoring.monitor, monitoring.node
    ssh(monitor, "sudo", "apt-get", "update")  # a check cannot, and a fresh lab host knows no package
    checked = monitoring.play("monitoring.yml", monitor, check=True)
    assert checked.ok, checked.message
    first = monitoring.play("monitoring.yml", monitor)
    assert first.ok, first.message
    again = monitoring.play("monitoring.yml", monitor)
    assert (again.ok, again.changes) == (True, ()), again.message
    owed = monitoring.play("monitoring.yml", monitor, configure_unfinished=True)
    assert owed.ok, owed.message
    secret = ("alertmanager.yml", "alertmanager-webhook.token", "clusterctl-ipmi.yml")
    paths = [f"/etc/prometheus/{name}" for name in secret]
    assert ssh(monitor, "sudo", "stat", "--format=%a %U %G", *paths).splitlines() == ["640 root prometheus"] * 3

    exporter = monitoring.play("configure.yml", node, configure_roles=["node_exporter"])
    assert exporter.ok, exporter.message
    targets, metrics = exported(tmp_path, node.address)
    put(monitor, "/srv/receiver.py", (DATA / "webhook_receiver.py").read_text())
    ssh(monitor, "sudo", "touch", "/srv/alerts")
    ssh(monitor, "sudo", "systemd-run", "--unit=receiver", "python3", "/srv/receiver.py", "8080", "/srv/alerts")
    put(monitor, f"{TEXTFILES}/clusterctl.prom", metrics)
    put(monitor, "/var/lib/prometheus/targets/nodes.json", targets)

    expected = {("prometheus", "127.0.0.1:9090"), ("alertmanager", "127.0.0.1:9093"), ("hosts", "127.0.0.1:9100")}
    expected |= {("node_exporter", "n1"), ("bmc", "n1")}
    await_true("all are up", lambda: monitoring.answering() == expected)
    (stopped,) = monitoring.query("clusterctl_nodes_stopped")
    assert (stopped["code"], stopped["value"]) == ("gpu_ecc_uncorrectable", "1")
    assert monitoring.query("node_boot_time_seconds{node='n1'}")[0]["rack"] == "A01"

    # No emulated BMC has IPMI: the exporter reports it of the BMC of the journal.
    assert [found["value"] for found in monitoring.query("ipmi_up{node='n1',collector='ipmi'}")] == ["0"]

    put(node, f"{TEXTFILES}/gpus.prom", XID.format(79))  # a stand-in for dcgm-exporter, which needs GPUs
    await_true("the alert is posted", lambda: alerts(monitoring.posted(), "firing"))
    (group,) = [group for group in monitoring.posted() if alerts([group], "firing")]
    (alert,) = group["alerts"]
    assert group["authorization"] == f"Bearer {TOKEN}"
    assert group["groupLabels"] == {"alertname": "GpuXid"}
    labels = {name: alert["labels"][name] for name in ("node", "rack", "unit", "gpu", "xid", "severity", "site")}
    assert labels == {
        "node": "n1", "rack": "A01", "unit": "4", "gpu": "3", "xid": "79", "severity": "critical", "site": "lab",
    }  # fmt: skip
    assert alert["annotations"]["summary"] == "GPU 3 (GPU-0b7a4c1e-lab) of n1 has reported Xid 79"

    put(node, f"{TEXTFILES}/gpus.prom", XID.format(0))
    await_true("its end is posted", lambda: alerts(monitoring.posted(), "resolved"))
    assert monitoring.play("monitoring.yml", monitor, check=True).changes == ()

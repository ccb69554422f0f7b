"""configure.yml by hosts of the lab themselves: real systemd, apt, sshd, node exporter; the driver is a stand-in package."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusterctl.edges.ansible.transports import AnsiblePlaybooks, Transport
from clusterctl.edges.ansible.workspace import PlayLimits, RunSettings
from clusterctl.edges.resources import resource
from clusterctl.fleet.finding import Origin
from clusterctl.ports import Deadline, HostAddress, PlayOutcome
from tests.edges.ansible.rehearsal import Rehearsal, rehearsal
from tests.edges.ansible.support import DATA, FixedClock, processes_of

pytestmark = [pytest.mark.lab, pytest.mark.timeout(3600)]
RUN_S = 2400.0


@pytest.fixture(scope="module")
def lab() -> Iterator[Rehearsal]:
    if os.geteuid() != 0:
        pytest.skip("lab hosts need root")
    if shutil.which("mmdebstrap") is None or shutil.which("apt-ftparchive") is None:
        pytest.skip("mmdebstrap or apt-utils is not installed")
    with tempfile.TemporaryDirectory(prefix="cfg", dir="/var/tmp") as state:
        name = os.environ.get("CLUSTERCTL_CONFIGURE_LAB", "cfgtest")
        network = os.environ.get("CLUSTERCTL_CONFIGURE_NETWORK", "10.117.0.0/16")
        with rehearsal(Path(state), lab=name, network=network, count=2) as running:
            yield running
        assert processes_of(Path(state)) == []


def configure(lab: Rehearsal, *, check: bool = False, **changed: object) -> dict[str, PlayOutcome]:
    return play(lab, resource("playbooks") / "configure.yml", check=check, **changed)


def play(lab: Rehearsal, playbook: Path, *, check: bool = False, **changed: object) -> dict[str, PlayOutcome]:
    with tempfile.TemporaryDirectory(prefix="pb", dir="/tmp") as work_dir:
        runner = AnsiblePlaybooks(
            RunSettings(
                work_dir=Path(work_dir),
                playbooks_dir=playbook.parent,
                roles_dir=resource("roles"),
                limits=PlayLimits(len(lab.hosts)),
                origin=Origin.SIMULATED,
                clock=FixedClock(),
                check=check,
            ),
            bundles_dir=lab.root / "bundles",
            transport=Transport.HOST,
        )
        reported = {name: value for name, value in {**lab.variables, **changed}.items() if value is not None}
        observed = list(runner.run(playbook.name, lab.hosts, reported, Deadline.after(RUN_S)))
        for each in observed:
            print(each.value)
            print(each.evidence[0].content.decode())
    return {each.value.host: each.value for each in observed}


def ssh(host: HostAddress, *argv: str) -> str:
    options = ("-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR")
    command = ["ssh", "-F", "none", "-i", host.key_file, *options, f"{host.user}@{host.address}", *argv]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=600).stdout


def test_configure_brings_nodes_up_and_then_changes_nothing(lab: Rehearsal) -> None:
    """Check mode on fresh hosts fails nowhere and touches nothing; then the first run changes, the second does not."""
    foretold = configure(lab, check=True)
    assert [(outcome.ok, outcome.message) for outcome in foretold.values()] == [(True, "")] * len(lab.hosts)
    assert all(outcome.changed > 5 for outcome in foretold.values())
    assert ssh(lab.hosts[0], "ls", "/etc/ssh/sshd_config.d", "/etc/apt/sources.list.d").count("clusterctl") == 0

    first = configure(lab)
    assert [(outcome.ok, outcome.message) for outcome in first.values()] == [(True, "")] * len(lab.hosts)
    assert all(outcome.changed > 5 for outcome in first.values())

    second = configure(lab)
    assert [(outcome.ok, outcome.changed) for outcome in second.values()] == [(True, 0)] * len(lab.hosts)


def test_a_node_has_roles_and_variables_of_its_own(lab: Rehearsal) -> None:
    """A setting of one node's group changes that node alone, and check mode names the task; the roles that it does not get
    are not run on it.
    """
    first, second = (host.name for host in lab.hosts)
    sysctl = {first: lab.variables["base_sysctl"], second: {"net.core.somaxconn": 8192}}
    foretold = configure(
        lab,
        check=True,
        base_sysctl=None,
        configure_roles_for={second: ["base"]},
        configure_variables_for={name: {"base_sysctl": value} for name, value in sysctl.items()},
    )
    assert {name: outcome.ok for name, outcome in foretold.items()} == {first: True, second: True}
    assert foretold[first].changes == ()
    assert foretold[second].changes
    assert all(task.startswith("base : ") for task in foretold[second].changes)


def test_the_pinned_driver_is_installed_not_the_newest(lab: Rehearsal) -> None:
    """The repository also has a newer driver; the version asked for is what the host has."""
    listing = ssh(
        lab.hosts[0], "dpkg-query", "--show", "--showformat='${Version}\\n'", "nvidia-open", "nvidia-driver-cuda"
    )

    assert set(listing.split()) == {f"{lab.variables['nvidia_driver_version']}-1"}


def test_nodes_enter_each_other_without_keys_or_trust_on_first_use(lab: Rehearsal) -> None:
    """From node to node by host-based authentication, by name, as MPI launchers do; an unknown host is refused."""
    here, there = lab.hosts
    assert ssh(here, "ssh", "-o", "BatchMode=yes", there.name, "hostname").strip() == there.name
    assert ssh(here, "sudo", "ssh", "-o", "BatchMode=yes", there.name, "hostname").strip() == there.name

    refused = ssh(here, "ssh -o BatchMode=yes -o HostKeyAlias=unknown " + there.name + " true 2>&1 || true")
    assert "Host key verification failed" in refused


def test_metrics_are_served_to_others(lab: Rehearsal) -> None:
    """Prometheus reaches the exporter from outside the host."""
    script = "import urllib.request, sys; print(urllib.request.urlopen(sys.argv[1], timeout=600).read().decode())"
    url = f"http://{lab.hosts[0].address}:9100/metrics"
    metrics = ssh(lab.hosts[1], "python3", "-c", f"'{script}'", url)

    assert "node_exporter_build_info" in metrics


@pytest.mark.soak
def test_what_a_broken_off_run_owes_is_made_up_for(lab: Rehearsal) -> None:
    """Its settings are written, so the next run changes nothing, and the exporter runs on with the old ones: unless that
    run is ordered to apply them. Then each service is restarted, on that node alone, once.
    """
    here, there = lab.hosts
    debug = {"node_exporter_arguments": ["--log.level=debug"]}
    alone = {"configure_roles": ["node_exporter"], **debug}
    broken = play(lab, DATA / "broken_off.yml", **debug)
    assert {outcome.message for outcome in broken.values()} == {"here it breaks off"}

    untold = configure(lab, **alone)
    assert [(outcome.ok, outcome.changed) for outcome in untold.values()] == [(True, 0)] * 2
    assert "--log.level=debug" not in ssh(here, "ps", "-C", "prometheus-node-exporter", "-o", "args=", "--columns=999")

    reported = configure(lab, configure_unfinished_on=[here.name], **debug)
    assert [reported[host.name].ok for host in (here, there)] == [True, True]
    assert "node_exporter : Make up for a run that broke off" in reported[here.name].changes
    assert reported[there.name].changes == ()
    assert "--log.level=debug" in ssh(here, "ps", "-C", "prometheus-node-exporter", "-o", "args=", "--columns=999")

    again = configure(lab, **alone)
    assert [(outcome.ok, outcome.changed) for outcome in again.values()] == [(True, 0)] * 2


@pytest.mark.soak
def test_another_version_is_a_change_and_a_wrong_one_a_failure(lab: Rehearsal) -> None:
    """A version that the repository lacks fails in words; nothing is claimed to be installed."""
    outcomes = configure(lab, nvidia_driver_version="1.2.3")

    assert {outcome.failed_task for outcome in outcomes.values()} == {
        "nvidia_driver : Install kernel headers and the driver"
    }
    assert all("1.2.3" in outcome.message for outcome in outcomes.values())

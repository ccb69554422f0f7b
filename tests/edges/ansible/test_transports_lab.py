"""A play by the host itself and the same over SSH, on real (if small) hosts: one truth, task by task."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import pytest

from clusterctl.edges.ansible.transports import AnsiblePlaybooks, Transport
from clusterctl.edges.ansible.workspace import PlayLimits, RunSettings
from clusterctl.edges.resources import resource
from clusterctl.fleet.errors import CancelledError
from clusterctl.fleet.finding import Observed, Origin
from clusterctl.ports import Deadline, HostAddress, PlayOutcome
from tests.edges.ansible.rehearsal import Rehearsal, rehearsal
from tests.edges.ansible.support import DATA, FixedClock, host, processes_of
from tests.edges.ansible.test_configure_lab import ssh
from tests.paths import ROOT

pytestmark = [pytest.mark.lab, pytest.mark.timeout(3600)]
SECRET = "kq7Zt-41-Xw"
RUN_S = 2400.0
HANGING = "pgrep -c -x sleep || true"


@pytest.fixture(scope="module")
def lab() -> Iterator[Rehearsal]:
    if os.geteuid() != 0:
        pytest.skip("lab hosts need root")
    if shutil.which("mmdebstrap") is None or shutil.which("apt-ftparchive") is None:
        pytest.skip("mmdebstrap or apt-utils is not installed")
    name = os.environ.get("CLUSTERCTL_TRANSPORTS_LAB", "waytest")
    network = os.environ.get("CLUSTERCTL_TRANSPORTS_NETWORK", "10.124.0.0/16")
    with (
        tempfile.TemporaryDirectory(prefix="way", dir="/var/tmp") as state,
        rehearsal(Path(state), lab=name, network=network, count=2) as running,
    ):
        yield running


@pytest.fixture(scope="module")
def work_dir() -> Iterator[Path]:
    """One for all, so that Ansible is packed once; no process of a run is left in the end."""
    with tempfile.TemporaryDirectory(prefix="pb", dir="/tmp") as path:
        yield Path(path)
        assert processes_of(Path(path)) == []


def playbooks(work_dir: Path, transport: Transport, *, check: bool = False) -> AnsiblePlaybooks:
    return AnsiblePlaybooks(
        RunSettings(
            work_dir=work_dir,
            playbooks_dir=DATA,
            roles_dir=resource("roles"),
            limits=PlayLimits(4),
            origin=Origin.SIMULATED,
            clock=FixedClock(),
            check=check,
            secrets={"ways_token": SECRET},
            silence_s=30.0,
        ),
        bundles_dir=work_dir,
        transport=transport,
    )


def run(
    work_dir: Path, transport: Transport, hosts: Sequence[HostAddress], *, check: bool = False
) -> dict[str, Observed[PlayOutcome]]:
    label = f"{transport}{check}"
    observed = playbooks(work_dir, transport, check=check).run(
        "ways.yml", hosts, {"ways_label": label}, Deadline.after(RUN_S)
    )
    return {each.value.host: each for each in observed}


def tasks(observed: Observed[PlayOutcome]) -> list[dict[str, object]]:
    """Everything but how long it took."""
    found = [json.loads(line) for line in observed.evidence[0].content.splitlines()]
    return [{name: value for name, value in task.items() if name != "seconds"} for task in found]


@pytest.mark.parametrize("check", [True, False])
def test_the_same_results_task_by_task(lab: Rehearsal, work_dir: Path, check: bool) -> None:
    """Ok, changed, skipped, failed, forgiven, hidden, in check mode and not; the same user, folder, umask and PATH."""
    there = run(work_dir, Transport.HOST, lab.hosts, check=check)
    ours = run(work_dir, Transport.SSH, lab.hosts, check=check)

    assert {name: asdict(one.value) for name, one in there.items()} == {
        name: asdict(one.value) for name, one in ours.items()
    }
    for name in ("node001", "node002"):
        expected = json.loads(json.dumps(tasks(ours[name])).replace(f"ssh{check}", f"host{check}"))
        assert tasks(there[name]) == expected
    assert {task["status"] for task in tasks(there["node001"])} == {"ok", "changed", "skipped", "failed, ignored"}
    assert there["node002"].value.failed_task == "Fail in a loop"
    assert there["node001"].evidence[0].source == "ansible-playbook ways.yml on the host itself"
    assert all(SECRET.encode() not in one.evidence[0].content for one in (*there.values(), *ours.values()))


@pytest.mark.soak
def test_nothing_of_a_run_stays_on_the_host(lab: Rehearsal, work_dir: Path) -> None:
    """Its variables lay in memory and are gone; Ansible stays, for root alone; what an earlier version left is swept."""
    there = lab.hosts[0]
    assert run(work_dir, Transport.HOST, [there])["node001"].value.ok
    ssh(there, "sudo", "mkdir", "/var/cache/clusterctl/ansible/0123.part", "/run/clusterctl-ansible/run")
    assert run(work_dir, Transport.HOST, [there])["node001"].value.ok

    assert ssh(there, "sudo", "ls", "/run/clusterctl-ansible").split() == []
    kept = ssh(there, "sudo", "ls", "/var/cache/clusterctl/ansible").split()
    assert sorted(len(name) for name in kept) == [4, 64]
    assert "lock" in kept
    assert (
        ssh(there, "sudo stat -c %a:%U /var/cache/clusterctl /var/cache/clusterctl/ansible").split() == ["700:root"] * 2
    )
    pattern = f"{SECRET[:-1]}[{SECRET[-1]}]"  # sudo logs this command line, which must not match itself
    assert ssh(there, f"sudo grep -rl '{pattern}' /root /home /var /tmp /run || true").split() == []


def test_a_host_that_cannot_is_played_over_ssh(lab: Rehearsal, work_dir: Path) -> None:
    """Chosen by itself, recorded in the evidence; with `host` it is a failure in words."""
    there = lab.hosts[0]
    ssh(there, "sudo rm -rf /var/cache/clusterctl && sudo touch /var/cache/clusterctl")
    try:
        (fallen,) = run(work_dir, Transport.AUTO, [there]).values()
        (refused,) = run(work_dir, Transport.HOST, [there]).values()
    finally:
        ssh(there, "sudo rm /var/cache/clusterctl")

    assert fallen.value.ok
    assert fallen.evidence[0].source.startswith("ansible-playbook ways.yml over SSH (")
    assert "/var/cache/clusterctl" in fallen.evidence[0].source
    assert not refused.value.ok
    assert "configure.transport is host" in refused.value.message


@pytest.mark.soak
def test_an_unreachable_host_is_the_same_both_ways(lab: Rehearsal, work_dir: Path) -> None:
    """A closed port, and a host that holds another key than its pinned one."""
    gone = host("gone")
    for transport in (Transport.HOST, Transport.SSH):
        (outcome,) = (one.value for one in run(work_dir, transport, [gone]).values())
        assert (outcome.ok, outcome.unreachable) == (False, True)
        assert "Connection refused" in outcome.message


@pytest.mark.soak
def test_cancel_ends_what_runs_on_the_host(lab: Rehearsal, work_dir: Path) -> None:
    """The failed host is reported before; then nothing is left on either, the detached process neither."""
    cancelled = threading.Event()
    running = playbooks(work_dir, Transport.HOST).run("hang_there.yml", lab.hosts, {}, Deadline.after(RUN_S, cancelled))
    assert next(running).value.message == "broken from the start"
    _await(lab.hosts[0], "2")
    cancelled.set()
    with pytest.raises(CancelledError):
        next(running)
    _await(lab.hosts[0], "0")


@pytest.mark.soak
def test_after_kill_9_of_the_controller_the_next_run_goes_on(lab: Rehearsal, work_dir: Path) -> None:
    """The host ends the play whose controller died, the next one waits for that and plays."""
    script = (
        "import json, sys\nfrom pathlib import Path\nfrom clusterctl.ports import Deadline, HostAddress\n"
        "from tests.edges.ansible.test_transports_lab import Transport, playbooks\n"
        "hosts = [HostAddress(**host) for host in json.loads(sys.argv[2])]\n"
        "for each in playbooks(Path(sys.argv[1]), Transport.HOST).run('hang_there.yml', hosts, {}, Deadline.after(600)):\n"
        "    print(each.value.host, flush=True)\n"
    )
    argv = [sys.executable, "-c", script, str(work_dir), json.dumps([asdict(one) for one in lab.hosts])]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, cwd=ROOT) as caller:
        assert caller.stdout is not None
        assert select.select([caller.stdout], [], [], 300)[0]
        assert caller.stdout.readline() == b"node002\n"
        _await(lab.hosts[0], "2")
        caller.kill()

    assert run(work_dir, Transport.HOST, [lab.hosts[0]])["node001"].value.ok
    assert ssh(lab.hosts[0], HANGING).strip() == "0"


def _await(there: HostAddress, count: str) -> None:
    """Until so many of our endless processes run on the host."""
    until = time.monotonic() + 600
    while (found := ssh(there, HANGING).strip()) != count:
        assert time.monotonic() < until, f"{found} processes, expected {count}"
        time.sleep(0.5)

"""The role opensm on two lab hosts over a simulated subnet: one master, one standby, and what happens when one goes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from clusterctl.ports import Deadline, HostAddress, PlayOutcome
from clusterctl_lab.layout import Layout
from tests.edges.ansible.rehearsal import Rehearsal, rehearsal
from tests.edges.ansible.simulated_subnet import host_files, port_guid, simulated_subnet
from tests.edges.ansible.support import playbooks

pytestmark = [pytest.mark.lab, pytest.mark.soak, pytest.mark.timeout(3600)]
PRIORITIES = {"node001": 14, "node002": 13}
STANDBY, MASTER = 2, 3
TAKEOVER_S = 300.0  # a limit for busy machines: the test prints what it took


@pytest.fixture(scope="module")
def lab() -> Iterator[Rehearsal]:
    if os.geteuid() != 0:
        pytest.skip("lab hosts need root")
    if missing := [tool for tool in ("mmdebstrap", "apt-ftparchive", "ibsim") if shutil.which(tool) is None]:
        pytest.skip(f"not installed: {', '.join(missing)}")
    name = os.environ.get("CLUSTERCTL_OPENSM_LAB", "opensm")
    network = os.environ.get("CLUSTERCTL_OPENSM_NETWORK", "10.121.0.0/16")
    # The bridge's first address: from there ibsim answers, and umad2sim accepts no other peer.
    also = partial(host_files, Layout(IPv4Network(network)).gateway)
    with (
        tempfile.TemporaryDirectory(prefix="osm", dir="/var/tmp") as state,
        rehearsal(Path(state), lab=name, network=network, count=2, also=also) as running,
        simulated_subnet(Path(state), (1, 2)),
    ):
        yield running


def apply(lab: Rehearsal, priorities: Mapping[str, int]) -> Mapping[str, PlayOutcome]:
    reported = {**lab.variables, "opensm_priorities": priorities, "opensm_routing_engine": "minhop"}
    reported["apply_roles"] = {host.name: ["base", "opensm"] for host in lab.hosts}
    with tempfile.TemporaryDirectory(prefix="pb", dir="/tmp") as work_dir:
        runs = list(playbooks(Path(work_dir)).run("apply.yml", lab.hosts, reported, Deadline.after(900)))
    for run in runs:
        print(run.value)
    return {run.value.host: run.value for run in runs}


def ssh(host: HostAddress, command: str) -> str:
    options = ("-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR")
    argv = ["ssh", "-F", "none", "-i", host.key_file, *options, f"{host.user}@{host.address}", f"sudo {command}"]
    return subprocess.run(argv, check=False, capture_output=True, text=True, timeout=600).stdout


def manager(host: HostAddress, *, own: bool) -> tuple[str, int, int]:
    """GUID, priority and state of the host's own subnet manager, or of the fabric's master; nothing if none answers."""
    message = ssh(host, "sminfo -D 0" if own else "sminfo")
    found = re.search(r"sm guid (0x[0-9a-f]+), .*priority (\d+) state (\d)", message)
    return (found[1], int(found[2]), int(found[3])) if found else ("", -1, -1)


def lid(host: HostAddress) -> str:
    return "".join(re.findall(r"Base lid: (\d+)", ssh(host, "ibstat")))


def until(seen: Callable[[], bool]) -> float:
    """Seconds until it was so; fails when it takes too long."""
    began = time.monotonic()
    while not seen():
        assert time.monotonic() - began < TAKEOVER_S
        time.sleep(1)
    return time.monotonic() - began


def unit(index: int) -> str:
    return f"clusterctl-opensm@{port_guid(index)}.service"


def test_the_highest_priority_is_master_and_the_other_stands_by(lab: Rehearsal) -> None:
    """Applied on both hosts at once; the second run changes nothing, and both see the same master."""
    first = apply(lab, PRIORITIES)
    assert {host: (run.ok, run.changed > 0) for host, run in first.items()} == dict.fromkeys(PRIORITIES, (True, True))
    second = apply(lab, PRIORITIES)
    assert {host: (run.ok, run.changed) for host, run in second.items()} == dict.fromkeys(PRIORITIES, (True, 0))

    one, two = lab.hosts
    assert manager(one, own=True)[1:] == (14, MASTER)
    assert manager(two, own=True)[1:] == (13, STANDBY)
    assert manager(one, own=False) == manager(two, own=False)


def test_a_standby_takes_over_and_hands_back(lab: Rehearsal) -> None:
    """The master ends: the standby becomes master and no LID has changed. It comes back: it is master."""
    one, two = lab.hosts
    lids = lid(one), lid(two)
    assert all(lids)

    ssh(one, f"systemctl stop {unit(1)}")
    took = until(lambda: manager(two, own=False)[1:] == (13, MASTER))
    print(f"the standby took over {took:.0f} s after the master's end")
    assert (lid(one), lid(two)) == lids

    ssh(one, f"systemctl start {unit(1)}")
    until(lambda: manager(two, own=False)[1:] == (14, MASTER))
    assert manager(two, own=True)[1:] == (13, STANDBY)
    assert (lid(one), lid(two)) == lids


def test_priorities_that_name_no_master_are_refused(lab: Rehearsal) -> None:
    """Two hosts with one priority: the role reports it and touches nothing."""
    outcomes = apply(lab, dict.fromkeys(PRIORITIES, 14))

    assert {(run.ok, run.changed) for run in outcomes.values()} == {(False, 0)}
    assert all("opensm_priorities" in run.message for run in outcomes.values())

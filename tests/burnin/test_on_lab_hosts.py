"""The burn-in against lab hosts: real SSH, real processes, real bytes between them; only the hardware is rendered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from clusterctl.fleet.finding import Origin, Report, Verdict
from clusterctl.fleet.node import NodeId, Serial
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Deadline
from clusterctl.steps.burnin.node_under_test import NodeUnderTest, SkuLimits
from clusterctl.steps.burnin.node_watch import NodeWatch, WatchPlan
from clusterctl_burnin.campaign import CampaignPlan, GroupTrials, read
from clusterctl_burnin.check import Expected
from clusterctl_burnin.host_requirements import HostRequirements
from clusterctl_burnin.hunting.node_status import Measured
from clusterctl_burnin.loads.model import Participant
from clusterctl_burnin.loads.report import findings
from clusterctl_burnin.probe import Readings, argv_for, parse_readings
from clusterctl_burnin.probes.ibstat import compute_adapters
from clusterctl_burnin.suites.suite import shipped_suite
from clusterctl_burnin.sweep import SweepFindings, judge, sweep
from lab.tests.lab_kit import eventually
from tests.burnin.lab_kit import DRIVER, USER, Hosts, UtcClock, lab_hosts, needs_lab
from tests.fleet.skus import H100_X8
from tests.lab_data import lab_limits
from tests.real_site import no_gold_on_a_real_site

pytestmark = [pytest.mark.lab, needs_lab]

SUITE = replace(shipped_suite(), pair_seconds=None)  # the messages of the limits file, not 15 minutes
LIMITS = lab_limits()


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    with lab_hosts(tmp_path_factory.mktemp("lab"), 4) as running:
        yield running


SAMPLERS = "grep -als load-sample[r] /proc/[0-9]*/cmdline || true"
"""Prints the files of those that run."""


def swept(hosts: Hosts, name: str) -> tuple[Readings, SweepFindings]:
    once, sent = sweep(SUITE.checks), datetime.now(UTC)
    argv = argv_for(USER, privileged=True)
    ran = hosts.shell.run(hosts.addresses[name], argv, once.stdin, Deadline.after(once.timeout)).value
    assert ran.exit_status == 0, ran.stderr
    readings = parse_readings(ran.stdout)
    serial = Serial(hosts.machines[name].serial)
    expected = Expected(name, serial, H100_X8, LIMITS, sent, datetime.now(UTC), DRIVER)
    return readings, judge(SUITE.checks, readings, expected)


def under_test(hosts: Hosts, name: str) -> NodeUnderTest:
    """A node of the lab as the burn-in knows it."""
    state = NodeState(NodeId(name), name, serial=Serial(hosts.machines[name].serial), sku="lab")
    return NodeUnderTest(state, Serial(hosts.machines[name].serial), hosts.addresses[name], SkuLimits(H100_X8, LIMITS))


def node_watch(hosts: Hosts) -> NodeWatch:
    def expected_of(node: NodeUnderTest, sent: datetime, received: datetime) -> Expected:
        return Expected(node.name, node.serial, H100_X8, LIMITS, sent, received, DRIVER)

    return NodeWatch(hosts.shell, UtcClock(), SUITE.checks, expected_of, WatchPlan(HostRequirements()))


def test_a_load_is_sampled_and_nothing_is_left(hosts: Hosts) -> None:
    """One sampler runs on the host while its loads do, and ends with them; a quiet load has one finding, which names it."""
    node, watch = under_test(hosts, "node002"), node_watch(hosts)
    started = watch.begin(node, Deadline.after(300))
    assert hosts.sh("node002", SAMPLERS).strip()
    watch.end(node, "gpu_load", started, Deadline.after(300))
    assert [(one.check, one.verdict) for one in node.watched] == [("load_watch", Verdict.PASS)], node.watched
    assert ", sampled " in node.watched[0].cause
    running = hosts.sh("node002", SAMPLERS)
    again = watch.begin(node, Deadline.after(300))
    assert hosts.sh("node002", SAMPLERS) == running
    watch.end(node, "stress_ng", again, Deadline.after(300))
    assert [one.verdict for one in node.watched] == [Verdict.PASS] * 2, node.watched
    watch.finish(node)
    assert eventually(lambda: not hosts.sh("node002", SAMPLERS).strip())


def test_a_sweep_of_a_healthy_host(hosts: Hosts) -> None:
    """All checks pass, except node_exporter, which is not installed here; the evidence is marked simulated."""
    readings, judged = swept(hosts, "node001")
    bad = [f for f in judged.findings if not f.verdict.admits]
    assert [(f.check, f.verdict) for f in bad] == [("node_exporter", Verdict.FAIL)], bad
    assert readings.origin is Origin.SIMULATED
    assert {evidence.origin for evidence in judged.evidence} == {Origin.SIMULATED}
    assert no_gold_on_a_real_site("burnin", judged.evidence)


def test_every_command_on_a_host_is_simulated_evidence(hosts: Hosts) -> None:
    """Also where the site's own word is `real`; the marker is no part of what the command wrote."""
    ran = hosts.shell.run(hosts.addresses["node001"], ["sh", "-c", "echo well >&2"], b"", Deadline.after(60))
    assert (ran.value.stderr, ran.evidence[0].origin) == ("well\n", Origin.SIMULATED)
    assert no_gold_on_a_real_site("install", ran.evidence)


def test_a_gpu_taken_out_is_the_one_root(hosts: Hosts) -> None:
    """The model changes, the tools report it, the checks find it, and it is one root."""
    healthy = hosts.machines["node002"]
    hosts.loop.run(hosts.faces.refresh(replace(healthy, gpus=healthy.gpus[:5] + healthy.gpus[6:])))
    try:
        _, judged = swept(hosts, "node002")
    finally:
        hosts.loop.run(hosts.faces.refresh(healthy))
    report = Report("burnin", SUITE.name, tuple(f for f in judged.findings if f.check != "node_exporter"))
    assert [finding.key for finding in report.roots()] == ["gpu_count:node"]
    assert report.verdict is Verdict.FAIL


def members(hosts: Hosts) -> list[Participant]:
    devices = tuple(adapter.name for adapter in compute_adapters(swept(hosts, "node001")[0], H100_X8))
    return [Participant(name, address.address, devices) for name, address in hosts.addresses.items()]


def measured(hosts: Hosts, plan: CampaignPlan, everyone: list[Participant]) -> list[Measured]:
    """Every load of the plan to its end."""
    by_name = {member.name: member for member in everyone}
    campaigns = plan.campaigns(by_name)
    for campaign in campaigns:
        while (asked := campaign.next()) is not None:
            for group in asked.groups:
                job = plan.job(campaign.load, tuple(by_name[name] for name in group))
                campaign.add(GroupTrials(asked.number, group, read(job, hosts.answer(job), plan.limits).trials))
    return [campaign.measured() for campaign in campaigns]


def test_loads_move_bytes_and_prove_every_node(hosts: Hosts) -> None:
    """Pairs over eight rails in two rounds, an all-reduce over all: every node passes both with a figure."""
    everyone = members(hosts)
    found = findings(measured(hosts, CampaignPlan(SUITE, LIMITS, USER), everyone), everyone, LIMITS)
    for name, its in found.items():
        assert [(f.check, f.verdict) for f in its] == [(load, Verdict.PASS) for load in SUITE.loads], (name, its)
        assert all(f.measured.value > 0 for f in its)
    sent = int(hosts.sh("node001", "cat /sys/class/net/ib3/statistics/tx_bytes || true") or 0)
    received = int(hosts.sh("node001", "cat /sys/class/net/ib3/statistics/rx_bytes || true") or 0)
    assert sent + received > 2 * LIMITS.methods.ib_write_bw.message_bytes * LIMITS.methods.ib_write_bw.iterations


@pytest.mark.soak
def test_a_rail_without_carrier_is_found(hosts: Hosts) -> None:
    """The host sees its port up, but no byte passes: hung or failed with two partners, who pass with others."""
    pair = replace(LIMITS.methods.ib_write_bw, timeout_seconds=6)
    quick = replace(LIMITS, methods=replace(LIMITS.methods, ib_write_bw=pair))
    everyone = [replace(member, devices=member.devices[:2]) for member in members(hosts)]
    hosts.sh("node003", "ip link set ib1 down")
    try:
        reported = measured(hosts, CampaignPlan(replace(SUITE, loads=("ib_write_bw",)), quick, USER), everyone)
    finally:
        hosts.sh("node003", "ip link set ib1 up")
    found = findings(reported, everyone, quick)
    bad = [(name, f.subject, f.verdict) for name, its in found.items() for f in its if f.verdict is not Verdict.PASS]
    assert bad == [("node003", "mlx5_1", Verdict.FAIL)]


@pytest.mark.soak
def test_a_slow_ethernet_port_is_found(hosts: Hosts) -> None:
    """Real iperf3 between all hosts, one of which passes 20 Mbit/s (tc): it fails with every partner, no other does."""
    everyone = [replace(member, interface="eth0") for member in members(hosts)]
    hosts.sh("node004", "tc qdisc add dev eth0 root tbf rate 20mbit burst 64kb latency 100ms")
    try:
        reported = measured(
            hosts, CampaignPlan(replace(SUITE, loads=("ethernet_pairs",), pair_rounds=2), LIMITS, USER), everyone
        )
    finally:
        hosts.sh("node004", "tc qdisc del dev eth0 root")
    found = findings(reported, everyone, LIMITS)
    bad = [(name, f.subject, f.verdict) for name, its in found.items() for f in its if f.verdict is not Verdict.PASS]
    assert bad == [("node004", "node", Verdict.FAIL)], found

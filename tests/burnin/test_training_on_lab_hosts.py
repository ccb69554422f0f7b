"""Trainings of groups of lab hosts, one of which has a processor quota: the hunt finds it. Needs root."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from clusterctl.fleet.finding import Verdict
from clusterctl_burnin.campaign import CampaignPlan, GroupTrials, read
from clusterctl_burnin.hunting.model import host
from clusterctl_burnin.loads.model import Participant
from clusterctl_burnin.loads.report import findings
from clusterctl_burnin.suites.suite import shipped_suite
from clusterctl_lab.faults import inject
from tests.burnin.lab_kit import USER, Hosts, lab_hosts, needs_lab
from tests.lab_data import lab_limits

pytestmark = [pytest.mark.lab, pytest.mark.soak, needs_lab]

SLOW = "node006"
LIMITS = lab_limits()


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    with lab_hosts(tmp_path_factory.mktemp("lab"), 8) as running:
        yield running


def test_the_hunt_finds_the_host_with_a_quota_by_short_trainings(hosts: Hosts) -> None:
    """Two groups of four in each round. The quota is the kernel's own; what is trained is a stand-in's hashing."""
    groups_of_four = replace(LIMITS.methods.training, group_nodes=4)
    limits = replace(LIMITS, methods=replace(LIMITS.methods, training=groups_of_four))
    everyone = [Participant(name, address.address, ()) for name, address in hosts.addresses.items()]
    by_name = {member.name: member for member in everyone}
    plan = CampaignPlan(shipped_suite("hunt-training"), limits, USER)
    (campaign,) = plan.campaigns(by_name)
    healthy = hosts.machines[SLOW]
    hosts.loop.run(hosts.faces.refresh(inject({SLOW: healthy}, "cpu-straggler", f"{SLOW}:4")))
    try:
        while (asked := campaign.next()) is not None:
            for group in asked.groups:
                job = plan.job(campaign.load, tuple(by_name[name] for name in group))
                campaign.add(GroupTrials(asked.number, group, read(job, hosts.answer(job), limits).trials))
    finally:
        hosts.loop.run(hosts.faces.refresh(healthy))
    measured = campaign.measured()
    assert [one.part for one in measured.answer.bad] == [host(SLOW)], measured.answer
    found = findings([measured], everyone, limits)
    bad = [(name, one.verdict) for name, its in found.items() for one in its if one.verdict is not Verdict.PASS]
    assert bad == [(SLOW, Verdict.FAIL)], found
    (finding,) = found[SLOW]
    assert f"{SLOW} has " in finding.cause
    assert "of the median node's speed" in finding.cause

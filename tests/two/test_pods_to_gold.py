"""Two pods of a lab to gold, a worker in each; one of them is killed on the way. What the emulators logged is checked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import datetime
from ipaddress import ip_address

import pytest

from clusterctl.fleet.event import Stream
from clusterctl.fleet.payloads.runs import RunBegun
from clusterctl.operations import pods
from clusterctl.operations.context import open_site
from clusterctl.operations.pods import RunGroup
from lab.tests.lab_kit import eventually, needs_lab
from tests.edges.journal.postgres import PROGRAMS
from tests.two.pods_kit import PATIENCE_S, PodLab, pod_lab

pytestmark = [
    pytest.mark.lab,
    pytest.mark.soak,
    pytest.mark.timeout(7200),
    needs_lab,
    pytest.mark.skipif(os.geteuid() != 0 or not PROGRAMS, reason="needs root and PostgreSQL"),
]
HOSTS = 24
INSTALLS, REBOOTS, CYCLED = 4, 2, 3
MISSING_GPU, NO_ECC = f"node{HOSTS // 2:03d}", f"node{HOSTS:03d}"
"""The last machine of each pod."""
FOUND = {MISSING_GPU: ("discover", "gpu_count"), NO_ECC: ("burnin", "gpu_ecc")}
FAULTS = ("--fault", f"missing-gpu:{MISSING_GPU}:gpu5", "--fault", f"ecc-off:{NO_ECC}:gpu4")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PodLab]:
    settings = {"batch": f"batch: {{discover: 64, install: {INSTALLS}, configure: 16, burnin: 8}}"}
    folder = tmp_path_factory.mktemp("g")
    with pod_lab("gold", "10.163.0.0/16", folder, "--hosts", str(HOSTS), *FAULTS, settings=settings) as found:
        file = found.site.folder / "site.yml"
        file.write_text(file.read_text().replace("\nfabric:\n", f"\nfabric:\n  reboots: {REBOOTS}\n"))
        yield found


def test_two_pods_go_to_gold_and_one_loses_its_worker(lab: PodLab) -> None:
    """One order from outside of both pods. The first pod's worker is killed when some of its hosts are installed;
    another one goes on. All but the two broken machines become gold, and those are quarantined with the right finding.

    By the logs of BMCs, MAAS and hosts: each OS was written once, nothing came from the other pod, and no more installs
    went on at once than the site allows over both.
    """
    first, second = lab.pods
    assert lab.reached(()) == set()
    killed = lab.worker(first, "w1")
    lab.worker(second, "w2")
    with lab.site.start("bootstrap", "--queue", "auto", "--yes") as followed:
        some = len(lab.nodes(first)) // 3
        assert eventually(lambda: followed.ended or installed(lab, lab.nodes(first)) >= some, PATIENCE_S)
        assert not followed.ended, followed.stdout
        killed.kill()
        lab.worker(first, "w3")
        assert followed.wait(PATIENCE_S * 4) == 1, followed.stdout + followed.stderr
    assert workers_of(lab) == [["w1", "w3"], ["w2"]]

    stages = lab.site.stages()
    assert stages == {machine.name: "quarantined" if machine.name in FOUND else "gold" for machine in lab.machines}
    for name, expected in FOUND.items():
        (why,) = lab.site.ask("why", name)["nodes"]
        assert (why["stopped_at"], why["findings"][0]["check"]) == expected

    deployed = [write.node for write in lab.writes() if "op=deploy" in write.what]
    assert sorted(deployed) == [machine.name for machine in lab.machines if machine.name != MISSING_GPU]
    assert not lab.foreign()
    for pod in lab.pods:
        for name in set(lab.nodes(pod)) - {MISSING_GPU}:
            found = lab.logins(pod, name)
            assert pod.controllers[1] in found
            assert all(ip_address(address) in pod.hosts for address in found), (name, found)
    assert 1 < lab.most_installs() <= INSTALLS


def test_hosts_of_both_pods_reboot_within_one_limit(lab: PodLab) -> None:
    """An operator on each pod's controller cycles the power of some hosts at the same time."""
    chosen = {pod: lab.nodes(pod)[:CYCLED] for pod in lab.pods}
    names = [name for nodes in chosen.values() for name in nodes]
    assert lab.site.run("hold", *names, "--reason", "reboots", "--yes").wait() == 0
    since = datetime.now()  # noqa: DTZ005 — as the lab's log has it
    cycle = ("power", "cycle", "--reason", "reboots", "--yes")
    with ExitStack() as stack:
        runs = [
            stack.enter_context(lab.site.start(*cycle, *nodes, within=lab.within(pod))) for pod, nodes in chosen.items()
        ]
        for run in runs:
            assert run.wait() == 0, run.stdout + run.stderr
    assert lab.most_cycles(since) == REBOOTS
    assert not lab.foreign()


def installed(lab: PodLab, names: list[str]) -> int:
    """How many of them have an OS, by the journal."""
    stages = lab.site.stages()
    return sum(stages[name] not in ("seen", "discovered", "quarantined") for name in names)


def workers_of(lab: PodLab) -> list[list[str]]:
    """The workers that began each run of the newest order, the oldest first."""
    context = open_site(lab.site.folder)
    with closing(context.journal) as journal:
        (newest,) = pods.read(context, 1)
        assert isinstance(newest, RunGroup)
        histories = [journal.history(Stream.RUN, run.name) for run in newest.runs]
    return [[one.payload.worker for one in events if isinstance(one.payload, RunBegun)] for events in histories]

"""Two pods of a lab, each with a management network of its own and a worker in it; orders come from outside of both."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from lab.tests.hosts.hosts_kit import leftovers
from lab.tests.lab_kit import needs_lab
from tests.edges.journal.postgres import PROGRAMS
from tests.two.pods_kit import PodLab, pod_lab

pytestmark = [
    pytest.mark.lab,
    needs_lab,
    pytest.mark.skipif(os.geteuid() != 0 or not PROGRAMS, reason="needs root and PostgreSQL"),
]
INSTALLS = 1


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PodLab]:
    settings = {"batch": f"batch: {{discover: 64, install: {INSTALLS}, configure: 16, burnin: 8}}"}
    folder = tmp_path_factory.mktemp("p")
    with pod_lab("pods", "10.162.0.0/16", folder, "--hosts", "4", settings=settings) as found:
        yield found
    assert not leftovers(found.site.lab.name)


def test_each_pods_worker_installs_its_own_hosts(lab: PodLab) -> None:
    """Each controller reaches its own pod's BMCs, the machine of the operator none. A run for a pod without a worker
    waits, and `workers` reports for what. One order from outside becomes a run in each pod; what each BMC and MAAS were
    asked for came from the pod's own controller, and the site's limit of installs held over both.
    """
    first, second = lab.pods
    assert [lab.reached(lab.within(pod)) for pod in lab.pods] == [set(lab.nodes(pod)) for pod in lab.pods]
    assert lab.reached(()) == set()

    until_install = ("bootstrap", "--until", "install", "--yes")
    lab.worker(first, "w1")
    refused = lab.site.run(*until_install, "--queue", "auto")
    assert refused.wait() == 2
    assert all(name in refused.stderr for name in lab.nodes(second)), refused.stderr
    limit = [word for name in lab.nodes(second) for word in ("--limit", name)]
    assert lab.site.run(*until_install, "--queue", "pod2", *limit, "--detach").wait() == 0
    (waiting,) = lab.site.ask("workers")["waiting"]
    assert waiting["why"] == "no worker of pool pod2 works"
    assert lab.site.run("runs", "cancel", waiting["name"], "--yes").wait() == 0

    lab.worker(second, "w2")
    followed = lab.site.run(*until_install, "--queue", "auto")
    assert followed.wait() == 0, followed.stdout + followed.stderr + str(lab.site.ask("nodes"))
    assert lab.site.stages() == dict.fromkeys((machine.name for machine in lab.machines), "installed")
    assert len([write for write in lab.writes() if "op=deploy" in write.what]) == len(lab.machines)
    assert not lab.foreign()
    assert lab.most_installs() == INSTALLS

"""`kill -9` in the middle of install and in the middle of configure: the next run finishes, nothing is done twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from clusterctl.fleet.node import Stage
from clusterctl.fleet.state import NodeState
from clusterctl.steps.configure import ACT as CONFIGURE
from clusterctl.steps.install_job import START as INSTALL
from tests.e2e.processes import Process, mentioning
from tests.e2e.promises import broken_promises
from tests.e2e.site_kit import Controller, Site
from tests.lab.lab_kit import eventually, needs_lab, running_lab

pytestmark = [pytest.mark.lab, needs_lab, pytest.mark.timeout(1800)]

HOSTS = 4
MOMENT_S = 300.0
ORPHANS_S = 30.0


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("k")
    with running_lab("e2ek", "10.153.0.0/16", folder, "--hosts", str(HOSTS)) as lab:
        yield Site(lab, folder / "runs")


def killed_when(site: Site, moment: Callable[[Controller], bool]) -> set[Process]:
    """Bootstrap until `moment`, then `kill -9`; what it had started until then."""
    with site.start("bootstrap", "--yes") as run:
        assert eventually(lambda: run.ended or moment(run), MOMENT_S)
        assert not run.ended, f"it ended before it could be killed: {run.stderr}{run.stdout}"
        family = run.family()
        run.kill()
    return family


def installing(states: tuple[NodeState, ...]) -> bool:
    """Some OS is about to be written, or is; not all are."""
    return any(INSTALL in state.acts for state in states) and any(state.stage is Stage.DISCOVERED for state in states)


def configuring(states: tuple[NodeState, ...]) -> bool:
    return any(act.act == CONFIGURE for state in states for act in state.open_acts)


def test_killed_twice_it_ends_as_if_it_had_never_been(site: Site) -> None:
    """Killed while OSes are written and again while Ansible works on the hosts: the third run takes all to gold.

    No node was ever suspected, every OS was written once, the stored states are the fold of the events, and neither
    claims nor processes nor run directories are left.
    """
    killed_when(site, lambda _: installing(site.states()))
    assert installing(site.states())

    family = killed_when(
        site, lambda run: configuring(site.states()) and any(each.command.startswith("ssh ") for each in run.family())
    )
    assert configuring(site.states())
    assert [each for each in family if "ansible-playbook" in each.command]
    assert eventually(lambda: not [each for each in family if each.lives], ORPHANS_S), family
    assert not mentioning(str(site.folder))
    assert not list((site.folder / "state/ansible").iterdir())

    last = site.run("bootstrap", "--yes")
    assert last.wait() == 0, last.stderr + last.stdout
    assert not broken_promises(site, HOSTS)

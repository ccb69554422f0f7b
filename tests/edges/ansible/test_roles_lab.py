"""Every role on a host of its own in the lab: predicted by check mode, applied, applied again without a change, and once
more as after a run that broke off.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from clusterctl.edges.ansible.controller_transport.playbooks import ControllerPlaybooks
from clusterctl.ports import Deadline, PlayOutcome
from tests.edges.ansible.rehearsal import Rehearsal, rehearsal
from tests.edges.ansible.role_cases import ROLES, UNFINISHED, LabCase, lab_case, load, role_tasks
from tests.edges.ansible.support import playbooks

pytestmark = [pytest.mark.lab, pytest.mark.soak, pytest.mark.timeout(4 * 3600)]
HERE = tuple(case for role in ROLES if not ((case := lab_case(role)).not_here or case.elsewhere))
RUN_S = 3600.0


@dataclass(frozen=True, slots=True)
class Run:
    """What one run did to one host: its outcome, and each task's status by its title, in order."""

    outcome: PlayOutcome
    tasks: Sequence[tuple[str, str]]

    def with_status(self, *statuses: str) -> set[str]:
        return {title for title, status in self.tasks if status in statuses}


@dataclass(frozen=True, slots=True)
class Trial:
    """The four runs of one role."""

    foretold: Run
    first: Run
    second: Run
    made_up: Run


@pytest.fixture(scope="module")
def trials(request: pytest.FixtureRequest) -> Iterator[Mapping[str, Trial]]:
    """By role, of those roles that the chosen tests ask for: `-k zfs_pool` starts one host."""
    if os.geteuid() != 0:
        pytest.skip("lab hosts need root")
    if shutil.which("mmdebstrap") is None or shutil.which("apt-ftparchive") is None:
        pytest.skip("mmdebstrap or apt-utils is not installed")
    asked = {role for item in request.session.items if (role := _role_of(item))}
    cases = [case for case in HERE if case.role in asked]
    name = os.environ.get("CLUSTERCTL_ROLES_LAB", "roles")
    network = os.environ.get("CLUSTERCTL_ROLES_NETWORK", "10.118.0.0/16")
    with (
        tempfile.TemporaryDirectory(prefix="rol", dir="/var/tmp") as state,
        rehearsal(Path(state), lab=name, network=network, count=len(cases) + len(_helped(cases))) as lab,
    ):
        yield _trials(lab, cases)


def _role_of(item: pytest.Item) -> str:
    case = getattr(item, "callspec", None)
    return case.params["role"] if case and item.module is __import__(__name__, fromlist=["*"]) else ""


def _helped(cases: Sequence[LabCase]) -> Sequence[LabCase]:
    return [case for case in cases if case.helper]


def _trials(lab: Rehearsal, cases: Sequence[LabCase]) -> Mapping[str, Trial]:
    helped = _helped(cases)
    host_of = {case.role: host.name for case, host in zip(cases, lab.hosts[: len(cases)], strict=True)}
    helper_of = {case.role: host for case, host in zip(helped, lab.hosts[len(cases) :], strict=True)}
    before = {host_of[case.role]: list(case.after) for case in cases}
    plan = {host_of[case.role]: [case.role] for case in cases}
    variables = {name: value for case in cases for name, value in case.variables.items()}
    variables["lab_helpers"] = {role: host.address for role, host in helper_of.items()}
    tasks = {helper_of[case.role].name: case.helper for case in helped}
    tasks |= {host_of[case.role]: case.prepare for case in cases}
    for outcome in _apply(lab, before, {**variables, "apply_tasks": tasks}, check=False).values():
        assert outcome.outcome.ok, outcome.outcome
    foretold = _apply(lab, plan, variables, check=True)
    first, second = (_apply(lab, plan, variables, check=False) for _ in range(2))
    made_up = _apply(lab, plan, {**variables, "configure_unfinished": True}, check=False)
    return {role: Trial(foretold[name], first[name], second[name], made_up[name]) for role, name in host_of.items()}


def _apply(
    lab: Rehearsal, roles: Mapping[str, Sequence[str]], variables: Mapping[str, object], *, check: bool
) -> Mapping[str, Run]:
    reported = {**lab.variables, **variables, "apply_roles": roles}
    with tempfile.TemporaryDirectory(prefix="pb", dir="/tmp") as work_dir:
        runner: ControllerPlaybooks = playbooks(Path(work_dir), check=check)
        runs = list(runner.run("apply.yml", lab.hosts, reported, Deadline.after(RUN_S)))
    for run in runs:
        print(run.value)
    return {run.value.host: Run(run.value, _tasks(run.evidence[0].content)) for run in runs}


def _tasks(transcript: bytes) -> Sequence[tuple[str, str]]:
    return [(task["task"], task["status"]) for task in map(json.loads, transcript.splitlines())]


@pytest.mark.parametrize("role", [case.role for case in HERE])
def test_the_second_run_changes_nothing(trials: Mapping[str, Trial], role: str) -> None:
    """The first run succeeds and changes something; the second finds all as it should be."""
    trial = trials[role]

    assert trial.first.outcome.ok, trial.first.outcome
    assert trial.first.outcome.changed > 0
    assert trial.second.outcome.ok, trial.second.outcome
    assert trial.second.with_status("changed") == set()


@pytest.mark.parametrize("role", [case.role for case in HERE])
def test_check_mode_predicts_the_changes(trials: Mapping[str, Trial], role: str) -> None:
    """It fails nowhere on a fresh host, foretells nothing that does not come, and calls nothing fine that changes."""
    foretold, first = trials[role].foretold, trials[role].first

    assert foretold.outcome.ok, foretold.outcome
    assert foretold.outcome.changed > 0
    assert foretold.with_status("changed") - first.with_status("changed") == set()
    assert first.with_status("changed") & foretold.with_status("ok") == set()


@pytest.mark.parametrize("role", [case.role for case in HERE])
def test_what_a_run_that_broke_off_owes_is_done(trials: Mapping[str, Trial], role: str) -> None:
    """Each service of the role is restarted, and nothing else is changed."""
    made_up, tasks = trials[role].made_up, tuple(role_tasks(role))
    hearing = {f"{role} : {task['name']}" for task in tasks if UNFINISHED in str(task)}
    owing = {f"{role} : {task['name']}" for task in tasks if task.get("when") == UNFINISHED}
    handlers = {f"{role} : {task['name']}" for task in load(role, "handlers/main.yml") or ()}

    assert made_up.outcome.ok, made_up.outcome
    assert owing <= made_up.with_status("changed") <= hearing | handlers

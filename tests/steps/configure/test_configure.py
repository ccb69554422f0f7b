"""configure: a play's result for a host, and the finding for a host that it cannot reach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from clusterctl.fleet.acts import Act, ActResult, Intent
from clusterctl.fleet.finding import Finding, Observed, Report, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.node import Location, NodeId, Step
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Deadline, HostAddress, PlayOutcome
from clusterctl.steps.configure.step import UNFINISHED, Configure, ConfigureServices
from clusterctl.steps.executor.reachability import BmcProbe, SshAccess
from clusterctl.steps.executor.step import StepOutcome
from tests.steps.fakes import FakeBmc, FakeBmcs, address_of, inventory, seen


@dataclass(frozen=True)
class FakePlaybooks:
    """Every host ends like `outcome`."""

    ok: bool = True
    unreachable: bool = False
    message: str = ""
    variables: list[Mapping[str, Any]] = field(default_factory=list)

    def run(
        self, playbook: str, hosts: Sequence[HostAddress], variables: Mapping[str, Any], deadline: Deadline
    ) -> Iterator[Observed[PlayOutcome]]:
        self.variables.append(variables)
        for host in hosts:
            task = "" if self.ok else "Gathering Facts"
            yield Observed(PlayOutcome(host.name, self.ok, 3, task, self.message, self.unreachable), seen("play"))


class NoActs:
    """Intents are not written, and nothing is fenced."""

    def intend_each(self, act: Act, targets: Mapping[NodeId, Any]) -> None: ...
    def observed_each(self, act: Act, results: Mapping[NodeId, tuple[str, ActResult]]) -> None: ...
    def fenced(self, nodes: Sequence[NodeId], deadline: Deadline) -> Deadline:
        return deadline


NODE = NodeState(NodeId("id1"), "n1", address="10.0.0.1", host_key="ssh-ed25519 A", location=Location("A01", 4))


def configured(playbooks: FakePlaybooks, node: NodeState = NODE) -> StepOutcome:
    probe = BmcProbe(FakeBmcs({"n1": FakeBmc(inventory("S1"))}), address_of)
    step = Configure(ConfigureServices(playbooks, SshAccess("ops", "/key"), probe), "configure.yml", lambda _hosts: {})
    (outcome,) = step.run([node], NoActs(), Deadline.after(60))  # type: ignore[arg-type]
    return outcome


def test_a_host_that_cannot_be_reached_is_one_finding() -> None:
    """Silence is the root, with place and the BMC's report; that it is not configured follows from it."""
    words = "Failed to connect to the host via ssh: ssh: connect to host 10.0.0.1 port 22: Connection refused"
    root, follows = configured(FakePlaybooks(ok=False, unreachable=True, message=words)).findings
    assert (root.check, root.verdict, root.deterministic) == ("reachable", Verdict.FAIL, False)
    assert "sshd does not run" in root.cause
    assert "power is on" in root.cause
    assert root.remedy.startswith("rack A01 U4, n1: ")
    assert (follows.check, follows.verdict, follows.root) == ("configure", Verdict.INCONCLUSIVE, root.key)


def test_a_failed_task_is_named() -> None:
    """The task is the part, its words the cause."""
    (finding,) = configured(FakePlaybooks(ok=False, message="No package matches")).findings
    assert (finding.check, finding.verdict, finding.subject) == ("configure", Verdict.FAIL, "Gathering Facts")
    assert "No package matches" in finding.cause


def test_a_configured_host_passes() -> None:
    """With the number of changes, and the play as evidence."""
    outcome = configured(FakePlaybooks())
    (finding,) = outcome.findings
    assert finding.verdict is Verdict.PASS
    assert finding.evidence == tuple(item.digest for item in outcome.evidence)


def ended(verdict: Verdict) -> Mapping[str, Report]:
    return {
        Step.CONFIGURE.value: Report(
            "configure", "", (Finding(check="configure", verdict=verdict, code=Code.TASK_FAILED),)
        )
    }


BEGUN = replace(NODE, intents=(Intent(Act.CONFIGURE_PLAY, "S1", 7, result=ActResult.DONE),))
OPEN = (Intent(Act.CONFIGURE_PLAY, "S1", 7),)
PLAYED_BEFORE = {
    "never": (NODE, []),
    "killed in its first play": (replace(BEGUN, intents=OPEN), ["n1"]),
    "killed in a later play": (replace(BEGUN, intents=OPEN, reports=ended(Verdict.PASS)), ["n1"]),
    "killed before it was written how the play ended": (BEGUN, ["n1"]),
    "a task failed": (replace(BEGUN, reports=ended(Verdict.FAIL)), ["n1"]),
    "to its end": (replace(BEGUN, reports=ended(Verdict.PASS)), []),
}


@pytest.mark.parametrize("before", PLAYED_BEFORE)
def test_the_roles_know_of_a_play_that_did_not_come_to_its_end(before: str) -> None:
    """What it wrote may not be in force: Ansible forgets the handlers of a play that is killed, or whose task fails."""
    node, named = PLAYED_BEFORE[before]
    playbooks = FakePlaybooks()
    configured(playbooks, node)
    assert [reported[UNFINISHED] for reported in playbooks.variables] == [named]

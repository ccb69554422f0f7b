"""A run through MAAS that is killed at any point, also inside a slow request: the next one neither deploys twice nor
touches what has become another user's machine.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import stamina

from clusterctl.edges.journal import SqlJournal
from clusterctl.edges.redfish import RedfishBmcs
from clusterctl.fleet.acts import Act
from clusterctl.fleet.errors import CancelledError
from clusterctl.fleet.event import Payload
from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.node import NodeId
from clusterctl.ports import Deadline
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.step import StepOutcome
from clusterctl.steps.install.job import INSTALLERS_NETWORK
from clusterctl.steps.install.step import Install, InstallServices
from clusterctl_lab.emulators.maas.status import Status
from clusterctl_lab.fault_injection import MAAS_QUIRKS, inject_all
from lab.tests.lab_kit import eventually
from tests.edges.maas.kit import Lab
from tests.edges.redfish.conftest import QUICK
from tests.steps.fakes import FakeShell, FixedClock
from tests.steps.install.test_maas_situations import ACCESS, FIRST, bring_there, discovered, node_of

UNDER_WAY = (Status.COMMISSIONING, Status.DEPLOYING, Status.RELEASING)
"""MAAS ends these by itself."""
POINTS = 48
"""More than a whole install has: journal entries, before and after each, and requests of acts, before each."""


class Killed(BaseException):
    """What kill -9 does to the code that runs: nothing after it happens."""


@dataclass
class Fuse:
    """Kills at its last point, and at each one after."""

    points: int
    passed: int = 0

    def pass_point(self) -> None:
        self.passed += 1
        if self.passed > self.points:
            raise Killed


class KillingIntents(IntentLog):
    """Dies at the fuse's point: before or after an entry of the journal, or before a request."""

    fuse: Fuse

    def note(self, node: NodeId, payload: Payload) -> None:
        self.fuse.pass_point()
        super().note(node, payload)
        self.fuse.pass_point()

    def fenced(self, nodes: object, deadline: Deadline) -> Deadline:
        return deadline.fenced(self.fuse.pass_point)


@pytest.fixture(autouse=True)
def without_waits() -> Iterator[None]:
    stamina.set_testing(True, attempts=1)
    yield
    stamina.set_testing(False)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path, network="127.112.0.0/16")
    yield lab
    lab.close()


def step_of(lab: Lab) -> Install:
    shell = FakeShell({FIRST: f"boot\n{FIRST}\n"})
    bmcs = RedfishBmcs(FixedClock(), QUICK)
    services = InstallServices(lab.installer(), shell, bmcs, lambda name: lab.target(name).bmc)
    return Install(services, ACCESS, INSTALLERS_NETWORK, poll_s=0.01)


def run(lab: Lab, book: SqlJournal, node: NodeId, fuse: Fuse, deadline: Deadline) -> StepOutcome | None:
    """Run the step under a claim of its own. Return the outcome; None where it was killed or stopped."""
    claims = book.claim([node], f"run-{time.monotonic_ns()}").granted
    intents = KillingIntents(book, claims)
    intents.fuse = fuse
    try:
        (outcome,) = step_of(lab).run([book.state(node)], intents, deadline)
    except (Killed, CancelledError):
        return None
    finally:
        book.release(claims.values())
    return outcome


def deployed_once(lab: Lab) -> None:
    node = node_of(lab)
    assert node is not None
    assert node.status is Status.DEPLOYED
    assert [event.type for event in node.events].count("Deploying") == 1
    assert len(lab.hosts.written[FIRST]) == 1


@pytest.mark.parametrize("point", range(POINTS))
def test_killed_at_any_point_and_resumed_the_machine_is_deployed_once(lab: Lab, book: SqlJournal, point: int) -> None:
    """Whatever was intended, sent, or answered by then: one machine, one deployment, and no act left open."""
    (node,) = discovered(book, lab)
    run(lab, book, node, Fuse(point), Deadline.after(120))
    outcome = run(lab, book, node, Fuse(10_000), Deadline.after(120))
    assert outcome is not None
    assert outcome.findings[0].verdict is Verdict.PASS, outcome.findings[0]
    deployed_once(lab)
    assert len(lab.maas.service.store.nodes) == 1
    assert not book.state(node).open_acts


def test_the_points_cover_a_whole_install(lab: Lab, book: SqlJournal) -> None:
    """An install that is not killed passes no more points than are tried."""
    (node,) = discovered(book, lab)
    fuse = Fuse(10_000)
    run(lab, book, node, fuse, Deadline.after(120))
    assert fuse.passed <= POINTS


@pytest.mark.parametrize("operation", ["commission", "deploy"])
def test_killed_inside_a_slow_request_it_is_waited_for_and_not_repeated(
    lab: Lab, book: SqlJournal, operation: str
) -> None:
    """MAAS goes on with the request; the next run looks at it."""
    lab.run(lab.world.replace(inject_all(lab.world.machines, MAAS_QUIRKS, f"{FIRST}:slow-requests")[0]))
    (node,) = discovered(book, lab)
    stop_once_received(lab, book, node, operation)
    assert book.state(node).open_acts
    outcome = run(lab, book, node, Fuse(10_000), Deadline.after(120))
    assert outcome is not None
    assert outcome.findings[0].verdict is Verdict.PASS, outcome.findings[0]
    assert lab.maas.requests[f"POST machines {operation}"] == 1
    deployed_once(lab)


def test_killed_inside_a_request_that_fails_later_the_attempt_counts(lab: Lab, book: SqlJournal) -> None:
    """The machine is back in Allocated: that is one of three attempts, over both runs."""
    bring_there(lab, {"status": "Ready"})
    (node,) = discovered(book, lab)
    lab.run(lab.world.replace(inject_all(lab.world.machines, MAAS_QUIRKS, f"{FIRST}:late-500")[0]))
    stop_once_received(lab, book, node, "deploy")
    outcome = run(lab, book, node, Fuse(10_000), Deadline.after(120))
    assert outcome is not None
    assert outcome.findings[0].verdict is Verdict.FAIL
    assert "3 attempts" in outcome.findings[0].cause
    assert lab.maas.requests["POST machines deploy"] == 3


@pytest.mark.parametrize("point", range(3, POINTS, 4))
@pytest.mark.parametrize("status", [Status.ALLOCATED, Status.DEPLOYED, Status.FAILED_DEPLOYMENT])
def test_what_another_user_has_taken_meanwhile_is_left_alone(
    lab: Lab, book: SqlJournal, point: int, status: Status
) -> None:
    """Nothing is deployed, released, aborted or changed."""
    (node,) = discovered(book, lab)
    run(lab, book, node, Fuse(point), Deadline.after(120))
    lab.run(lab.maas.service.lifecycle.background.settle())
    known = node_of(lab)
    if known is None:
        pytest.skip("killed before MAAS knew the machine")
    assert eventually(lambda: known.status not in UNDER_WAY, 600)  # MAAS ends what the killed run had ordered
    lab.run(lab.maas.service.lifecycle.background.settle())
    known.status, known.owner = status, "alice"
    lab.maas.requests.clear()
    outcome = run(lab, book, node, Fuse(10_000), Deadline.after(120))
    assert outcome is not None
    assert outcome.findings[0].verdict is Verdict.FAIL
    assert "alice" in outcome.findings[0].cause
    assert not [words for words in lab.maas.requests if not words.startswith("GET")]
    assert (known.status, known.owner) == (status, "alice")


def stop_once_received(lab: Lab, book: SqlJournal, node: NodeId, operation: str) -> None:
    """Run until MAAS has received the operation, and stop there: nothing of its answer reaches the journal."""
    cancelled = threading.Event()

    def watch() -> None:
        until = time.monotonic() + 600
        while not lab.maas.requests[f"POST machines {operation}"] and time.monotonic() < until:
            time.sleep(0.005)
        cancelled.set()

    watcher = threading.Thread(target=watch)
    watcher.start()
    assert run(lab, book, node, Fuse(10_000), Deadline.after(120, cancelled)) is None
    watcher.join()


def test_the_acts_are_those_of_an_install() -> None:
    """What this test kills: a new act of the install must be thought of here."""
    assert {act for act in Act if act.value.startswith("install.")} == {
        Act.INSTALL_PREPARE,
        Act.INSTALL_START,
        Act.INSTALL_RELEASE,
    }

"""Reboots that roles request. The journal records each intent with the id of the boot that it ends; each is done once.

The intent stays open until the play after the reboot reports no other reboot request. After a killed run, the next run
compares the boot id of the intent with the boot id of the node. Equal: the reboot did not happen, and is done now.
Different: it happened, and the same request is not served a second time. A release by an operator and a reinstall of
the OS close the intent too: a later request is a new one.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from clusterctl.fleet.acts import Act, ActResult, Intent, RebootDetails
from clusterctl.fleet.finding import Evidence, Finding, Observed, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Deadline, HostAddress, Playbooks, PlayOutcome
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.permits import NoPermitError, RebootPermits, unlimited

PLAYBOOK = "reboot.yml"
LONGEST_S = 1800.0
"""So long a node may take to come up; GPU servers take ten minutes to POST."""


class Need(enum.Enum):
    """What a node's word that it needs a reboot means."""

    REBOOT = "reboot it"
    IN_VAIN = "it was rebooted for that already"


@dataclass(frozen=True, slots=True)
class RebootRequest:
    """A node that asked for a reboot, and the play in which it did."""

    node: NodeState
    host: HostAddress
    play: Observed[PlayOutcome]


def open_reboot(node: NodeState) -> Intent | None:
    """Return the intended reboot that has no result."""
    intent = node.intent(Act.CONFIGURE_REBOOT)
    return intent if intent is not None and intent.open else None


def need(node: NodeState, boot_id: str) -> Need:
    """Return the need. `boot_id`: the boot in which the node asks. Reboots of its predecessor do not count."""
    intent = open_reboot(node)
    if intent is None or intent.target != _machine(node) or not isinstance(intent.details, RebootDetails):
        return Need.REBOOT
    return Need.REBOOT if intent.details.boot_id == boot_id else Need.IN_VAIN


def _machine(node: NodeState) -> str:
    return node.serial or node.name


class Reboots:
    """Reboots nodes by `reboot.yml`, which waits until each runs another boot; as many at once as `permits` allow."""

    def __init__(self, playbooks: Playbooks, permits: RebootPermits = unlimited) -> None:
        self._playbooks = playbooks
        self._permits = permits

    def run(
        self, asked: Sequence[RebootRequest], intents: IntentLog, deadline: Deadline
    ) -> Iterator[Observed[PlayOutcome]]:
        """Yield one outcome for each node; done means that it runs another boot than the one that asked.

        No outcome for nodes that had no permit in time: they were not touched.
        """
        waiting = list(asked)
        while waiting:
            try:
                with self._permits(len(waiting), deadline) as count:
                    batch, waiting = waiting[:count], waiting[count:]
                    yield from self._batch(batch, intents, deadline)
            except NoPermitError:
                return

    def _batch(
        self, asked: Sequence[RebootRequest], intents: IntentLog, deadline: Deadline
    ) -> Iterator[Observed[PlayOutcome]]:
        self._intend(asked, intents)
        limit = deadline.within(LONGEST_S + LONGEST_S / 10)
        variables = {
            "reboot_from": {one.node.name: one.play.value.boot_id for one in asked},
            "reboot_timeout_s": int(min(LONGEST_S, max(1.0, deadline.remaining))),
        }
        fenced = intents.fenced([one.node.id for one in asked], limit)
        yield from self._playbooks.run(PLAYBOOK, [one.host for one in asked], variables, fenced)

    def _intend(self, asked: Sequence[RebootRequest], intents: IntentLog) -> None:
        """Write down the results of earlier intents first: it is still the same boot."""
        message = "the boot that was to end still runs, or another machine stands there"
        left = {one.node.id: (message, ActResult.FAILED) for one in asked if open_reboot(one.node) is not None}
        intents.observed_each(Act.CONFIGURE_REBOOT, left)
        targets = {one.node.id: (_machine(one.node), RebootDetails(boot_id=one.play.value.boot_id)) for one in asked}
        intents.intend_each(Act.CONFIGURE_REBOOT, targets)


def settle(nodes: Iterable[NodeState], intents: IntentLog, words: str, *, rebooted: bool) -> None:
    """Write what came of the nodes' reboots, where one is open: `rebooted` now, or in an earlier run."""
    settled = [node.id for node in nodes if rebooted or open_reboot(node) is not None]
    intents.observed_each(Act.CONFIGURE_REBOOT, dict.fromkeys(settled, (words, ActResult.DONE)))


def in_vain(play: PlayOutcome) -> Finding:
    """Return the finding for a role that requests a reboot that the node has just had."""
    roles = " and ".join(play.reboot_for)
    return Finding(
        check="configure",
        verdict=Verdict.FAIL,
        code=Code.REBOOT_REPEATED,
        subject=", ".join(play.reboot_for),
        cause=f"{roles} asks for a reboot again, though the node was rebooted for it",
        measured=f"boot {play.boot_id}",
        remedy=(
            f"see what {roles} waits for (its README explains its reboot), correct that on the host, then run "
            "clusterctl release and configure on it"
        ),
    )


def not_allowed(play: PlayOutcome) -> Finding:
    """Return the finding for a reboot that the site leaves to an operator."""
    return Finding(
        check="configure",
        verdict=Verdict.INCONCLUSIVE,
        code=Code.REBOOT_NEEDED,
        subject=", ".join(play.reboot_for),
        cause=f"it needs a reboot for {' and '.join(play.reboot_for)}, and the site's configure.reboots is false",
        remedy="reboot it, then run clusterctl configure on it",
        deterministic=False,
    )


def not_in_time(play: PlayOutcome) -> Finding:
    """Return the finding for a reboot that had no permit before the step's deadline."""
    return Finding(
        check="configure",
        verdict=Verdict.INCONCLUSIVE,
        code=Code.REBOOT_POSTPONED,
        subject=", ".join(play.reboot_for),
        cause=f"it needs a reboot for {' and '.join(play.reboot_for)}, and too many other hosts were rebooting",
        remedy="run clusterctl configure on it again; the site's fabric.reboots is how many may reboot at once",
        deterministic=False,
    )


def not_back(play: PlayOutcome, roles: Sequence[str], state: str) -> Finding:
    """Return that the node was ordered to reboot, and that it is unknown whether it did."""
    return Finding(
        check="configure",
        verdict=Verdict.FAIL,
        code=Code.REBOOT_FAILED,
        subject="reboot",
        cause=f"it was to reboot for {' and '.join(roles)} and did not come back: {play.message}; {state}",
        remedy="attach a console and see where its boot stands, then run clusterctl configure on it",
        deterministic=False,
    )


def evidence_of(*plays: Observed[PlayOutcome]) -> tuple[Evidence, ...]:
    return tuple(item for play in plays for item in play.evidence)

"""Boots machines from an image in a virtual drive, and ejects the image afterwards.

A boot inserts the image, sets the one-time boot override to CD and power-cycles the machine. The image stays inserted:
an installer reads it until it ends. The intent is in the journal before the image is inserted, and the BMC client
proves the machine's serial before each change. What the machine's screen or console shows afterwards is kept as
evidence, where its BMC gives that; nothing depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from clusterctl.fleet.acts import Act, ImageDetails
from clusterctl.fleet.bmc.boot import BootOnce, BootSource
from clusterctl.fleet.errors import (
    CancelledError,
    ClaimLostError,
    ClusterctlError,
    EdgeError,
    OutcomeUnknownError,
    ParseError,
)
from clusterctl.fleet.event import node_event
from clusterctl.fleet.finding import Digest, Evidence
from clusterctl.fleet.node import Serial
from clusterctl.fleet.payloads.node import ActIntended, ActObserved
from clusterctl.fleet.state import NodeState
from clusterctl.ports import BmcAddress, BmcClient, Bmcs, Deadline, Journal, Post
from clusterctl.ports.isolation import as_error
from clusterctl.steps.executor.intent_log import IntentLog, failure
from clusterctl.steps.executor.parallel import each
from clusterctl.steps.executor.permits import NoPermitError, RebootPermits, unlimited
from clusterctl.steps.executor.reachability import screen_of

SELF_TEST_S = 900.0
"""Seconds at most that the self-test is waited for, before the screen is read."""
POLL_S = 10.0


@dataclass(frozen=True, slots=True)
class ImageBootResult:
    """One node's outcome.

    inserted  the image is in one of its virtual drives; None where that is unknown
    screen    what the machine showed after the boot; None where its BMC does not give it
    """

    name: str
    inserted: bool | None
    error: ClusterctlError | None = None
    screen: Digest | None = None


@dataclass(frozen=True, slots=True)
class ImageBooter:
    """Boots many nodes at once from one image, as many as `workers`.

    screen_s  seconds from the end of the self-test, where the BMC reports that, until the screen is read
    permits   how many may come on at once; a permit is kept until the screen was read
    """

    bmcs: Bmcs
    address_of: Callable[[str], BmcAddress]
    journal: Journal
    workers: int
    screen_s: float = 0.0
    permits: RebootPermits = unlimited

    def boot(
        self, nodes: Sequence[tuple[NodeState, Serial]], uri: str, reason: str, acts: IntentLog, deadline: Deadline
    ) -> Iterator[ImageBootResult]:
        """Boot each node from the image; yield its result as soon as it is known.

        An interrupted boot is left as intended: the same order again reads first, and goes on.
        """
        return self._each(Act.MEDIA_BOOT, nodes, _Order(uri, reason, acts, deadline))

    def eject(
        self, nodes: Sequence[tuple[NodeState, Serial]], uri: str, reason: str, acts: IntentLog, deadline: Deadline
    ) -> Iterator[ImageBootResult]:
        """Eject the image from each node's virtual drives."""
        return self._each(Act.MEDIA_EJECT, nodes, _Order(uri, reason, acts, deadline))

    def _each(self, act: Act, nodes: Sequence[tuple[NodeState, Serial]], order: _Order) -> Iterator[ImageBootResult]:
        calls = [partial(self._one, act, node, serial, order) for node, serial in nodes]
        return each(calls, self.workers, order.acts.lease)

    def _one(self, act: Act, node: NodeState, serial: Serial, order: _Order) -> ImageBootResult:
        fenced = order.acts.fenced([node.id], order.deadline)
        inserted: bool | None = None
        try:
            with (self.permits if act is Act.MEDIA_BOOT else unlimited)(1, fenced):
                fenced.check(f"booting {node.name} from an image")
                intent = ActIntended(act=act, target=serial, reason=order.reason, details=ImageDetails(uri=order.uri))
                order.acts.note(node.id, intent)
                with self.bmcs.open(self.address_of(node.name), fenced) as bmc:
                    if act is Act.MEDIA_EJECT:
                        evidence = bmc.eject_media(order.uri, serial, fenced).evidence
                    else:
                        evidence = _boot(bmc, order.uri, serial, fenced)
                    inserted = act is Act.MEDIA_BOOT
                    observed = ActObserved(act=act, message="inserted, booted" if inserted else "ejected")
                    self._note(node, observed, evidence, order.acts)
                    screen = self._screen(bmc, node, order.acts, fenced) if inserted else None
        except (CancelledError, ClaimLostError, NoPermitError) as error:
            return ImageBootResult(node.name, inserted, error)
        except Exception as error:  # noqa: BLE001 — whatever its data causes is its own result
            return self._failed(act, node, as_error(error, node.name), order.acts)
        return ImageBootResult(node.name, inserted, screen=screen)

    def _screen(self, bmc: BmcClient, node: NodeState, acts: IntentLog, deadline: Deadline) -> Digest | None:
        """Keep what the machine shows. It has booted, and the journal has it: no answer of the BMC changes that."""
        limit = deadline.within(SELF_TEST_S + self.screen_s)
        try:
            while limit.remaining > POLL_S + self.screen_s and bmc.post(limit).value is Post.RUNNING:
                limit.sleep(POLL_S, "waiting for the machine's self-test")
        except (EdgeError, ParseError):
            pass
        if self.screen_s and limit.remaining > self.screen_s:
            limit.sleep(self.screen_s, "waiting for what the machine shows")
        evidence = screen_of(bmc, deadline)
        if not evidence:
            return None
        self._note(node, ActObserved(act=Act.MEDIA_BOOT, message="its screen after the boot is kept"), evidence, acts)
        return evidence[0].digest

    def _failed(self, act: Act, node: NodeState, error: ClusterctlError, acts: IntentLog) -> ImageBootResult:
        try:
            self._note(node, ActObserved(act=act, result=failure(error), message=error.message), (), acts)
        except ClaimLostError as lost:
            return ImageBootResult(node.name, None, lost)
        return ImageBootResult(node.name, None, error)

    def _note(self, node: NodeState, observed: ActObserved, evidence: Sequence[Evidence], acts: IntentLog) -> None:
        self.journal.store(evidence)
        digests = tuple(item.digest for item in evidence)
        event = node_event(node.id, observed, digests)
        self.journal.append([event], claim=acts.lease.claim(node.id))


@dataclass(frozen=True, slots=True)
class _Order:
    uri: str
    reason: str
    acts: IntentLog
    deadline: Deadline


def _boot(bmc: BmcClient, uri: str, serial: Serial, deadline: Deadline) -> tuple[Evidence, ...]:
    """Insert, override, cycle; eject the image again where the machine is certain not to boot from it."""
    inserted = bmc.insert_media(uri, serial, deadline)
    try:
        override = bmc.boot_once(BootOnce(BootSource.CD), serial, deadline)
        power = bmc.cycle_power(serial, deadline)
    except (CancelledError, ClaimLostError, OutcomeUnknownError):
        raise
    except ClusterctlError:
        bmc.eject_media(uri, serial, deadline)
        raise
    return (*inserted.evidence, *override.evidence, *power.evidence)

"""Clock, name servers and syslog target of BMCs: read, and set by an operator's order. No machine is touched by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from clusterctl.fleet.acts import Act
from clusterctl.fleet.bmc.services import ServiceState, WantedServices
from clusterctl.fleet.errors import CancelledError, ClaimLostError, ClusterctlError, EdgeError
from clusterctl.fleet.event import Payload, node_event
from clusterctl.fleet.finding import Digest, Evidence
from clusterctl.fleet.node import Serial
from clusterctl.fleet.payloads.node import ActIntended, ActObserved
from clusterctl.fleet.state import NodeState
from clusterctl.ports import BmcAddress, Deadline, Journal
from clusterctl.ports.isolation import as_error
from clusterctl.ports.services import ServiceBmcs, ServiceClient
from clusterctl.steps.executor.intent_log import IntentLog, failure
from clusterctl.steps.executor.parallel import each


@dataclass(frozen=True, slots=True)
class ServicesResult:
    """How the BMC of one node stands, or why that is unknown. `changed`: something was set."""

    name: str
    states: tuple[ServiceState, ...] = ()
    changed: bool = False
    error: ClusterctlError | None = None

    @property
    def wrong(self) -> tuple[ServiceState, ...]:
        return tuple(one for one in self.states if not one.right)


@dataclass(frozen=True, slots=True)
class BmcServiceSetter:
    """Reads and sets the services of `workers` BMCs at a time."""

    bmcs: ServiceBmcs
    address_of: Callable[[str], BmcAddress]
    journal: Journal
    wanted: WantedServices
    workers: int

    def look(self, machines: Sequence[tuple[str, Serial]], deadline: Deadline) -> Iterator[ServicesResult]:
        """Yield how each BMC stands, as soon as it is known. Changes nothing."""
        return each([partial(self._look, name, serial, deadline) for name, serial in machines], self.workers)

    def set(
        self, nodes: Sequence[tuple[NodeState, Serial]], intents: IntentLog, deadline: Deadline
    ) -> Iterator[ServicesResult]:
        """Yield each node's result as soon as it is known. Repeated, it sets what still differs."""
        calls = [partial(self._set, node, serial, intents, deadline) for node, serial in nodes]
        return each(calls, self.workers, intents.lease)

    def _look(self, name: str, serial: Serial, deadline: Deadline) -> ServicesResult:
        try:
            with self.bmcs.open_services(self.address_of(name), deadline) as bmc:
                return ServicesResult(name, bmc.services(self.wanted, serial, deadline).value)
        except Exception as error:  # noqa: BLE001 — whatever its data causes is its own result
            return ServicesResult(name, error=as_error(error, name))

    def _set(self, node: NodeState, serial: Serial, intents: IntentLog, deadline: Deadline) -> ServicesResult:
        fenced = intents.fenced([node.id], deadline)
        try:
            with self.bmcs.open_services(self.address_of(node.name), fenced) as bmc:
                seen = bmc.services(self.wanted, serial, fenced)
                wrong = [one for one in seen.value if one.right is False]
                if not wrong:
                    self._close(node, intents)
                    return ServicesResult(node.name, seen.value)
                reason = "; ".join(map(str, wrong))
                intent = ActIntended(act=Act.BMC_SERVICES, target=serial, reason=reason)
                self._note(node, intent, self._keep(seen.evidence), intents)
                return self._apply(bmc, node, serial, intents, fenced)
        except Exception as error:  # noqa: BLE001 — whatever its data causes is its own result
            return ServicesResult(node.name, error=as_error(error, node.name))

    def _close(self, node: NodeState, intents: IntentLog) -> None:
        """Record the result of what a killed run had set."""
        if any(act.act is Act.BMC_SERVICES for act in node.open_acts):
            self._note(node, ActObserved(act=Act.BMC_SERVICES, message="they are as wanted"), (), intents)

    def _apply(
        self, bmc: ServiceClient, node: NodeState, serial: Serial, intents: IntentLog, deadline: Deadline
    ) -> ServicesResult:
        try:
            done = bmc.set_services(self.wanted, serial, deadline)
        except (CancelledError, ClaimLostError):
            raise
        except ClusterctlError as error:
            failed = ActObserved(act=Act.BMC_SERVICES, result=failure(error), message=error.message)
            self._note(node, failed, (), intents)
            return ServicesResult(node.name, changed=True, error=error)
        message = "; ".join(f"{one.service.value} {one.wanted}" for one in done.value if one.right)
        observed = ActObserved(act=Act.BMC_SERVICES, message=message)
        self._note(node, observed, self._keep(done.evidence), intents)
        return ServicesResult(node.name, done.value, changed=True)

    def _note(self, node: NodeState, payload: Payload, digests: tuple[Digest, ...], intents: IntentLog) -> None:
        self.journal.append([node_event(node.id, payload, digests)], claim=intents.lease.claim(node.id))

    def _keep(self, evidence: Sequence[Evidence]) -> tuple[Digest, ...]:
        self.journal.store(evidence)
        return tuple(item.digest for item in evidence)


def by_hand(wrong: Sequence[ServiceState]) -> EdgeError:
    """Return the error about services that are not as wanted and that the BMC gives no way to set."""
    return EdgeError("; ".join(map(str, wrong)), remedy="set it at the BMC by hand")

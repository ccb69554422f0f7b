"""Power of machines by an operator's order: intended, done to the proven machine, read back and recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from clusterctl.fleet.decisions.permissions import PowerOrder
from clusterctl.fleet.errors import CancelledError, ClaimLostError, ClusterctlError
from clusterctl.fleet.event import node_event
from clusterctl.fleet.finding import Digest, Observed
from clusterctl.fleet.node import Serial
from clusterctl.fleet.payloads.node import ActIntended, ActObserved
from clusterctl.fleet.state import NodeState
from clusterctl.ports import BmcAddress, BmcClient, Bmcs, Deadline, Journal, Post, Power
from clusterctl.ports.isolation import as_error
from clusterctl.steps.executor.intent_log import IntentLog, failure
from clusterctl.steps.executor.parallel import each
from clusterctl.steps.executor.permits import NoPermitError, RebootPermits, unlimited

POLL_S = 10.0


@dataclass(frozen=True, slots=True)
class PowerResult:
    """The result of one node: its power as it was read back, or why it is not as ordered."""

    name: str
    power: Power
    error: ClusterctlError | None = None


@dataclass(frozen=True, slots=True)
class PowerSwitch:
    """Carries out one order on many nodes at once, as many as `workers`.

    permits   how many may come on at once
    boot_s    seconds for which a permit is kept until a machine's self-test is over; 0: only until it is on
    """

    bmcs: Bmcs
    address_of: Callable[[str], BmcAddress]
    journal: Journal
    workers: int
    permits: RebootPermits = unlimited
    boot_s: float = 0.0

    def status(self, names: Sequence[str], deadline: Deadline) -> Iterator[PowerResult]:
        """Yield each machine's power, as its BMC reports it; change nothing."""
        return each([partial(self._asked, name, deadline) for name in names], self.workers)

    def switch(
        self,
        nodes: Sequence[tuple[NodeState, Serial]],
        order: PowerOrder,
        reason: str,
        intents: IntentLog,
        deadline: Deadline,
    ) -> Iterator[PowerResult]:
        """Yield each node's result as soon as it is known. An interrupted order, repeated, looks first."""
        calls = [partial(self._ordered, node, serial, order, reason, intents, deadline) for node, serial in nodes]
        return each(calls, self.workers, intents.lease)

    def _asked(self, name: str, deadline: Deadline) -> PowerResult:
        try:
            with self.bmcs.open(self.address_of(name), deadline) as bmc:
                return PowerResult(name, bmc.power(deadline).value)
        except Exception as error:  # noqa: BLE001 — whatever its data causes is its own result
            return PowerResult(name, Power.UNKNOWN, as_error(error, name))

    def _ordered(
        self, node: NodeState, serial: Serial, order: PowerOrder, reason: str, intents: IntentLog, deadline: Deadline
    ) -> PowerResult:
        fenced = intents.fenced([node.id], deadline)
        try:
            with (unlimited if order is PowerOrder.OFF else self.permits)(1, fenced):
                fenced.check(f"switching {node.name}")
                intents.note(node.id, ActIntended(act=order.act, target=serial, reason=reason))
                with self.bmcs.open(self.address_of(node.name), fenced) as bmc:
                    seen = _carry_out(bmc, order, serial, fenced)
                    observed = ActObserved(act=order.act, message=seen.value.value)
                    self._note(node, observed, self._keep(seen), intents)
                    self._await_self_test(bmc, fenced.within(self.boot_s))
        except (CancelledError, ClaimLostError, NoPermitError) as error:
            return PowerResult(node.name, Power.UNKNOWN, error)
        except Exception as error:  # noqa: BLE001 — whatever its data causes is its own result
            return self._failed(node, order, as_error(error, node.name), intents)
        return PowerResult(node.name, seen.value)

    def _failed(self, node: NodeState, order: PowerOrder, error: ClusterctlError, intents: IntentLog) -> PowerResult:
        try:
            observed = ActObserved(act=order.act, result=failure(error), message=error.message)
            self._note(node, observed, (), intents)
        except ClaimLostError as lost:
            return PowerResult(node.name, Power.UNKNOWN, lost)
        return PowerResult(node.name, Power.UNKNOWN, error)

    def _note(self, node: NodeState, observed: ActObserved, digests: tuple[Digest, ...], intents: IntentLog) -> None:
        event = node_event(node.id, observed, digests)
        self.journal.append([event], claim=intents.lease.claim(node.id))

    def _keep(self, seen: Observed[Power]) -> tuple[Digest, ...]:
        self.journal.store(seen.evidence)
        return tuple(item.digest for item in seen.evidence)

    def _await_self_test(self, bmc: BmcClient, limit: Deadline) -> None:
        """Wait until the machine's self-test is over. The machine is on: what its BMC answers changes no result."""
        with suppress(Exception):
            while limit.remaining > 0 and bmc.post(limit).value is Post.RUNNING:
                limit.sleep(POLL_S, "waiting for the machine's self-test")


def _carry_out(bmc: BmcClient, order: PowerOrder, serial: Serial, deadline: Deadline) -> Observed[Power]:
    match order:
        case PowerOrder.ON:
            return bmc.set_power(Power.ON, serial, deadline)
        case PowerOrder.OFF:
            return bmc.set_power(Power.OFF, serial, deadline)
        case PowerOrder.CYCLE:
            return bmc.cycle_power(serial, deadline)
        case PowerOrder.AC_CYCLE:
            return bmc.ac_cycle(serial, deadline)

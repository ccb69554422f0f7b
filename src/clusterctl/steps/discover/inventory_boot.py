"""An inventory that is older than the machine: power it on once, wait for its self-test, read again, leave it as found.

BMCs of many vendors learn what is in the machine only while it boots; before the first time they tell of empty sockets.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from clusterctl.fleet.errors import CancelledError, ClaimLostError, ClusterctlError, UnreachableError
from clusterctl.fleet.finding import Evidence, Finding, Observed, Verdict
from clusterctl.fleet.node import Inventory
from clusterctl.fleet.state import NodeState
from clusterctl.ports import BmcClient, Deadline, Post, Power
from clusterctl.steps.executor.step import IntentLog

ACT = "power_on_for_inventory"
POST_S = 900.0
"""So long the self-test of a machine with terabytes of memory may take."""
SHARE = 0.8
"""Of the time that the node has left; the rest is for its logs, and for switching it off."""
LOOK_S = 10.0
OFF_S = 120.0


@dataclass(frozen=True, slots=True)
class PowerOnOnce:
    """One machine whose inventory is to be taken again; `serial` of `first` is what its BMC proved to be."""

    bmc: BmcClient
    node: NodeState
    acts: IntentLog
    look_s: float = LOOK_S

    def fresh(self, first: Observed[Inventory], deadline: Deadline) -> Observed[Inventory]:
        """The inventory after a boot, with the evidence of both, else the first one with a word on why.

        Raises what reading, switching and the fence raise; the machine is switched off before, unless the run was
        stopped: then the next one finishes it, for the journal knows.
        """
        ours = any(act.act == ACT for act in self.node.open_acts)
        if first.value.on and not ours:
            return self._read(first, deadline)
        fenced = self.acts.fenced([self.node.id], deadline)
        serial = first.value.serial
        self.acts.intend(self.node.id, ACT, serial)
        on = self.bmc.set_power(Power.ON, serial, fenced)
        try:
            again = self._read(first, deadline)
        except (CancelledError, ClaimLostError):
            raise
        except ClusterctlError:
            self._off(first, deadline)
            raise
        off = self._off(first, deadline)
        return Observed(again.value, (*again.evidence, *on.evidence, *off))

    def _off(self, first: Observed[Inventory], deadline: Deadline) -> tuple[Evidence, ...]:
        """As it was found. Also when the time for the step is over: a machine that nobody wants on burns power."""
        patience = self.acts.fenced([self.node.id], Deadline.after(OFF_S, deadline.cancelled))
        seen = self.bmc.set_power(Power.OFF, first.value.serial, patience)
        self.acts.observed(self.node.id, ACT, seen.value.value)
        return seen.evidence

    def _read(self, first: Observed[Inventory], deadline: Deadline) -> Observed[Inventory]:
        """Once the self-test is over; where the BMC does not tell, until it has told all, or time is over.

        Time that runs out in the middle of a reading takes nothing of what was read before.
        """
        limit = deadline.within(min(POST_S, SHARE * deadline.remaining))
        best = first.value
        evidence = first.evidence
        while limit.remaining > self.look_s:
            limit.sleep(self.look_s, "waiting for the machine's self-test")
            try:
                post = self.bmc.post(limit).value
                if post is Post.RUNNING:
                    continue
                seen = self.bmc.inventory(limit)
            except UnreachableError:
                if limit.remaining > 0:
                    raise
                break
            best, evidence = seen.value, (*first.evidence, *seen.evidence)
            if not best.stale and (post is Post.DONE or not unseen(best)):
                break
        return Observed(best, evidence)


def why(node: NodeState, inventory: Inventory, expected: frozenset[str]) -> str:
    """Why the machine should boot once before it is judged, in words; empty where it need not, or did already.

    `expected`: the kinds of parts (`gpus`, `hcas` …) that its SKU has.
    """
    if any(act.act == ACT for act in node.open_acts):
        return "an earlier run has switched it on for its inventory"
    if inventory.on is None or node.acts.get(ACT, 0):
        return ""
    if inventory.stale:
        return inventory.stale
    missing = unseen(inventory) & expected
    if inventory.on or not missing:
        return ""
    return f"it is off, and its BMC knows none of its {', '.join(sorted(missing))}"


def unseen(inventory: Inventory) -> frozenset[str]:
    """The kinds of parts of which the BMC tells none."""
    kinds = {"gpus": inventory.gpus, "hcas": inventory.hcas, "nics": inventory.nics, "drives": inventory.drives}
    return frozenset(name for name, parts in kinds.items() if not parts)


def as_it_stands(first: Observed[Inventory], reason: str) -> Observed[Inventory]:
    """The inventory where nothing may be powered on: what is missing from it may be there all the same."""
    return replace(first, value=replace(first.value, stale=reason))


def left_alone(reason: str) -> Finding:
    """Keeps the node where it is, until somebody lets it boot once: its inventory proves nothing, whatever it lists."""
    return Finding(
        check="inventory",
        verdict=Verdict.INCONCLUSIVE,
        cause=f"{reason}; nothing was powered on (--read-only)",
        remedy="run clusterctl discover without --read-only: it powers the machine on once and reads again",
        deterministic=False,
    )

"""A boot for the inventory: power the machine on once, wait for its self-test, read again, leave it as found.

BMCs of many vendors learn what is in the machine only while it boots; before the first boot they report empty sockets.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from clusterctl.fleet.acts import Act
from clusterctl.fleet.errors import CancelledError, ClaimLostError, ClusterctlError, UnreachableError
from clusterctl.fleet.finding import Evidence, Finding, Observed, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.node import Inventory
from clusterctl.fleet.state import NodeState
from clusterctl.ports import BmcClient, Deadline, Post, Power
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.reachability import screen_of

POST_S = 900.0
"""Seconds that the self-test of a machine with terabytes of memory may take."""
SHARE = 0.8
"""The part of the node's remaining time; the rest is for its logs, and for switching it off."""
POLL_S = 10.0
OFF_S = 120.0


@dataclass(frozen=True, slots=True)
class InventoryBoot:
    """One machine with an inventory that is to be read again."""

    bmc: BmcClient
    node: NodeState
    intents: IntentLog
    poll_s: float = POLL_S

    def read_again(self, first: Observed[Inventory], deadline: Deadline) -> Observed[Inventory]:
        """Return the inventory after a boot with the evidence of both, else the first one, with the reason for its age.

        Raise what reading, switching and the fence raise. The machine is switched off before, unless the run was
        stopped: then the next run finishes it by the journal.
        """
        ours = any(act.act is Act.INVENTORY_BOOT for act in self.node.open_acts)
        if first.value.on and not ours:
            return self._read(first, deadline)
        fenced = self.intents.fenced([self.node.id], deadline)
        serial = first.value.serial
        self.intents.intend(self.node.id, Act.INVENTORY_BOOT, serial)
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
        """Switch it off, as it was found. Also when the time for the step is over: an idle machine burns power."""
        limit = self.intents.fenced([self.node.id], Deadline.after(OFF_S, deadline.cancelled))
        seen = self.bmc.set_power(Power.OFF, first.value.serial, limit)
        self.intents.observed(self.node.id, Act.INVENTORY_BOOT, seen.value.value)
        return seen.evidence

    def _read(self, first: Observed[Inventory], deadline: Deadline) -> Observed[Inventory]:
        """Read the inventory once the self-test is over; where the BMC does not report that, until it is complete.

        If the time runs out during a reading, what was read before is kept.
        """
        limit = deadline.within(min(POST_S, SHARE * deadline.remaining))
        best = first.value
        evidence = first.evidence
        while limit.remaining > self.poll_s:
            limit.sleep(self.poll_s, "waiting for the machine's self-test")
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
        if best.stale or unseen(best):
            evidence = (*evidence, *screen_of(self.bmc, deadline))
        return Observed(best, evidence)


def reason(node: NodeState, inventory: Inventory, expected: frozenset[str]) -> str:
    """Return why the machine has to boot once before it is judged; empty where it need not, or did already.

    `expected`: the kinds of parts (`gpus`, `hcas` …) that its SKU has.
    """
    if any(act.act is Act.INVENTORY_BOOT for act in node.open_acts):
        return "an earlier run has switched it on for its inventory"
    if inventory.on is None or node.intent(Act.INVENTORY_BOOT) is not None:
        return ""
    if inventory.stale:
        return inventory.stale
    missing = unseen(inventory) & expected
    if inventory.on or not missing:
        return ""
    return f"it is off, and its BMC knows none of its {', '.join(sorted(missing))}"


def unseen(inventory: Inventory) -> frozenset[str]:
    """Return the kinds of parts of which the BMC reports none."""
    kinds = {"gpus": inventory.gpus, "hcas": inventory.hcas, "nics": inventory.nics, "drives": inventory.drives}
    return frozenset(name for name, parts in kinds.items() if not parts)


def as_it_stands(first: Observed[Inventory], reason: str) -> Observed[Inventory]:
    """Return the inventory as stale, where nothing may be powered on: what is missing from it may be there."""
    return replace(first, value=replace(first.value, stale=reason))


def left_alone(reason: str, *, installed: bool = False) -> Finding:
    """Return the finding that keeps the node where it is until it boots once: its inventory proves nothing.

    `installed`: it has an OS that clusterctl did not install, and is powered on by an operator only.
    """
    remedy = "run clusterctl discover without --read-only: it powers the machine on once and reads again"
    if installed:
        remedy = "power the machine on, wait until its host is up, and run the command again"
    return Finding(
        check="inventory",
        verdict=Verdict.INCONCLUSIVE,
        code=Code.NOT_POWERED_ON,
        cause=f"{reason}; nothing was powered on{'' if installed else ' (--read-only)'}",
        remedy=remedy,
        deterministic=False,
    )

"""Asks a node's BMC before and after its loads: what it logged meanwhile, and which of its parts are no longer well.

A node that is burned in again (a night, a revalidation) has no new discover: what its BMC reports now is judged, too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from clusterctl.fleet.bmc.logs import UNREAD
from clusterctl.fleet.errors import ClusterctlError, UntrustedError
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.hardware.matching import match, match_health
from clusterctl.fleet.node import Step
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Clock, Deadline
from clusterctl.ports.isolation import peer_error
from clusterctl.steps.burnin.node_under_test import BmcReading, NodeUnderTest, unknown
from clusterctl.steps.executor.reachability import BmcProbe
from clusterctl_burnin.bmc_log.judge import Past, judge_log

BMC_S = 180.0
"""Seconds for a BMC to report log and parts; slow ones take a minute."""
CHECK = "bmc_watch"
_PASSED = frozenset({Verdict.PASS, Verdict.NOT_APPLICABLE})
_ILL = frozenset({Verdict.WARN, Verdict.FAIL})


@dataclass(frozen=True, slots=True)
class BmcWatch:
    """Compares what the BMCs of many nodes report; many threads may share it. A node without a BMC is not watched."""

    bmcs: BmcProbe
    clock: Clock

    def begin(self, node: NodeUnderTest, deadline: Deadline) -> None:
        """Read the BMC once, before the node's first load."""
        if node.state.bmc and node.bmc is None:
            node.bmc = self._read(node, deadline)

    def look(self, node: NodeUnderTest, deadline: Deadline) -> None:
        """Add what the BMC of a revalidated node reports now and the last discover did not know.

        What the BMC does not report is no finding here: discover has settled that before.
        """
        if node.state.revalidation is None:
            return
        self.begin(node, deadline)
        reading = node.bmc
        if reading is None or isinstance(reading, ClusterctlError):
            return  # `end` reports it
        health = match_health(reading.inventory, node.sku)
        judged = judge_log(reading.entries, reading.inventory, health, reading.at, past=_past(node.state))
        known = _last_verdicts(node.state)
        digests = tuple(item.digest for item in reading.evidence)
        found = [one for one in judged if one.verdict in _ILL and one.verdict.rank > known.get(_key(one), -1)]
        node.findings += [replace(one, evidence=digests) for one in found]
        node.keep(reading.evidence)

    def end(self, node: NodeUnderTest, deadline: Deadline) -> None:
        """Add what the BMC logged since `begin`, and which fans, supplies, sensors and other parts failed since."""
        before = node.bmc
        if before is None:
            return
        after = before if isinstance(before, ClusterctlError) else self._read(node, deadline)
        if isinstance(after, ClusterctlError):
            node.findings.append(_unread(node.state, after))
        elif isinstance(before, BmcReading):
            found = [_of_its_log(one, node.state) for one in _found_since(before, after, node)]
            during = f"found after loads since {before.at:%H:%M:%S} UTC"
            digests = tuple(item.digest for item in after.evidence)
            node.findings += [replace(one, cause=f"{one.cause} ({during})", evidence=digests) for one in found]
            node.keep(after.evidence if found else ())

    def _read(self, node: NodeUnderTest, deadline: Deadline) -> BmcReading | ClusterctlError:
        limit = deadline.within(BMC_S)
        try:
            with self.bmcs.bmcs.open(self.bmcs.address_of(node.name), limit) as bmc:
                inventory, log = bmc.inventory(limit), bmc.event_log(limit)
        except Exception as error:  # noqa: BLE001 — peer_error raises what is not the peer's
            return peer_error(error, node.name)
        if not inventory.value.is_machine(node.serial):
            return UntrustedError(
                f"the BMC at {node.state.bmc} shows the machine {inventory.value.serial}, not {node.serial}",
                where=node.name,
                remedy="correct the BMC's address in the sheet",
            )
        return BmcReading(self.clock.now(), inventory.value, log.value, (*inventory.evidence, *log.evidence))


def _found_since(before: BmcReading, after: BmcReading, node: NodeUnderTest) -> list[Finding]:
    """Return what the second reading shows, and neither the first nor the node's findings do, or only as lighter.

    A log that could not be read in either reading was not watched: that is a finding each time.
    """
    earlier = frozenset(entry for entry in before.entries if not (entry.message_id == UNREAD and entry.log))
    new = [entry for entry in after.entries if entry not in earlier]
    bad = [one for one in match(after.inventory, node.sku) if one.verdict is Verdict.FAIL]
    known = (one for one in (*node.findings, *match(before.inventory, node.sku)) if one.verdict not in _PASSED)
    judged = judge_log(new, after.inventory, bad, after.at)
    return unknown((one for one in judged if one.verdict not in _PASSED), known)


def _of_its_log(finding: Finding, state: NodeState) -> Finding:
    """Return the finding; that a log is unread takes no machine out of gold, as the silence of its BMC does not."""
    unread = finding.verdict is Verdict.INCONCLUSIVE and finding.code is Code.NOT_REPORTED
    return replace(finding, verdict=Verdict.WARN) if unread and state.revalidation is not None else finding


def _key(finding: Finding) -> tuple[str, str, Code]:
    return finding.check, finding.subject, finding.code


def _last_verdicts(state: NodeState) -> dict[tuple[str, str, Code], int]:
    """Return how bad the last discover found what it reported."""
    report = state.reports.get(Step.DISCOVER.value)
    return {_key(one): one.verdict.rank for one in report.findings} if report else {}


def _past(state: NodeState) -> Past:
    """Return what the log is judged by: the last discover, and that the host has answered at the last admission."""
    report = state.reports.get(Step.DISCOVER.value)
    return Past(report.findings if report else (), state.admitted_at)


def _unread(state: NodeState, error: ClusterctlError) -> Finding:
    """Return the finding on a BMC that was not read: a warning where the machine is burned in again.

    Such a machine has been gold with this BMC; that its BMC is silent proves nothing against the machine.
    """
    again = state.revalidation is not None
    return Finding(
        check=CHECK,
        verdict=Verdict.WARN if again else Verdict.INCONCLUSIVE,
        code=Code.NOT_MEASURED,
        subject="bmc",
        cause=f"the BMC was not read before and after the loads: {error.message}",
        remedy=error.remedy or "check the BMC's power, cable and address, then run the burn-in again",
        deterministic=False,
    )

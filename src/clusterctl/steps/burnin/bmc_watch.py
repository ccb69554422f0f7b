"""Asks a node's BMC before and after its loads: what it logged meanwhile, and which of its parts are no longer well."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from clusterctl.fleet.errors import ClusterctlError
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.hardware.matching import match
from clusterctl.ports import Clock, Deadline
from clusterctl.ports.isolation import peer_error
from clusterctl.steps.burnin.node_under_test import BmcReading, NodeUnderTest
from clusterctl.steps.executor.reachability import BmcProbe
from clusterctl_burnin.bmc_log.judge import judge_log

BMC_S = 180.0
"""Seconds for a BMC to report log and parts; slow ones take a minute."""
CHECK = "bmc_watch"
_PASSED = frozenset({Verdict.PASS, Verdict.NOT_APPLICABLE})


@dataclass(frozen=True, slots=True)
class BmcWatch:
    """Compares what the BMCs of many nodes report; many threads may share it. A node without a BMC is not watched."""

    bmcs: BmcProbe
    clock: Clock

    def begin(self, node: NodeUnderTest, deadline: Deadline) -> None:
        """Read the BMC once, before the node's first load."""
        if node.state.bmc and node.bmc is None:
            node.bmc = self._read(node, deadline)

    def end(self, node: NodeUnderTest, deadline: Deadline) -> None:
        """Add what the BMC logged since `begin`, and which fans, supplies, sensors and other parts failed since."""
        before = node.bmc
        if before is None:
            return
        after = before if isinstance(before, ClusterctlError) else self._read(node, deadline)
        if isinstance(before, ClusterctlError) or isinstance(after, ClusterctlError):
            node.findings += [_unread(one) for one in (after,) if isinstance(one, ClusterctlError)]
            return
        earlier = frozenset(before.entries)
        new = [entry for entry in after.entries if entry not in earlier]
        bad = [one for one in match(after.inventory, node.sku) if one.verdict is Verdict.FAIL]
        known = _keys([*node.findings, *match(before.inventory, node.sku)])
        judged = judge_log(new, after.inventory, bad, after.at)
        found = [one for one in judged if one.verdict not in _PASSED and not known & _keys([one])]
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
        return BmcReading(self.clock.now(), inventory.value, log.value, (*inventory.evidence, *log.evidence))


def _keys(findings: Iterable[Finding]) -> frozenset[tuple[str, str, Code]]:
    """Return what identifies findings of which the node is known to have some that are no pass."""
    return frozenset((one.check, one.subject, one.code) for one in findings if one.verdict not in _PASSED)


def _unread(error: ClusterctlError) -> Finding:
    return Finding(
        check=CHECK,
        verdict=Verdict.INCONCLUSIVE,
        code=Code.NOT_MEASURED,
        subject="bmc",
        cause=f"the BMC was not read before and after the loads: {error.message}",
        remedy=error.remedy or "check the BMC's power, cable and address, then run the burn-in again",
        deterministic=False,
    )

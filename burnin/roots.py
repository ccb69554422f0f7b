"""One cause, one root finding: links every consequence to the finding that explains it. Pure, and safe to repeat."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from clusterctl.fleet.finding import Finding, Verdict

_GPU_CHECKS = frozenset({"gpu_count", "gpu_ecc", "gpu_row_remap", "gpu_idle", "nvlink", "pcie_width"})
_LOADS = frozenset({"ib_write_bw", "all_reduce"})

Test = Callable[[Finding], bool]


@dataclass(frozen=True, slots=True)
class Rule:
    """A failed finding that meets `root` explains each bad one that meets `consequence` (of the same part, if so)."""

    root: Test
    consequence: Test
    same_part: bool = False


def _of(*checks: str) -> Test:
    return lambda finding: finding.check in checks


def _unmeasured(checks: frozenset[str]) -> Test:
    return lambda finding: finding.check in checks and finding.verdict is Verdict.INCONCLUSIVE


def _xid(finding: Finding) -> bool:
    return finding.check == "kernel_log" and finding.measured.startswith("Xid ")


def _off_the_bus(finding: Finding) -> bool:
    return finding.check == "kernel_log" and finding.measured == "Xid 79"


def _node_wide(checks: frozenset[str]) -> Test:
    return lambda finding: finding.check in checks and finding.subject == "node"


RULES = (
    Rule(_of("identity"), lambda _: True),
    Rule(_of("nvidia_driver"), _of(*_GPU_CHECKS)),
    Rule(_off_the_bus, _node_wide(_GPU_CHECKS)),
    Rule(_off_the_bus, _xid, same_part=True),
    Rule(_xid, _of("gpu_ecc", "gpu_row_remap", "nvlink", "pcie_width"), same_part=True),
    Rule(_xid, _unmeasured(_GPU_CHECKS | {"nvidia_driver"})),
    Rule(_of("gpu_count"), _node_wide(_GPU_CHECKS)),
    Rule(_of("hca_count"), _node_wide(frozenset({"hca_link", "pcie_width"}))),
    Rule(_of("pcie_width"), _of("kernel_log"), same_part=True),
    Rule(_of("cable", "hca_link"), _of("ib_write_bw"), same_part=True),
    Rule(_of("hca_count", "pcie_width"), _of(*_LOADS)),
    Rule(_of("hca_link"), _of("all_reduce")),
    Rule(_of("ib_write_bw"), _of("all_reduce")),
)
"""In order: the first rule that explains a finding wins."""


def link_roots(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings in the same order, each consequence with its root's `key`; a root is never a consequence itself."""
    linked = list(findings)
    for rule in RULES:
        roots = [f for f in linked if f.verdict is Verdict.FAIL and not f.root and rule.root(f)]
        linked = [_link(finding, rule, roots) for finding in linked]
    return _same_cause(_flatten(linked))


def _link(finding: Finding, rule: Rule, roots: Sequence[Finding]) -> Finding:
    if finding.verdict.admits or finding.root or not rule.consequence(finding):
        return finding
    for root in roots:
        if root.key != finding.key and (not rule.same_part or _same_part(root, finding)):
            return replace(finding, root=root.key)
    return finding


def _same_part(one: Finding, other: Finding) -> bool:
    """The same serial where both tell one, else the same name; never by being about the whole node."""
    if one.serial and other.serial:
        return one.serial == other.serial
    return one.subject == other.subject != "node"


def _flatten(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """A consequence of a consequence points at the first cause."""
    roots = {f.key: f.root for f in findings if f.root}

    def first(key: str, seen: frozenset[str]) -> str:
        return first(roots[key], seen | {key}) if key in roots and key not in seen else key

    return tuple(replace(f, root=first(f.root, frozenset({f.key}))) if f.root else f for f in findings)


def _same_cause(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Several checks unmeasured for one and the same reason (a hung tool): the first stands for all."""
    first: dict[str, str] = {}
    result = []
    for finding in findings:
        if finding.verdict is Verdict.INCONCLUSIVE and not finding.root:
            root = first.setdefault(finding.cause, finding.key)
            result.append(finding if root == finding.key else replace(finding, root=root))
        else:
            result.append(finding)
    return tuple(result)

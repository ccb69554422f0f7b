"""One cause, one root finding: links every consequence to the finding that explains it. Pure, and safe to repeat."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl_burnin.check import Cause

_PCIE_CHECKS = frozenset({"pcie_chain", "gpudirect_rdma"})
_GPU_SETTINGS = frozenset(
    {"gpu_persistence", "gpu_firmware", "site_firmware", "fabric_manager", "gpu_topology", "gpu_temperature"}
    | {
        "docker_gpu",
        "gpu_recovery",
        "gpu_settings",
        "gpu_slowdown",
        "gpu_pcie",
        "gpu_memory_size",
        "sensor_plausible",
        "idle_power",
    }
)
_DOCKERS = ("docker", "docker_gpu", "monitoring_containers")
_GPU_CHECKS = (
    frozenset({"gpu_count", "gpu_ecc", "gpu_row_remap", "gpu_idle", "nvlink", "pcie_width"})
    | _PCIE_CHECKS
    | _GPU_SETTINGS
)
_ASK_THE_DRIVER = _GPU_CHECKS | {"nvidia_driver", "dcgm_exporter", "container_permissions"}
"""Checks that measure nothing where the driver does not answer."""
_HCA_CHECKS = frozenset(
    {"hca_link", "hca_firmware", "site_firmware", "hca_errors", "pcie_width", "transceivers", "roce"}
)
_LOADS = frozenset({"ib_write_bw", "all_reduce", "all_reduce_node", "all_reduce_rail", "hang_hunt", "training"})
_OF_RANKS = (_LOADS - {"ib_write_bw"}) | {"nccl_init"}
_RAIL_LOADS = ("ib_write_bw", "all_reduce_rail")
"""Loads that measure each adapter by itself."""

_XIDS = (Code.XID, Code.XID_MEMORY, Code.XID_OFF_THE_BUS)
_GPU_LOADS = ("dcgm_diag", "gpu_load", "all_at_once")

Test = Callable[[Finding], bool]
NO_CAUSES: Mapping[str, Sequence[Cause]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class RootRule:
    """A failed finding that meets `root` explains each bad one that meets `consequence`, of the same part if so set."""

    root: Test
    consequence: Test
    same_part: bool = False


def _of(*checks: str) -> Test:
    return lambda finding: finding.check in checks


def _unmeasured(checks: frozenset[str]) -> Test:
    return lambda finding: finding.check in checks and finding.verdict is Verdict.INCONCLUSIVE


def _coded(*codes: Code) -> Test:
    return lambda finding: finding.code in codes


def _node_wide(checks: frozenset[str]) -> Test:
    return lambda finding: finding.check in checks and finding.subject == "node"


def _slow_or_unmeasured(finding: Finding) -> bool:
    return finding.check in _LOADS or finding.verdict is Verdict.INCONCLUSIVE


def _failed_to_run(finding: Finding) -> bool:
    """Return whether it is on a load of several processes that ended or hung: they meet by files (Open MPI in /tmp)."""
    return finding.check in _OF_RANKS and finding.code in (Code.LOAD_FAILED, Code.LOAD_HUNG)


_xid = _coded(*_XIDS)
_off_the_bus = _coded(Code.XID_OFF_THE_BUS)
_remap_failed = _coded(Code.GPU_REMAP_FAILED)

RULES = (
    RootRule(_of("reachable"), lambda _: True),
    RootRule(_of("identity"), lambda _: True),
    RootRule(_of("cpu_share"), _slow_or_unmeasured),
    RootRule(_of("root_writable", "disk_space"), _of(*_DOCKERS, "failed_units", "node_exporter")),
    RootRule(_of("root_writable", "disk_space"), _failed_to_run),
    RootRule(_of("mounts"), _of(*_DOCKERS, "failed_units")),
    RootRule(_of("zpool"), _of(*_DOCKERS, "failed_units")),
    RootRule(_of("docker"), _of("zpool", "docker_gpu", "monitoring_containers")),
    RootRule(_of("host_network"), _of("dns")),
    RootRule(_of("nvidia_driver"), _of(*_GPU_CHECKS)),
    RootRule(_off_the_bus, _of("gpu_count"), same_part=True),
    RootRule(_off_the_bus, _node_wide(_GPU_CHECKS)),
    RootRule(_off_the_bus, _xid, same_part=True),
    RootRule(_remap_failed, _of("gpu_ecc"), same_part=True),
    RootRule(_remap_failed, _coded(Code.XID_MEMORY), same_part=True),
    RootRule(_of("gpu_idle"), _of("gpu_temperature"), same_part=True),
    RootRule(_xid, _of("gpu_ecc", "gpu_row_remap", "gpu_recovery", "nvlink", "pcie_width"), same_part=True),
    RootRule(_xid, _unmeasured(_ASK_THE_DRIVER)),
    RootRule(_of("stuck_processes"), _coded(Code.PROBE_TIMED_OUT)),
    RootRule(_xid, _of("stuck_processes")),
    RootRule(_of("nvidia_driver"), _of(*_GPU_LOADS)),
    RootRule(_xid, _of(*_GPU_LOADS), same_part=True),
    RootRule(_of(*_GPU_CHECKS), _of(*_GPU_LOADS), same_part=True),
    RootRule(_of("gpu_count", "fabric_manager"), _unmeasured(frozenset(_GPU_LOADS))),
    RootRule(_of("dcgm_diag"), _of("gpu_load"), same_part=True),
    RootRule(_of("dcgm_diag", "gpu_load", "stress_ng", "nvme_read"), _of("all_at_once"), same_part=True),
    RootRule(_of("gpu_count"), _node_wide(_GPU_CHECKS)),
    RootRule(_of("gpu_count"), _unmeasured(_ASK_THE_DRIVER)),
    RootRule(_of("hca_firmware", "gpu_firmware"), _of("site_firmware"), same_part=True),
    RootRule(_of("nvlink"), _of("fabric_manager"), same_part=True),
    RootRule(_of("fabric_manager"), _of("nvlink", "all_reduce")),
    RootRule(_of("nvlink", "fabric_manager"), _of("gpu_topology")),
    RootRule(_of("hca_count"), _of("gpu_topology")),
    RootRule(_of("gpu_topology"), _of("all_reduce")),
    RootRule(_of("hca_count"), _node_wide(_HCA_CHECKS)),
    RootRule(_of("hca_count"), _unmeasured(_PCIE_CHECKS)),
    RootRule(_of("hca_link"), _unmeasured(frozenset({"hca_errors", "transceivers"})), same_part=True),
    RootRule(_of("transceivers"), _of("hca_link", "hca_errors", *_RAIL_LOADS), same_part=True),
    RootRule(_of("pcie_width"), _of("kernel_log"), same_part=True),
    RootRule(_of("pcie_chain"), _coded(Code.PCIE_BANDWIDTH_LIMITED)),
    RootRule(_of("pcie_chain", "gpudirect_rdma"), _of(*_LOADS)),
    RootRule(_of("cable", "hca_link", "hca_errors", "hca_firmware"), _of(*_RAIL_LOADS), same_part=True),
    RootRule(_of("hca_count", "pcie_width", "cpu_frequency"), _of(*_LOADS)),
    RootRule(_of("hca_link", "hca_errors", "nvlink"), _of("all_reduce")),
    RootRule(_of("nvlink", "fabric_manager", "gpu_topology"), _of("all_reduce_node")),
    RootRule(_xid, _of("all_reduce", "all_reduce_node")),
    RootRule(_of("ib_write_bw"), _of("all_reduce_rail"), same_part=True),
    RootRule(_of(*_RAIL_LOADS, *_GPU_LOADS, "all_reduce_node"), _of("all_reduce")),
)
"""In order: the first rule that explains a finding wins."""


def link_roots(findings: Iterable[Finding], causes: Mapping[str, Sequence[Cause]] = NO_CAUSES) -> tuple[Finding, ...]:
    """Return the findings in the same order, each consequence with its root's `key`; a root is never a consequence.

    `causes`: by check, what else explains its findings; the rules above go before them.
    """
    found = tuple(findings)
    linked = _by_rules([finding for finding in found if not finding.verdict.admits])
    bad_checks = {finding.check for finding in linked}
    for check in [check for check in causes if check in bad_checks]:
        for cause in causes[check]:
            linked = _with_cause(linked, check, cause)
    bad = iter(_same_fault(_flatten(linked)))
    return tuple(finding if finding.verdict.admits else next(bad) for finding in found)


def _by_rules(findings: list[Finding]) -> list[Finding]:
    failed = _failed(findings)
    for rule in RULES:
        if roots := [finding for finding in failed if rule.root(finding)]:
            findings = [_link(finding, rule, roots) for finding in findings]
            failed = _failed(findings)
    return findings


def _with_cause(findings: list[Finding], check: str, cause: Cause) -> list[Finding]:
    """Link the findings of `check` to failed ones of its cause, which may be consequences themselves."""
    roots = [finding for finding in findings if finding.check == cause.check and finding.verdict is Verdict.FAIL]
    if not roots:
        return findings
    parents = {finding.key: finding.root for finding in findings if finding.root}
    consequence = _unmeasured(frozenset({check})) if cause.unmeasured else _of(check)
    rule = RootRule(_of(cause.check), consequence, cause.same_part)

    def linked(finding: Finding) -> Finding:
        return _link(finding, rule, [root for root in roots if finding.key not in _chain(root.key, parents)])

    return [linked(finding) for finding in findings]


def _chain(key: str, parents: Mapping[str, str]) -> Iterator[str]:
    """Yield the finding's key and those of its roots, up to the first cause."""
    while key:
        yield key
        key = parents.get(key, "")


def _failed(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings that can explain others."""
    return [finding for finding in findings if finding.verdict is Verdict.FAIL and not finding.root]


def _link(finding: Finding, rule: RootRule, roots: Sequence[Finding]) -> Finding:
    """Link a finding to its root. Of two roots that would explain each other, the first explains the second."""
    if finding.root or not rule.consequence(finding):
        return finding
    for root in itertools.takewhile(lambda root: root.key != finding.key, roots):
        if not rule.same_part or _same_part(root, finding):
            return replace(finding, root=root.key)
    return finding


def _same_part(one: Finding, other: Finding) -> bool:
    """Return whether both are of one part, not the node: the same serial where both have one, else the same name."""
    if one.serial and other.serial:
        return one.serial == other.serial
    return one.subject == other.subject != "node"


def _flatten(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return the findings, a consequence of a consequence with the first cause as its root."""
    unexplained = {f.key for f in findings if not f.root}
    roots = {f.key: f.root for f in findings if f.root and f.key not in unexplained}

    def first(key: str, seen: frozenset[str]) -> str:
        return first(roots[key], seen | {key}) if key in roots and key not in seen else key

    return tuple(replace(f, root=first(f.root, frozenset({f.key}))) if f.root else f for f in findings)


def _same_fault(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Link checks that are unmeasured for one and the same reason (a hung tool) to the first of them.

    What stands for others points at nothing, also where its check found a second thing on the same part.
    """
    first: dict[tuple[Code, str], str] = {}
    for finding in findings:
        if _alike(finding):
            first.setdefault((finding.code, finding.fault), finding.key)
    roots = frozenset(first.values())
    return tuple(replace(f, root=first[f.code, f.fault]) if _alike(f) and f.key not in roots else f for f in findings)


def _alike(finding: Finding) -> bool:
    return finding.verdict is Verdict.INCONCLUSIVE and not finding.root and bool(finding.fault)

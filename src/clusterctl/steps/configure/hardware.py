"""What a failed task may follow from: a GPU off the bus, an error in the kernel log, a fault that the BMC reports.

A role fails where the part that it sets up is broken, and its message is then about packages. So the machine is looked
at before the task is blamed. Only what fails for certain is a cause: a node that is not configured yet lacks tools.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from clusterctl.fleet.finding import Evidence, Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Quantity, exactly
from clusterctl.fleet.state import NodeState
from clusterctl.formats.host.pci import PciDevice
from clusterctl.ports import Clock, Deadline, HostAddress, Shell
from clusterctl.steps.burnin.node_under_test import SessionFailure, SkuLimits, read_probes
from clusterctl.steps.executor.reachability import BmcProbe
from clusterctl_burnin.bmc_log.judge import judge_log
from clusterctl_burnin.check import Cause, Check, Expected, causes_of
from clusterctl_burnin.kernel_log.known_lines import KnownLines
from clusterctl_burnin.probe import Readings
from clusterctl_burnin.probes.lspci import LSPCI, adapters, gpus, read_tree
from clusterctl_burnin.registry import CHECKS
from clusterctl_burnin.roots import link_roots
from clusterctl_burnin.sweep import judge, sweep

PCI_DEVICES = "pci_devices"
"""The check's name."""
LOOK_S = 90.0
"""Seconds for the whole look at one node."""
_GONE = "(rev ff)"
"""What lspci reads of a device that no longer answers: all ones."""
_RESEAT = "power the machine off and on; if it is still absent, reseat the {0}, then replace it"
_REPORTED = frozenset(
    {Code.GPU_OFF_THE_BUS, Code.GPU_RESET_NEEDED, Code.GPU_MEMORY_UNREPAIRABLE, Code.GPU_REPAIR_PENDING}
)
"""What nvidia-smi reports reliably, configured or not."""

Look = tuple[tuple[Finding, ...], tuple[Evidence, ...]]


@dataclass(frozen=True, slots=True)
class HardwareProbe:
    """Reads the hardware of a node with a failed configuration.

    limits   by SKU; a node of another SKU is judged by what needs no SKU
    """

    shell: Shell
    clock: Clock
    bmcs: BmcProbe
    limits: Mapping[str, SkuLimits]
    known_lines: KnownLines = field(default_factory=KnownLines)

    def look(self, node: NodeState, host: HostAddress, deadline: Deadline) -> Look:
        """Return the faults that are certain, the gravest first, and the evidence; nothing where none was measured."""
        on_host, evidence = self._look_on_host(node, host, deadline)
        bmc = self.bmcs.read(node.name, deadline)
        on_bmc = judge_log(bmc.entries, node.inventory, (), self.clock.now()) if node.inventory is not None else ()
        faults = link_roots([*on_host, *(one for one in on_bmc if one.verdict is Verdict.FAIL)], causes_of(_CHECKS))
        return faults, (*evidence, *bmc.evidence)

    def _look_on_host(self, node: NodeState, host: HostAddress, deadline: Deadline) -> Look:
        profile = self.limits.get(node.sku)
        if profile is None or node.serial is None:
            return (), ()
        plan = sweep(_CHECKS, profile.limits.patience)
        sent = self.clock.now()
        limit = deadline.within(LOOK_S)
        readings, evidence = read_probes(self.shell, host, plan.stdin, limit, privileged=True)
        if isinstance(readings, SessionFailure):
            return (), evidence
        context = Expected(
            name=node.name,
            serial=node.serial,
            sku=profile.sku,
            limits=profile.limits,
            sent=sent,
            received=self.clock.now(),
            inventory=node.inventory,
            known_lines=self.known_lines,
        )
        judged = judge(plan.checks, readings, context)
        return tuple(one for one in judged.findings if _certain(one)), (*evidence, *judged.evidence)


def explained(task: Finding, faults: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return the faults and the task's failure, which follows from the first of them; the task alone without any."""
    if not faults:
        return (task,)
    first = next((fault for fault in faults if not fault.root), faults[0])
    return (*faults, replace(task, root=first.key))


def _certain(finding: Finding) -> bool:
    if finding.verdict is not Verdict.FAIL:
        return False
    return finding.check in (PCI_DEVICES, "kernel_log") or finding.code in _REPORTED


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    tree, sku = read_tree(readings), expected.sku
    kinds: tuple[tuple[str, Sequence[PciDevice], int, Code], ...] = (
        ("GPU", gpus(tree), sku.gpu_count, Code.GPU_COUNT),
        ("adapter", adapters(tree, sku), sku.hca_count, Code.HCA_COUNT),
    )
    for kind, devices, wanted, code in kinds:
        yield from _silent(kind, [device for device in devices if _GONE in device.name])
        if len(devices) < wanted:
            yield Finding(
                check=PCI_DEVICES,
                verdict=Verdict.FAIL,
                code=code,
                subject=f"{kind.lower()}s",
                cause=f"{len(devices)} of {wanted} {kind}s are on the PCI bus",
                measured=Quantity(len(devices), f"{kind}s"),
                expected=exactly(wanted, f"{kind}s"),
                remedy=_RESEAT.format(kind),
            )


def _silent(kind: str, devices: Sequence[PciDevice]) -> Iterator[Finding]:
    for device in devices:
        yield Finding(
            check=PCI_DEVICES,
            verdict=Verdict.FAIL,
            code=Code.GPU_OFF_THE_BUS if kind == "GPU" else Code.HCA_COUNT,
            subject=f"{'gpu' if kind == 'GPU' else 'hca'} {device.address}",
            cause=f"the {kind} is listed on the PCI bus and no longer answers",
            remedy=_RESEAT.format(kind),
        )


_CHECKS = (
    CHECKS["kernel_log"],
    Check(PCI_DEVICES, (LSPCI,), _judge, causes=(Cause("kernel_log", same_part=True),)),
    CHECKS["gpu_count"],
    CHECKS["gpu_recovery"],
)

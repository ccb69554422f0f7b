"""discover for a machine without a BMC: its make and serial as its own host's firmware reports them.

Parts, sensors and logs are not read here: the burn-in's checks count and judge the parts on the host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from clusterctl.fleet.errors import ClusterctlError, ParseError, UntrustedError
from clusterctl.fleet.event import NewEvent, node_event
from clusterctl.fleet.finding import Evidence, Finding, Observed, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.hardware.matching import choose_sku, judge_model
from clusterctl.fleet.hardware.sku import Sku
from clusterctl.fleet.node import Inventory, Serial
from clusterctl.fleet.payloads.node import NodeIdentified
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Deadline, HostAddress, Shell
from clusterctl.steps.discover import findings
from clusterctl.steps.executor.reachability import SshAccess
from clusterctl.steps.executor.step import StepOutcome, with_evidence
from clusterctl.steps.install.adopt import read_firmware_text, read_serial

_MAKE = ("system-manufacturer", "sys_vendor")
_MODEL = ("system-product-name", "product_name")
"""What dmidecode and the kernel (/sys/class/dmi/id) call the strings of SMBIOS type 1 (DMTF DSP0134)."""
_COUNTED = {
    "gpu_count": "the burn-in counts the GPUs on the host",
    "hca_count": "the burn-in counts the adapters on the host",
    "root_disk": "install reads on the host which disk it runs from",
}
"""What discover must report of every machine, and what replaces it where no BMC lists the parts."""


@dataclass(frozen=True, slots=True)
class HostMachines:
    """Reads the machines of adopted nodes without a BMC over SSH."""

    shell: Shell
    access: SshAccess

    def read(self, node: NodeState, deadline: Deadline) -> Observed[Inventory] | None:
        """Return maker, model and serial; None where no host key of the node is confirmed. Raises as `Shell`."""
        host = self.access.address(node)
        return None if host is None or not node.adopted else read_machine(self.shell, host, deadline)


def read_machine(shell: Shell, host: HostAddress, deadline: Deadline) -> Observed[Inventory]:
    """Return the machine that a host runs on. Raises `ParseError` where its firmware reports no serial or make."""
    serial = read_serial(shell, host, deadline)
    maker, model = (read_firmware_text(shell, host, names, deadline) for names in (_MAKE, _MODEL))
    found = Inventory(manufacturer=maker.value, model=model.value, serial=Serial(serial.value), on=True)
    return Observed(found, (*serial.evidence, *maker.evidence, *model.evidence))


def not_adopted(node: NodeState) -> Finding:
    """Return the finding on a node whose machine nothing can show yet."""
    return Finding(
        check="bmc",
        verdict=Verdict.INCONCLUSIVE,
        code=Code.HOST_UNKNOWN,
        subject="bmc",
        cause="the site gives it no BMC, and its host is not adopted: nothing shows which machine it is",
        remedy=f"run clusterctl adopt {node.name}, or write its BMC's address into the sheet",
    )


def host_unread(node: NodeState, error: ClusterctlError) -> Finding:
    """Return the finding on a host that could not be asked for its machine. Another host key is certain."""
    unread = isinstance(error, ParseError)
    changed = isinstance(error, UntrustedError)
    code = Code.OUTPUT_UNREADABLE if unread else Code.HOST_NOT_TRUSTED if changed else Code.SSH_UNKNOWN
    return Finding(
        check="bmc",
        verdict=Verdict.INCONCLUSIVE if unread else Verdict.FAIL,
        code=code,
        cause=f"it has no BMC, and its host does not show the machine: {error.message}",
        remedy=error.remedy or f"see that {node.name} is up and its sshd answers",
        deterministic=changed,
        where=error.where,
    )


def judge_host(
    node: NodeState, seen: Observed[Inventory], skus: Sequence[Sku], identity: Callable[[NodeState, Inventory], Finding]
) -> StepOutcome:
    """Return the outcome for a machine by what its host reports."""
    machine = seen.value
    sku = choose_sku(machine, skus)
    of_machine = identity(node, machine)
    made = judge_model(machine, sku) if sku else findings.no_sku(machine, skus)
    found = (_no_bmc(), of_machine, findings.with_place(made, node), *map(_left_to_others, _COUNTED))
    facts = _identified(node, machine, sku) if of_machine.verdict.admits else ()
    evidence: tuple[Evidence, ...] = seen.evidence
    return StepOutcome(node.id, with_evidence(found, evidence), evidence, facts, suite=sku.name if sku else "")


def _no_bmc() -> Finding:
    return Finding(
        check="bmc",
        verdict=Verdict.NOT_APPLICABLE,
        code=Code.NOT_APPLICABLE,
        subject="bmc",
        cause="the site gives it no BMC: its power, sensors and event log are not read",
    )


def _left_to_others(check: str) -> Finding:
    return Finding(
        check=check,
        verdict=Verdict.NOT_APPLICABLE,
        code=Code.NOT_APPLICABLE,
        cause=f"no BMC lists the parts: {_COUNTED[check]}",
    )


def _identified(node: NodeState, machine: Inventory, sku: Sku | None) -> tuple[NewEvent, ...]:
    """Return the node's new attributes. Its root disk is judged by the SKU's rule on the host.

    One of no SKU has its make and serial, to make its SKU of. A node keeps the SKU that it had.
    """
    if sku is None:
        return () if node.sku else (node_event(node.id, NodeIdentified(inventory=machine, sku="")),)
    return (node_event(node.id, NodeIdentified(inventory=machine, sku=sku.name, root_rule=sku.root_disk)),)

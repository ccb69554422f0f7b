"""install for machines that are installed already: prove that the host is the machine; write nothing on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace

from clusterctl.fleet.errors import ClusterctlError, ParseError, UntrustedError
from clusterctl.fleet.event import node_event
from clusterctl.fleet.finding import Evidence, Finding, Observed, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.hardware.disk_contract import DATA, DiskContract
from clusterctl.fleet.node import Serial, Step
from clusterctl.fleet.payloads.node import RootDiskProven
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Deadline, HostAddress, Shell
from clusterctl.ports.isolation import peer_error
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.reachability import SshAccess
from clusterctl.steps.executor.step import StepOutcome, StepRunner
from clusterctl.steps.install.confirm import DiskProver, greet

ANSWER_S = 30.0
"""Seconds for one answer of a host."""
WORKERS = 32
_SERIAL = ("system-serial-number", "product_serial")
"""What dmidecode and the kernel (/sys/class/dmi/id) call the machine's serial: SMBIOS type 1 (DMTF DSP0134)."""
_UNSET = frozenset(
    {"none", "n/a", "not specified", "not applicable", "default string", "system serial number", "empty"}
    | {"to be filled by o.e.m.", "0123456789", "123456789", "0"}
)
"""What firmware reports where a string was never set, in lower case."""


def read_serial(shell: Shell, host: HostAddress, deadline: Deadline) -> Observed[str]:
    """Return the machine's serial as its host's firmware reports it. Raises `ParseError` where it reports none."""
    return read_firmware_text(shell, host, _SERIAL, deadline)


def read_firmware_text(shell: Shell, host: HostAddress, names: tuple[str, str], deadline: Deadline) -> Observed[str]:
    """Return a string of the machine as its host's firmware reports it; the first tool that answers counts.

    `names`: the string's name for dmidecode, and its file's below /sys/class/dmi/id.
    Raises `ParseError` where the firmware reports none.
    """
    sudo = () if host.user == "root" else ("sudo", "-n")
    evidence: tuple[Evidence, ...] = ()
    printed = ""
    for argv in (("dmidecode", "-s", names[0]), ("cat", f"/sys/class/dmi/id/{names[1]}")):
        ran = shell.run(host, (*sudo, *argv), b"", deadline.within(ANSWER_S))
        evidence += ran.evidence
        lines = _lines(ran.value.stdout)
        if ran.value.exit_status == 0 and lines and lines[-1].casefold() not in _UNSET:
            return Observed(lines[-1], evidence)
        printed = printed or (ran.value.stderr.strip().splitlines() or lines or ["no answer"])[-1][:200]
    raise ParseError(
        f"its host does not report the machine's {_label(names[0])} ({printed})",
        where=host.name,
        remedy=f"let {host.user} run sudo without a password there, and set it with the vendor's tool",
    )


def _label(name: str) -> str:
    """Return what dmidecode's name of a string means: `serial number`, `manufacturer`, `product name`."""
    return name.removeprefix("system-").replace("-", " ")


def _lines(printed: str) -> list[str]:
    """Return the lines without dmidecode's comments."""
    return [line.strip() for line in printed.splitlines() if line.strip() and not line.startswith("#")]


def same_serial(one: str, other: str) -> bool:
    """Return whether two serials are one: firmware and BMC may write it in other letter case."""
    return one.strip().casefold() == other.strip().casefold()


@dataclass(frozen=True, slots=True)
class AdoptServices:
    """What the step works with."""

    shell: Shell
    access: SshAccess


class Adopt:
    """Proves of adopted machines that the host with the confirmed key runs on the machine that the BMC shows."""

    step = Step.INSTALL
    minimum = 1
    linger_s = 0.0
    at_once = 16

    def __init__(self, services: AdoptServices) -> None:
        self._services = services

    def run(self, nodes: Sequence[NodeState], intents: IntentLog, deadline: Deadline) -> Iterator[StepOutcome]:
        del intents  # it acts on nothing
        with ThreadPoolExecutor(min(WORKERS, len(nodes)), "adopt") as pool:
            futures = [pool.submit(self._outcome, node, deadline) for node in nodes]
            for future in as_completed(futures):
                yield future.result()

    def _outcome(self, node: NodeState, deadline: Deadline) -> StepOutcome:
        try:
            return self._verify(node, deadline)
        except Exception as error:  # noqa: BLE001 — peer_error raises what is not the peer's
            return StepOutcome.of(node, _no_answer(node, peer_error(error, node.name)))

    def _verify(self, node: NodeState, deadline: Deadline) -> StepOutcome:
        host = self._services.access.address(node)
        if not node.adopted or host is None:
            return StepOutcome.of(node, _not_adopted(node))
        shell = self._services.shell
        greeting = greet(shell, host, deadline.within(ANSWER_S))
        serial = read_serial(shell, host, deadline)
        evidence = (*greeting.evidence, *serial.evidence)
        finding = _judge(node, host, serial.value, greeting.value.stdout)
        outcome = StepOutcome.of(node, finding, evidence)
        return self._with_disks(node, host, outcome, deadline) if finding.verdict is Verdict.PASS else outcome

    def _with_disks(self, node: NodeState, host: HostAddress, outcome: StepOutcome, deadline: Deadline) -> StepOutcome:
        """Add which disk the host runs from. Its disks are read as a list only, never their contents."""
        rule = DiskContract(Serial("") if node.root_rule else node.root_disk or Serial(""), rule=node.root_rule)
        where = f"{node.location}, {node.name}"
        proof = DiskProver(self._services.shell).prove_root(host, rule, where, deadline)
        root, evidence = _tolerated(proof.value), (*outcome.evidence, *proof.evidence)
        facts = outcome.facts
        if root.verdict.admits and root.serial not in ("", node.root_disk):
            facts = (*facts, node_event(node.id, RootDiskProven(disk=Serial(root.serial))))
        return StepOutcome(node.id, (*outcome.findings, root, _untouched()), evidence, facts)


@dataclass(frozen=True, slots=True)
class InstallOrAdopt:
    """Meets `StepRunner`: each node by its own of the two ways. `adopts`: whether clusterctl never installs a node."""

    install: StepRunner
    adopt: StepRunner
    adopts: Callable[[NodeState], bool]
    step = Step.INSTALL

    @property
    def minimum(self) -> int:
        return self.install.minimum

    @property
    def linger_s(self) -> float:
        return self.install.linger_s

    @property
    def at_once(self) -> int:
        return self.install.at_once

    def run(self, nodes: Sequence[NodeState], intents: IntentLog, deadline: Deadline) -> Iterator[StepOutcome]:
        taken = [node for node in nodes if self.adopts(node)]
        others = [node for node in nodes if node not in taken]
        if taken:
            yield from self.adopt.run(taken, intents, deadline)
        if others:
            yield from self.install.run(others, intents, deadline)


def _judge(node: NodeState, host: HostAddress, serial: str, greeting: str) -> Finding:
    """Return whether the host is the node's machine, by its serial; its name must be the node's, too."""
    boot_id, _, reported = greeting.strip().partition("\n")
    hostname = reported.strip()
    known = tuple(filter(None, (node.serial, *node.aliases)))
    if not any(same_serial(serial, one) for one in known):
        return Finding(
            check="install",
            verdict=Verdict.FAIL,
            code=Code.WRONG_SERIAL,
            cause=f"the host at {host.address} runs on machine {serial}, {_shown(node)}",
            measured=serial,
            expected=str(node.serial),
            remedy=f"correct {_ADDRESSES if node.bmc else 'the address'} in the sheet; nothing was done to the machine",
            serial=serial,
        )
    if hostname.split(".")[0] != node.name:
        return Finding(
            check="install",
            verdict=Verdict.FAIL,
            code=Code.WRONG_HOST_NAME,
            cause=f"the machine is the right one, and its host is named {hostname}",
            measured=hostname,
            expected=node.name,
            remedy=f"name the host {node.name} (hostnamectl), or the node {hostname.split('.')[0]} in the sheet",
            serial=serial,
        )
    cause = f"adopted: answers at {host.address} with its confirmed host key, boot {boot_id}"
    return passed("install", cause, measured=serial, expected=str(node.serial), serial=serial)


_ADDRESSES = "the BMC's or the host's address"


def _shown(node: NodeState) -> str:
    """Return what else shows the node's machine."""
    return f"the BMC at {node.bmc} shows {node.serial}" if node.bmc else f"and {node.name} is {node.serial}"


def _not_adopted(node: NodeState) -> Finding:
    return Finding(
        check="install",
        verdict=Verdict.INCONCLUSIVE,
        code=Code.HOST_UNKNOWN,
        cause="clusterctl does not install this machine, and its host key is not confirmed",
        remedy=f"run clusterctl adopt {node.name}",
    )


def _no_answer(node: NodeState, error: ClusterctlError) -> Finding:
    """Return the finding on a host that could not be asked. Another host key is certain, silence may pass."""
    changed = isinstance(error, UntrustedError)
    unread = isinstance(error, ParseError)
    remedy = f"find out which machine has this address; clusterctl adopt {node.name} --new-host-key if it is the node"
    return Finding(
        check="install",
        verdict=Verdict.INCONCLUSIVE if unread else Verdict.FAIL,
        code=Code.HOST_NOT_TRUSTED if changed else Code.NOT_MEASURED if unread else Code.SSH_UNKNOWN,
        cause=error.message,
        remedy=remedy if changed else error.remedy or f"see that {node.name} is up and its sshd answers",
        deterministic=changed,
        where=error.where,
    )


def _tolerated(root: Finding) -> Finding:
    """Return a root file system on other disks than the SKU names as a warning: another installer chose them."""
    if root.verdict is not Verdict.FAIL:
        return root
    remedy = "none needed; name the disk in the SKU's root_disk where all machines of the SKU are installed so"
    return replace(root, verdict=Verdict.WARN, remedy=remedy)


def _untouched() -> Finding:
    return Finding(
        check=DATA,
        verdict=Verdict.NOT_APPLICABLE,
        code=Code.NOT_APPLICABLE,
        cause="clusterctl has installed nothing and written to no disk",
    )

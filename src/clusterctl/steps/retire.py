"""Retirement of a machine with its drives erased: identity proven, intended, erased, watched, switched off.

A run after an interruption looks first, and goes on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from clusterctl.fleet.acts import Act, ActResult, Intents, intent_of
from clusterctl.fleet.decisions.identity import leaving, retired
from clusterctl.fleet.errors import AuthenticationError, EdgeError, InstallerUnavailableError
from clusterctl.fleet.event import NewEvent, node_event
from clusterctl.fleet.finding import Digest, Evidence, Observed
from clusterctl.fleet.node import Drive, Inventory, Serial
from clusterctl.fleet.payloads.node import ActIntended, ActObserved
from clusterctl.fleet.state import NodeState
from clusterctl.ports import (
    BmcAddress,
    Bmcs,
    Deadline,
    Eraser,
    InstallState,
    InstallStatus,
    InstallTarget,
    Journal,
    Power,
)
from clusterctl.steps.executor.intent_log import IntentLog, failure
from clusterctl.steps.executor.power_login import LoginProver

ERASABLE = (InstallState.INSTALLED, InstallState.FAILED)
BUSY = (InstallState.INSTALLING, InstallState.PREPARING, InstallState.RELEASING)


def erasing_seen(intents: Intents) -> bool:
    """Return whether the last erase was seen to go on: only then does a released machine mean erased.

    Other acts on the machine afterwards make that void.
    """
    erase = intent_of(intents, Act.RETIRE_ERASE)
    if erase is None or erase.result not in (ActResult.BEGUN, ActResult.DONE):
        return False
    return all(other.seq <= erase.observed for other in intents if other.act is not Act.RETIRE_POWER_OFF)


def check_same(node: NodeState, seen: Inventory) -> None:
    """Raise `EdgeError` unless the BMC shows the node's serial, and the drives that its last discover has seen."""
    if seen.serial != node.serial:
        raise EdgeError(
            f"the machine with serial {seen.serial} answers at {node.bmc}, not {node.serial}: nothing was erased",
            where=node.name,
            remedy="find out which machine stands there; clusterctl merge if it was swapped",
        )
    known = node.inventory.drives if node.inventory is not None else None
    if known is None or not seen.complete("drives") or _serials(known) != _serials(seen.drives or ()):
        raise EdgeError(
            "its drives are not those of its last discover: nothing was erased",
            where=node.name,
            remedy=f"clusterctl quarantine {node.name} --step discover, release and discover it, then look again",
        )


def check_erasable(node: NodeState, status: InstallStatus, *, installed_only: bool) -> None:
    """Raise `EdgeError` where the installer could not erase it. A machine that was never seen erasing is not erased.

    `installed_only`: it erases only what it has installed.
    """
    if status.state in BUSY:
        raise EdgeError(
            f"the installer is busy with it ({status.detail})", where=node.name, remedy="wait until it has finished"
        )
    if installed_only and status.state not in ERASABLE:
        raise EdgeError(
            f"the installer erases only what it has installed ({status.detail or status.state.value}), and "
            "was not seen to erase this one",
            where=node.name,
            remedy="install it and retire it again, or erase its drives by hand and retire it without --wipe",
        )


def erase_failed(node: NodeState, status: InstallStatus) -> EdgeError:
    return EdgeError(
        f"its drives are not erased: {status.detail or status.state.value}",
        where=node.name,
        remedy=f"replace or destroy the drive that fails, then clusterctl retire {node.name} --wipe again",
    )


def not_seen(node: NodeState) -> EdgeError:
    return EdgeError(
        "the installer gave the machine back, and was not seen to erase its drives",
        where=node.name,
        remedy="install it and retire it again, or erase its drives by hand and retire it without --wipe",
    )


def _known_serials(node: NodeState) -> tuple[Serial, ...]:
    """Return the serials of its drives; none where one of them has no serial: nothing would identify it."""
    drives = (node.inventory.drives if node.inventory is not None else None) or ()
    serials = tuple(drive.serial for drive in drives if drive.serial)
    return serials if len(serials) == len(drives) else ()


def _serials(drives: Iterable[Drive]) -> list[str]:
    return sorted(drive.serial or drive.slot for drive in drives)


log = logging.getLogger(__name__)

BMC_S = 300.0
"""Seconds for a BMC to report its inventory, or the machine off."""
ANSWER_S = 120.0
"""Seconds for the installer to answer: it erases in the background."""
TROUBLES = 5
"""The installer may not answer so many times in a row while it erases."""
Digests = tuple[Digest, ...]


@dataclass(frozen=True, slots=True)
class DriveWiper:
    """Erases drives and retires nodes.

    poll_s           seconds between two looks at the installer
    host_address_of  a node's own address by the site, where it has one
    """

    eraser: Eraser
    bmcs: Bmcs
    address_of: Callable[[str], BmcAddress]
    journal: Journal
    poll_s: float
    host_address_of: Callable[[str], str] = lambda _name: ""

    def wipe(self, node: NodeState, intents: IntentLog, reason: str, deadline: Deadline) -> None:
        """Erase the node's drives and retire it. Raise `EdgeError` where that may not be done, or failed."""
        _Wipe(self, node, self._target(node), intents, reason, deadline).run()

    def _target(self, node: NodeState) -> InstallTarget:
        if not (node.serial and node.macs):
            raise EdgeError(
                "its serial or its network cards are unknown: nothing identifies the machine",
                where=node.name,
                remedy="erase its drives by hand, and retire it without --wipe",
            )
        return InstallTarget(
            name=node.name,
            serial=node.serial,
            macs=node.macs,
            bmc=self.address_of(node.name),
            root_disk=node.root_disk or node.serial,
            authorized_key="",
            user="",
            host_key_private="",
            address=self.host_address_of(node.name),
            erase=_known_serials(node),
        )


@dataclass(frozen=True, slots=True)
class _Wipe:
    """The wipe of one node."""

    services: DriveWiper
    node: NodeState
    target: InstallTarget
    intents: IntentLog
    reason: str
    deadline: Deadline

    def run(self) -> None:
        status = self._look()
        begun = erasing_seen(self.services.journal.state(self.node.id).intents)
        if status.value.state is InstallState.ERASING and not begun:
            self._note(ActResult.BEGUN, status)
            begun = True
        elif not begun or status.value.state in ERASABLE:
            begun = self._begin(status.value)
        with self.intents.lease.kept():
            digests = self._watch(begun=begun) + self._switch_off()
        self._write(retired(self.node, self.reason, digests))

    def _begin(self, status: InstallStatus) -> bool:
        """Begin to erase, which cannot be undone: all is proven right before, and the node is out of use then.

        Return whether the installer is seen to erase it.
        """
        installed_only = not self.services.eraser.erases_any(self.target.name)
        check_erasable(self.node, status, installed_only=installed_only)
        proof = self._prove()
        LoginProver(self.services.eraser, self.services.bmcs).prove(
            self.node.id, self.target, self.intents, self.deadline
        )
        intent = ActIntended(act=Act.RETIRE_ERASE, target=self.target.serial)
        self._write(leaving(self.node, self.reason), node_event(self.node.id, intent, proof))
        try:
            answer = self.services.eraser.erase(self.target, self._fenced(ANSWER_S))
        except EdgeError as error:
            self.intents.observed(self.node.id, Act.RETIRE_ERASE, error.message, failure(error))
            raise
        begun = answer.value.state is InstallState.ERASING
        if begun:
            self._note(ActResult.BEGUN, answer)
        return begun

    def _prove(self) -> Digests:
        """Return the evidence that this machine answers at the BMC's address, with the drives that the operator saw."""
        patience = self.deadline.within(BMC_S)
        with self.services.bmcs.open(self.target.bmc, patience) as bmc:
            seen = bmc.inventory(patience)
        digests = self._keep(seen.evidence)
        check_same(self.node, seen.value)
        return digests

    def _watch(self, *, begun: bool) -> Digests:
        """Wait until the installer has erased and released it. Return the evidence.

        `begun`: it was seen to erase it. One that only gives the machine back has not erased it.
        """
        troubles = 0
        while True:
            try:
                status = self._look()
            except AuthenticationError:
                raise
            except InstallerUnavailableError as error:
                log.warning("%s: %s", self.node.name, error)
            except EdgeError as error:
                troubles += 1
                log.warning("%s: %s", self.node.name, error)
                if troubles > TROUBLES:
                    raise
            else:
                troubles = 0
                if begun and status.value.state is InstallState.READY:
                    return self._note(ActResult.DONE, status)
                begun = self._require_erasing(status, begun=begun)
            self.deadline.sleep(self.services.poll_s, f"waiting until the drives of {self.node.name} are erased")

    def _require_erasing(self, status: Observed[InstallStatus], *, begun: bool) -> bool:
        """Return whether the erase was seen by now. Raise `EdgeError` where it has ended otherwise than erased."""
        state = status.value.state
        if state is InstallState.ERASING and not begun:
            self._note(ActResult.BEGUN, status)
            return True
        if state not in (InstallState.ERASING, InstallState.RELEASING):
            self._note(ActResult.FAILED, status)
            raise not_seen(self.node) if state is InstallState.READY else erase_failed(self.node, status.value)
        return begun

    def _switch_off(self) -> Digests:
        self.intents.intend(self.node.id, Act.RETIRE_POWER_OFF, self.target.serial)
        fenced = self._fenced(BMC_S)
        with self.services.bmcs.open(self.target.bmc, fenced) as bmc:
            power = bmc.set_power(Power.OFF, self.target.serial, fenced)
        self.intents.observed(self.node.id, Act.RETIRE_POWER_OFF, power.value.value)
        return self._keep(power.evidence)

    def _look(self) -> Observed[InstallStatus]:
        return self.services.eraser.observe([self.target], self.deadline.within(ANSWER_S))[self.target.name]

    def _fenced(self, seconds: float) -> Deadline:
        return self.intents.fenced([self.node.id], self.deadline.within(seconds))

    def _note(self, result: ActResult, status: Observed[InstallStatus]) -> Digests:
        """Record what became of the erase, with its evidence."""
        digests = self._keep(status.evidence)
        observed = ActObserved(act=Act.RETIRE_ERASE, result=result, message=status.value.detail)
        self._write(node_event(self.node.id, observed, digests))
        return digests

    def _write(self, *events: NewEvent) -> None:
        self.services.journal.append(events, claim=self.intents.lease.claim(self.node.id))

    def _keep(self, evidence: tuple[Evidence, ...]) -> Digests:
        self.services.journal.store(evidence)
        return tuple(item.digest for item in evidence)

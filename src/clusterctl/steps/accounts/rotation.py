"""A BMC's password: drawn, on disk, intended, asked for, seen to be taken, written down, and told to the installer.

Each of these may be the last thing that a run does. The next one finds out where it stopped, and goes on from there:
a password that is on disk and not proven is tried first, and the one before it only where the BMC rejects that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from clusterctl.fleet.bmc.accounts import AccountSight, PasswordRule, Rotation, expected_serial, proof, rotation, same
from clusterctl.fleet.errors import (
    AuthenticationError,
    CancelledError,
    ClaimLostError,
    ClusterctlError,
    EdgeError,
    ParseError,
    PasswordChangeError,
)
from clusterctl.fleet.event import Kind, NewEvent
from clusterctl.fleet.finding import Digest, Evidence
from clusterctl.fleet.node import Serial
from clusterctl.fleet.state import NodeState
from clusterctl.ports import BmcAddress, Deadline, Journal
from clusterctl.ports.accounts import AccountBmcs, AccountClient, Generation, PowerLogins, PowerTarget, Told, Vault
from clusterctl.steps.executor.parallel import each
from clusterctl.steps.executor.step import IntentLog, node_event

CHANGE, TELL = "accounts.rotate", "accounts.tell_installer"
"""The acts' names in the journal."""
FAILED = "failed"


@dataclass(frozen=True, slots=True)
class RotationResult:
    """What became of one node. `number` of its password, 0 where it has none of ours; `installer`: what that has now.

    `finished`: an earlier run had begun it. With an `error` and a number the password is changed, and something that
    follows from it is not done.
    """

    name: str
    number: int = 0
    installer: str = ""
    finished: bool = False
    error: ClusterctlError | None = None


@dataclass(frozen=True, slots=True)
class _Change:
    """A password that the BMC was seen to take. `doubt`: what is wrong with that BMC all the same."""

    generation: Generation
    finished: bool = False
    doubt: ClusterctlError | None = None


@dataclass(frozen=True, slots=True)
class RotationPolicy:
    """The site's word: which account (empty: the one that we log in as), what passwords are made of, and the nodes
    whose factory password is theirs alone.
    """

    user: str
    password: PasswordRule
    own_logins: Collection[str]


@dataclass(frozen=True, slots=True)
class PasswordRotation:
    """Changes the passwords of many BMCs at once, as many as `workers`."""

    bmcs: AccountBmcs
    address_of: Callable[[str], BmcAddress]
    vault: Vault
    power_logins: Callable[[], PowerLogins]
    journal: Journal
    rule: RotationPolicy
    workers: int

    def rotate(self, nodes: Sequence[NodeState], acts: IntentLog, deadline: Deadline) -> Iterator[RotationResult]:
        """Each node's outcome as soon as it is known. What an earlier run began is finished, and not begun again."""
        calls = [partial(self.one, node, acts, deadline) for node in nodes]
        return each(calls, self.workers, acts.lease.keep)

    def unfinished(self, node: NodeState) -> bool:
        """Whether an earlier run began what is still to be done."""
        last = self.vault.latest(node)
        if last is None:
            return False
        told = self._told(node)
        return not last.proven or _unwritten(last, node, told) or (told is not None and told.unfinished(node))

    def one(self, node: NodeState, acts: IntentLog, deadline: Deadline) -> RotationResult:
        """One node, whatever comes of it."""
        fenced = acts.fenced([node.id], deadline)
        try:
            fenced.check(f"changing the password of {node.name}'s BMC")
            change = self._changed(node, acts, fenced)
        except (CancelledError, ClaimLostError) as error:
            return RotationResult(node.name, error=error)
        except ClusterctlError as error:
            return self._failed(CHANGE, RotationResult(node.name), node, error, acts)
        done = RotationResult(node.name, change.generation.number, finished=change.finished, error=change.doubt)
        if change.doubt is not None:
            return done
        try:
            return replace(done, installer=self._tell(node, change.generation, acts, fenced))
        except (CancelledError, ClaimLostError) as error:
            return replace(done, error=error)
        except ClusterctlError as error:
            return self._failed(TELL, done, node, error, acts)

    # --- the BMC ----------------------------------------------------------------------------------------------------

    def _changed(self, node: NodeState, acts: IntentLog, deadline: Deadline) -> _Change:
        """The password that the BMC takes now, and whether an earlier run had begun it."""
        last = self.vault.latest(node)
        told = self._told(node)
        if last is not None and last.proven:
            if _unwritten(last, node, told):
                self._write(node, last, "it was taken in an earlier run", acts)
                return _Change(last, finished=True)
            if told is not None and told.unfinished(node):
                return _Change(last, finished=True)
        return self._change(node, last, acts, deadline)

    def _change(self, node: NodeState, last: Generation | None, acts: IntentLog, deadline: Deadline) -> _Change:
        pending = last if last is not None and not last.proven else None
        address = self.address_of(node.name)
        user = self.rule.user or (pending.user if pending is not None else address.user)
        evidence: tuple[Evidence, ...] = ()
        with self.bmcs.open_accounts(address, deadline) as bmc:
            if pending is not None and not bmc.took_former:
                return replace(self._taken(bmc, node, pending, acts, deadline), finished=True)
            sight = bmc.look(user, deadline)
            own = node.name in self.rule.own_logins or (last is not None and last.proven)
            why = proof(node, sight, own_login=own)
            generation = self._drawn(node, pending, sight)
            intent = {"act": CHANGE, "target": sight.account.path, "number": str(generation.number), "proof": why}
            acts.note(node.id, Kind.ACT_INTENDED, intent)
            evidence = bmc.change(sight.account, generation.password, deadline).evidence
        change = self._verify(node, generation, acts, deadline, evidence)
        return replace(change, finished=pending is not None)

    def _drawn(self, node: NodeState, pending: Generation | None, sight: AccountSight) -> Generation:
        """The one that an earlier run drew and the BMC never got, where account and rule are as then; else new."""
        length = self.rule.password.length_for(sight.account.shortest, sight.account.longest)
        if (
            pending is not None
            and pending.user == sight.account.user
            and self.rule.password.fits(pending.password, length)
        ):
            return pending
        serial = sight.serial or expected_serial(node) or ""
        return self.vault.draw(node, sight.account.user, length, serial)

    def _verify(
        self,
        node: NodeState,
        generation: Generation,
        acts: IntentLog,
        deadline: Deadline,
        evidence: tuple[Evidence, ...],
    ) -> _Change:
        """By a new login: the new password first, the one before where the BMC rejects it."""
        kept = self.vault.place(generation)
        try:
            with self.bmcs.open_accounts(self.address_of(node.name), deadline) as bmc:
                if bmc.took_former:
                    raise EdgeError(
                        "the BMC answered the change of its password and still takes the old one",
                        where=node.name,
                        remedy="run the command again; if it stays so, update the BMC's firmware, or change it by hand",
                    )
                return self._taken(bmc, node, generation, acts, deadline, evidence)
        except PasswordChangeError:
            raise
        except AuthenticationError as error:
            raise AuthenticationError(
                f"the BMC takes neither the new password nor the one before: {error.message}",
                where=node.name,
                remedy=f"wait until its lock-out is over and run the command again; the new one is kept in {kept}",
            ) from error

    def _taken(  # noqa: PLR0917 — as `_verify`
        self,
        bmc: AccountClient,
        node: NodeState,
        generation: Generation,
        acts: IntentLog,
        deadline: Deadline,
        evidence: tuple[Evidence, ...] = (),
    ) -> _Change:
        """It logs in: proven, then written down, whatever else is wrong with this BMC."""
        sight, doubt = self._looked(bmc, node, generation, deadline)
        serial = sight.serial if sight is not None else None
        self.vault.prove(generation, serial)
        proven = replace(generation, proven=True, serial=serial or generation.serial)
        result = "changed" if doubt is None else f"changed, but {doubt.message}"
        self._write(node, proven, result, acts, evidence)
        return _Change(proven, doubt=doubt)

    def _looked(
        self, bmc: AccountClient, node: NodeState, generation: Generation, deadline: Deadline
    ) -> tuple[AccountSight | None, ClusterctlError | None]:
        """Whose machine it is, read right after the change; and what is wrong with it."""
        try:
            sight = bmc.look(generation.user, deadline)
        except (EdgeError, ParseError) as error:
            return None, error
        expected = expected_serial(node)
        if sight.must_change:
            message = "the BMC took the new password and still does nothing before it is changed"
            return sight, EdgeError(message, where=node.name, remedy="reset the BMC; if it stays so, change it by hand")
        if expected is not None and sight.serial is not None and not same(sight.serial, expected):
            message = f"this BMC belongs to machine {sight.serial}, not to {expected}, and has a new password now"
            remedy = f"find out which machine is at {node.bmc}; its password is kept in {self.vault.place(generation)}"
            return sight, EdgeError(message, where=node.name, remedy=remedy)
        return sight, None

    # --- the installer ----------------------------------------------------------------------------------------------

    def _tell(self, node: NodeState, generation: Generation, acts: IntentLog, deadline: Deadline) -> str:
        """What the installer has now. Nobody asks it of a machine whose serial nobody knows."""
        serial = generation.serial or expected_serial(node)
        if not serial:
            return ""
        target = PowerTarget(node.name, Serial(serial), node.macs, self.address_of(node.name))
        acts.intend(node.id, TELL, serial)
        given = self.power_logins().give(target, deadline)
        result = str(given.value.value)
        by_name = given.value is Told.UNKNOWN and not node.macs
        told = node_event(
            node.id, Kind.BMC_PASSWORD_TOLD, number=generation.number, result=result, sought_by_name=by_name
        )
        self._append(node, [self._observed(node, TELL, result), told], acts, given.evidence)
        return result

    # --- the journal ------------------------------------------------------------------------------------------------

    def _told(self, node: NodeState) -> Rotation | None:
        return rotation(self.journal.history("node", node.id))

    def _write(
        self, node: NodeState, generation: Generation, result: str, acts: IntentLog, evidence: tuple[Evidence, ...] = ()
    ) -> None:
        changed = node_event(
            node.id,
            Kind.BMC_PASSWORD_CHANGED,
            number=generation.number,
            user=generation.user,
            serial=generation.serial,
        )
        self._append(node, [self._observed(node, CHANGE, result), changed], acts, evidence)

    def _failed(
        self, act: str, done: RotationResult, node: NodeState, error: ClusterctlError, acts: IntentLog
    ) -> RotationResult:
        try:
            self._append(node, [self._observed(node, act, f"{FAILED}: {error.message}")], acts, ())
        except ClaimLostError as lost:
            return replace(done, error=lost)
        return replace(done, error=error)

    def _append(
        self, node: NodeState, events: Sequence[NewEvent], acts: IntentLog, evidence: tuple[Evidence, ...]
    ) -> None:
        self.journal.store(evidence)
        digests: tuple[Digest, ...] = tuple(item.digest for item in evidence)
        first = replace(events[0], evidence=digests)
        self.journal.append([first, *events[1:]], claim=acts.lease.claim(node.id))

    def _observed(self, node: NodeState, act: str, result: str) -> NewEvent:
        return node_event(node.id, Kind.ACT_OBSERVED, act=act, result=result)


def _unwritten(last: Generation, node: NodeState, told: Rotation | None) -> bool:
    """Proven by a run that did not come to write it down."""
    return last.node == node.id and (told is None or told.number < last.number)

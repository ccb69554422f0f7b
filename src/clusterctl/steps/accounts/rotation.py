"""Rotation of a BMC's password: draw, write to disk, intend, change, verify, record, give it to the installer.

A run may end after each of these. The next one finds out where it stopped, and goes on from there: a password that is
on disk and not verified is tried first, and the one before it only where the BMC rejects that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from clusterctl.fleet.acts import Act, ActResult, PasswordDetails
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
from clusterctl.fleet.event import NewEvent, Stream, node_event
from clusterctl.fleet.finding import Digest, Evidence
from clusterctl.fleet.node import Serial
from clusterctl.fleet.payloads.node import ActIntended, ActObserved, BmcPasswordChanged, BmcPasswordShared
from clusterctl.fleet.state import NodeState
from clusterctl.ports import BmcAddress, Deadline, Journal
from clusterctl.ports.accounts import (
    AccountBmcs,
    AccountClient,
    Generation,
    LoginUpdate,
    PowerLogins,
    PowerTarget,
    Vault,
)
from clusterctl.ports.isolation import as_error
from clusterctl.steps.executor.intent_log import IntentLog, failure
from clusterctl.steps.executor.parallel import each

"""The intents' names in the journal."""
FAILED = "failed"


@dataclass(frozen=True, slots=True)
class RotationResult:
    """The result of one node.

    number     of its password; 0 where it has none of ours
    installer  what the installer has now
    finished   an earlier run had begun it
    error      with a number: the password is changed, and something that follows from it is not done
    """

    name: str
    number: int = 0
    installer: str = ""
    finished: bool = False
    error: ClusterctlError | None = None


@dataclass(frozen=True, slots=True)
class _Change:
    """A password that the BMC was seen to take. `doubt`: what is wrong with that BMC nevertheless."""

    generation: Generation
    finished: bool = False
    doubt: ClusterctlError | None = None


@dataclass(frozen=True, slots=True)
class RotationPolicy:
    """The site's policy.

    user        the account; empty: the one that is logged in as
    password    the rule for new passwords
    own_logins  nodes with a factory password that no other node has
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

    def rotate(self, nodes: Sequence[NodeState], intents: IntentLog, deadline: Deadline) -> Iterator[RotationResult]:
        """Yield each node's result as soon as it is known. What an earlier run began is finished, not begun again."""
        calls = [partial(self.one, node, intents, deadline) for node in nodes]
        return each(calls, self.workers, intents.lease)

    def unfinished(self, node: NodeState) -> bool:
        """Return whether an earlier run began what is still to be done."""
        last = self.vault.latest(node)
        if last is None:
            return False
        known = self._rotation(node)
        return not last.proven or _unwritten(last, node, known) or (known is not None and known.unfinished(node))

    def one(self, node: NodeState, intents: IntentLog, deadline: Deadline) -> RotationResult:
        """Rotate the password of one node; return the result, whatever it is."""
        fenced = intents.fenced([node.id], deadline)
        try:
            fenced.check(f"changing the password of {node.name}'s BMC")
            change = self._changed(node, intents, fenced)
        except (CancelledError, ClaimLostError) as error:
            return RotationResult(node.name, error=error)
        except Exception as error:  # noqa: BLE001 — whatever its data causes is its own result
            failed = as_error(error, node.name)
            return self._failed(Act.PASSWORD_CHANGE, RotationResult(node.name), node, failed, intents)
        done = RotationResult(node.name, change.generation.number, finished=change.finished, error=change.doubt)
        if change.doubt is not None:
            return done
        try:
            return replace(done, installer=self._share(node, change.generation, intents, fenced))
        except (CancelledError, ClaimLostError) as error:
            return replace(done, error=error)
        except Exception as error:  # noqa: BLE001 — whatever its data causes is its own result
            return self._failed(Act.PASSWORD_SHARE, done, node, as_error(error, node.name), intents)

    def _changed(self, node: NodeState, intents: IntentLog, deadline: Deadline) -> _Change:
        """Return the password that the BMC takes now."""
        last = self.vault.latest(node)
        known = self._rotation(node)
        if last is not None and last.proven:
            if _unwritten(last, node, known):
                self._write(node, last, "an earlier run changed it", intents)
                return _Change(last, finished=True)
            if known is not None and known.unfinished(node):
                return _Change(last, finished=True)
        return self._change(node, last, intents, deadline)

    def _change(self, node: NodeState, last: Generation | None, intents: IntentLog, deadline: Deadline) -> _Change:
        pending = last if last is not None and not last.proven else None
        address = self.address_of(node.name)
        user = self.rule.user or (pending.user if pending is not None else address.user)
        evidence: tuple[Evidence, ...] = ()
        with self.bmcs.open_accounts(address, deadline) as bmc:
            if pending is not None and not bmc.took_former:
                return replace(self._taken(bmc, node, pending, intents, deadline), finished=True)
            sight = bmc.look(user, deadline)
            own = node.name in self.rule.own_logins or (last is not None and last.proven)
            why = proof(node, sight, own_login=own)
            generation = self._drawn(node, pending, sight)
            details = PasswordDetails(number=generation.number, proof=why)
            intents.note(node.id, ActIntended(act=Act.PASSWORD_CHANGE, target=sight.account.path, details=details))
            evidence = bmc.change(sight.account, generation.password, deadline).evidence
        change = self._verify(node, generation, intents, deadline, evidence)
        return replace(change, finished=pending is not None)

    def _drawn(self, node: NodeState, pending: Generation | None, sight: AccountSight) -> Generation:
        """Return the password that an earlier run drew, where account and rule are as then; else a new one."""
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
        intents: IntentLog,
        deadline: Deadline,
        evidence: tuple[Evidence, ...],
    ) -> _Change:
        """Verify the change by a new login: the new password first, the one before where the BMC rejects it."""
        kept = self.vault.place(generation)
        try:
            with self.bmcs.open_accounts(self.address_of(node.name), deadline) as bmc:
                if bmc.took_former:
                    raise EdgeError(
                        "the BMC answered the change of its password and still takes the old one",
                        where=node.name,
                        remedy="run the command again; if it stays so, update the BMC's firmware, or change it by hand",
                    )
                return self._taken(bmc, node, generation, intents, deadline, evidence)
        except PasswordChangeError:
            raise
        except AuthenticationError as error:
            raise AuthenticationError(
                f"the BMC takes neither the new password nor the one before: {error.message}",
                where=node.name,
                remedy=f"wait until its lock-out is over and run the command again; the new one is kept in {kept}",
            ) from error

    def _taken(
        self,
        bmc: AccountClient,
        node: NodeState,
        generation: Generation,
        intents: IntentLog,
        deadline: Deadline,
        evidence: tuple[Evidence, ...] = (),
    ) -> _Change:
        """Record a password that logs in, whatever else is wrong with this BMC."""
        sight, doubt = self._look(bmc, node, generation, deadline)
        serial = sight.serial if sight is not None else None
        self.vault.prove(generation, serial)
        proven = replace(generation, proven=True, serial=serial or generation.serial)
        result = "changed" if doubt is None else f"changed, but {doubt.message}"
        self._write(node, proven, result, intents, evidence)
        return _Change(proven, doubt=doubt)

    def _look(
        self, bmc: AccountClient, node: NodeState, generation: Generation, deadline: Deadline
    ) -> tuple[AccountSight | None, ClusterctlError | None]:
        """Return the machine that answers right after the change, and what is wrong with it."""
        try:
            sight = bmc.look(generation.user, deadline)
        except (EdgeError, ParseError) as error:
            return None, error
        expected = expected_serial(node)
        if sight.must_change:
            message = "the BMC took the new password and still demands another one"
            return sight, EdgeError(message, where=node.name, remedy="reset the BMC; if it stays so, change it by hand")
        if expected is not None and sight.serial is not None and not same(sight.serial, expected):
            message = f"this BMC belongs to machine {sight.serial}, not to {expected}, and has a new password now"
            remedy = f"find out which machine is at {node.bmc}; its password is kept in {self.vault.place(generation)}"
            return sight, EdgeError(message, where=node.name, remedy=remedy)
        return sight, None

    def _share(self, node: NodeState, generation: Generation, intents: IntentLog, deadline: Deadline) -> str:
        """Give the installer the password. Return what it has now; empty for a machine without a known serial."""
        serial = generation.serial or expected_serial(node)
        if not serial:
            return ""
        target = PowerTarget(node.name, Serial(serial), node.macs, self.address_of(node.name))
        intents.intend(node.id, Act.PASSWORD_SHARE, serial)
        given = self.power_logins().give(target, deadline)
        result = str(given.value.value)
        by_name = given.value is LoginUpdate.UNKNOWN and not node.macs
        payload = BmcPasswordShared(number=generation.number, result=result, sought_by_name=by_name)
        shared = node_event(node.id, payload)
        self._append(node, [self._observed(node, Act.PASSWORD_SHARE, result), shared], intents, given.evidence)
        return result

    def _rotation(self, node: NodeState) -> Rotation | None:
        return rotation(self.journal.history(Stream.NODE, node.id))

    def _write(
        self,
        node: NodeState,
        generation: Generation,
        result: str,
        intents: IntentLog,
        evidence: tuple[Evidence, ...] = (),
    ) -> None:
        payload = BmcPasswordChanged(number=generation.number, user=generation.user, serial=generation.serial)
        changed = node_event(node.id, payload)
        self._append(node, [self._observed(node, Act.PASSWORD_CHANGE, result), changed], intents, evidence)

    def _failed(
        self, act: Act, done: RotationResult, node: NodeState, error: ClusterctlError, intents: IntentLog
    ) -> RotationResult:
        try:
            self._append(node, [self._observed(node, act, error.message, failure(error))], intents, ())
        except ClaimLostError as lost:
            return replace(done, error=lost)
        return replace(done, error=error)

    def _append(
        self, node: NodeState, events: Sequence[NewEvent], intents: IntentLog, evidence: tuple[Evidence, ...]
    ) -> None:
        self.journal.store(evidence)
        digests: tuple[Digest, ...] = tuple(item.digest for item in evidence)
        first = replace(events[0], evidence=digests)
        self.journal.append([first, *events[1:]], claim=intents.lease.claim(node.id))

    def _observed(self, node: NodeState, act: Act, message: str, result: ActResult = ActResult.DONE) -> NewEvent:
        return node_event(node.id, ActObserved(act=act, result=result, message=message))


def _unwritten(last: Generation, node: NodeState, known: Rotation | None) -> bool:
    """Return whether a run that verified it was killed before it recorded it."""
    return last.node == node.id and (known is None or known.number < last.number)

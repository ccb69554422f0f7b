"""Certificates of BMCs: looked at, and renewed from the site's authority. The private key never leaves the BMC.

look → intend → request → sign → intend with both fingerprints → replace → handshake → prove the machine → move the pin.
A run after a kill looks first: a BMC that presents what was issued for it has only its pin left to move; any other
begins again with a new key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from clusterctl.fleet.acts import Act, ActResult, CertificateDetails, intent_of
from clusterctl.fleet.bmc.certificates import CertificateWish, Issued, Presented, due
from clusterctl.fleet.errors import CancelledError, ClaimLostError, ClusterctlError, EdgeError, OutcomeUnknownError
from clusterctl.fleet.event import Payload, node_event
from clusterctl.fleet.finding import Digest, Evidence
from clusterctl.fleet.node import Serial
from clusterctl.fleet.payloads.node import ActIntended, ActObserved
from clusterctl.fleet.state import NodeState
from clusterctl.ports import BmcAddress, Clock, Deadline, Journal
from clusterctl.ports.certificates import CertificateAuthority, CertificateBmcs, CertificateClient
from clusterctl.ports.isolation import as_error
from clusterctl.steps.executor.intent_log import IntentLog, failure
from clusterctl.steps.executor.parallel import each

APPEAR_S = 300.0
"""Seconds until a BMC presents its new certificate: its web server restarts, and an iLO as a whole."""
POLL_S = 3.0
RESET = "the BMC accepted the certificate and still presents the old one"


@dataclass(frozen=True, slots=True)
class CertificateResult:
    """What became of one BMC.

    shown    what it presents; None where that is unknown
    due      why it is to be renewed; empty where it is as wanted
    changed  it was renewed now
    error    why it is not as wanted, or why that is unknown
    """

    name: str
    shown: Presented | None = None
    due: str = ""
    changed: bool = False
    error: ClusterctlError | None = None


@dataclass(frozen=True, slots=True)
class CertificateRenewer:
    """Looks at `workers` BMCs at a time. `wish_of`: what the certificate of a node's BMC is to be."""

    bmcs: CertificateBmcs
    authority: CertificateAuthority
    address_of: Callable[[str], BmcAddress]
    wish_of: Callable[[str], CertificateWish]
    journal: Journal
    clock: Clock
    renew_days: int
    workers: int

    def look(self, machines: Sequence[tuple[str, Serial]], deadline: Deadline) -> Iterator[CertificateResult]:
        """Yield what each BMC presents, and whether it could be renewed. Changes nothing."""
        return each([partial(self._look, *machine, deadline) for machine in machines], self.workers)

    def renew(
        self, nodes: Sequence[tuple[NodeState, Serial]], intents: IntentLog, deadline: Deadline, *, force: bool = False
    ) -> Iterator[CertificateResult]:
        """Renew what is due, with `force` all; yield each node's result as soon as it is known."""
        calls = [partial(self._renew, node, serial, intents, deadline, force) for node, serial in nodes]
        return each(calls, self.workers, intents.lease)

    def presented(self, address: BmcAddress, deadline: Deadline) -> Presented:
        """Return what a BMC presents in one handshake."""
        return self.authority.read(self.bmcs.presented(address, deadline))

    def glance(self, names: Sequence[str], deadline: Deadline) -> Iterator[CertificateResult]:
        """Yield what each BMC presents, by a handshake alone."""
        return each([partial(self._glance, name, deadline) for name in names], self.workers)

    def _glance(self, name: str, deadline: Deadline) -> CertificateResult:
        try:
            shown = self.presented(self.address_of(name), deadline)
            return CertificateResult(name, shown, due(shown, self.wish_of(name), self.clock.now(), self.renew_days))
        except Exception as error:  # noqa: BLE001 — whatever its data causes is its own result
            return CertificateResult(name, error=as_error(error, name))

    def _look(self, name: str, serial: Serial, deadline: Deadline) -> CertificateResult:
        found = self._glance(name, deadline)
        if found.error is not None:
            return found
        try:
            with self.bmcs.open_certificates(self.address_of(name), deadline) as bmc:
                bmc.renewable(serial, deadline)
        except Exception as error:  # noqa: BLE001 — whatever its data causes is its own result
            return replace(found, error=as_error(error, name))
        return found

    def _renew(
        self, node: NodeState, serial: Serial, intents: IntentLog, deadline: Deadline, force: bool
    ) -> CertificateResult:
        try:
            fenced = intents.fenced([node.id], deadline)
            work = _Renewal(self, node, serial, intents, fenced, self.address_of(node.name), self.wish_of(node.name))
            return work.run(force=force)
        except Exception as error:  # noqa: BLE001 — whatever its data causes is its own result
            return CertificateResult(node.name, error=as_error(error, node.name))


@dataclass(frozen=True, slots=True)
class _Renewal:
    """The renewal of one BMC's certificate."""

    of: CertificateRenewer
    node: NodeState
    serial: Serial
    intents: IntentLog
    deadline: Deadline
    address: BmcAddress
    wish: CertificateWish
    evidence: list[Evidence] = field(default_factory=list)

    def run(self, *, force: bool) -> CertificateResult:
        shown = self.of.presented(self.address, self.deadline)
        last = intent_of(self.node.intents, Act.BMC_CERTIFICATE)
        details = last.details if last is not None else None
        if isinstance(details, CertificateDetails) and details.issued == shown.fingerprint:
            self._accept(details)  # also after an end that was recorded: a pin may still be the former one
            if last is not None and last.result is not ActResult.DONE:
                self._observed("the BMC presents it")
                return CertificateResult(self.node.name, shown, changed=True)
        elif last is not None and last.open:
            self._observed("the BMC does not present what was issued for it", ActResult.FAILED)
        why = due(shown, self.wish, self._now, self.of.renew_days)
        if not why and not force:
            return CertificateResult(self.node.name, shown)
        return self._made(shown, why or "ordered")

    @property
    def _now(self) -> datetime:
        return self.of.clock.now()

    def _made(self, before: Presented, why: str) -> CertificateResult:
        details = CertificateDetails(before=before.fingerprint)
        try:
            with self.of.bmcs.open_certificates(self.address, self.deadline) as bmc:
                self.evidence.extend(bmc.renewable(self.serial, self.deadline).evidence)
                self._intend(details, why)
                request = bmc.request(self.wish, self.serial, self.deadline)
                self.evidence.extend(request.evidence)
                issued = self.of.authority.issue(request.value, self.wish, self.deadline)
                details = replace(details, request=issued.request, issued=issued.fingerprint)
                self._intend(details, why)
                self._replace(bmc, issued)
            shown = self._appeared(issued)
            self._accept(details)
        except (CancelledError, ClaimLostError):
            raise
        except ClusterctlError as error:
            if self._intended:
                self._observed(error.message, failure(error))
            return CertificateResult(self.node.name, before, why, error=error)
        self._observed(f"certificate {issued.fingerprint}, valid until {shown.not_after:%Y-%m-%d}")
        return CertificateResult(self.node.name, shown, changed=True)

    @property
    def _intended(self) -> bool:
        last = intent_of(self.of.journal.state(self.node.id).intents, Act.BMC_CERTIFICATE)
        return last is not None and last.open

    def _replace(self, bmc: CertificateClient, issued: Issued) -> None:
        """Give the BMC its certificate. A lost answer is no failure yet: the handshakes decide."""
        try:
            self.evidence.extend(bmc.replace(issued.pem, self.serial, self.deadline).evidence)
        except OutcomeUnknownError:
            return

    def _appeared(self, issued: Issued) -> Presented:
        """Return what the BMC presents, once that is what was issued. Raise `OutcomeUnknownError` where it is not."""
        limit = self.deadline.within(APPEAR_S)
        reason = RESET
        while True:
            try:
                shown = self.of.presented(self.address, limit)
                reason = RESET
                if shown.fingerprint == issued.fingerprint:
                    return shown
            except (CancelledError, ClaimLostError):
                raise
            except EdgeError as error:
                reason = error.message
            if limit.remaining <= POLL_S:
                remedy = f"restart the BMC (iDRAC before 6.00.02 needs that), then renew {self.node.name} again"
                raise OutcomeUnknownError(reason, where=self.address.host, remedy=remedy)
            limit.sleep(POLL_S, "waiting until the BMC presents its new certificate")

    def _accept(self, details: CertificateDetails) -> None:
        """Move the pin, once the machine was proven behind the certificate that was issued for it."""
        trusted = self.address
        if not trusted.ca_file:
            trusted = replace(trusted, fingerprint=details.issued)
        with self.of.bmcs.open_certificates(trusted, self.deadline) as bmc:
            self.evidence.extend(bmc.renewable(self.serial, self.deadline).evidence)
        self.of.bmcs.move_pin(self.address, details.before, details.issued)

    def _intend(self, details: CertificateDetails, why: str) -> None:
        self._note(ActIntended(act=Act.BMC_CERTIFICATE, target=self.serial, reason=why, details=details))

    def _observed(self, message: str, result: ActResult = ActResult.DONE) -> None:
        self._note(ActObserved(act=Act.BMC_CERTIFICATE, result=result, message=message))

    def _note(self, payload: Payload) -> None:
        digests = self._keep()
        claim = self.intents.lease.claim(self.node.id)
        self.of.journal.append([node_event(self.node.id, payload, digests)], claim=claim)

    def _keep(self) -> tuple[Digest, ...]:
        kept, self.evidence[:] = tuple(self.evidence), []
        self.of.journal.store(kept)
        return tuple(item.digest for item in kept)

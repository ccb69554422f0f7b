"""A BMC's certificate: lets it make a key and a request, and gives it what the site's authority signed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clusterctl.edges.redfish.connection import Reply
from clusterctl.edges.redfish.session import RedfishSession
from clusterctl.edges.redfish.write import RefusedError, require_machine
from clusterctl.fleet.bmc.certificates import CertificateWish
from clusterctl.fleet.errors import EdgeError
from clusterctl.fleet.node import Serial
from clusterctl.formats.redfish.certificates import CertificateControl, csr_in, read_certificates
from clusterctl.formats.redfish.tree import Answers
from clusterctl.ports import Deadline

REQUEST_S = 600.0
"""Seconds for a key: HPE documents up to ten minutes."""
_POLL_S = 5.0
_NO_REQUEST = "the BMC accepted GenerateCSR and gives no request"


class BmcCertificate:
    """The certificate of one BMC through one session. `steps` records requests and replies, without their contents."""

    def __init__(self, session: RedfishSession, poll_s: float = _POLL_S) -> None:
        self._session = session
        self._poll_s = poll_s
        self.steps: list[str] = []

    def control(self, serial: Serial, deadline: Deadline) -> tuple[CertificateControl, Answers]:
        """Return the BMC's actions. Raise `EdgeError` where it has none, or is in another machine."""
        control, answers = self._session.walk(read_certificates, deadline)
        require_machine(control.serial, serial)
        return control, answers

    def request(self, wish: CertificateWish, serial: Serial, deadline: Deadline) -> str:
        """Let the BMC make a key, and return its request (PEM)."""
        control, _ = self.control(serial, deadline)
        before = self._pending(control, deadline)
        bodies = control.request_bodies(wish)
        reply = self._post("GenerateCSR", control.generate, bodies[0], deadline)
        if not reply.ok and len(bodies) > 1 and reply.status in (400, 422):
            reply = self._post("GenerateCSR for RSA", control.generate, bodies[1], deadline)
        if not reply.ok:
            raise RefusedError(f"the BMC refuses to make a certificate request: {reply.summary}")
        found = csr_in(reply.body)
        if not found and control.pending:
            found = self._awaited(control, before, deadline.within(REQUEST_S))
        if not found:
            raise EdgeError(_NO_REQUEST, where=control.generate, remedy="update the BMC's firmware")
        return found

    def replace(self, pem: str, serial: Serial, deadline: Deadline) -> None:
        """Order the BMC to use the certificate. A lost answer is `OutcomeUnknownError`: its web server restarts."""
        control, _ = self.control(serial, deadline)
        reply = self._post("ReplaceCertificate", control.replace, control.replacement(pem), deadline)
        if not reply.ok:
            raise RefusedError(f"the BMC refuses the certificate: {reply.summary}")

    def _post(self, what: str, path: str, body: Mapping[str, Any], deadline: Deadline) -> Reply:
        reply = self._session.write(path, body, deadline)
        self.steps.append(f"{what}: {reply.summary}")
        return reply

    def _pending(self, control: CertificateControl, deadline: Deadline) -> str:
        """Return the request that the BMC has already: an earlier one is not the new one."""
        if not control.pending:
            return ""
        found = self._session.read(control.pending, deadline)
        return csr_in(found) if isinstance(found, Mapping) else ""

    def _awaited(self, control: CertificateControl, before: str, deadline: Deadline) -> str:
        while not (found := self._pending(control, deadline)) or found == before:
            if deadline.remaining <= self._poll_s:
                return ""
            deadline.sleep(self._poll_s, "waiting for the BMC's certificate request")
        return found

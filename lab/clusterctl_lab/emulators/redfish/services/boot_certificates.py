"""The authorities that firmware trusts for a boot over HTTPS (DMTF ComputerSystem, `Boot.Certificates`).

A POST of `CertificateString` and `CertificateType` adds one, as Supermicro and Dell take it (the latter's script
BiosHttpCertSupportREDFISH.py, which expects 201).
"""

from __future__ import annotations

from collections.abc import Iterator

from cryptography import x509

from clusterctl_lab.emulators.redfish.context import BmcContext, Writes
from clusterctl_lab.emulators.redfish.exchange import Answer, Request, only, required
from clusterctl_lab.emulators.redfish.profile import Problem, RefusedError
from clusterctl_lab.emulators.redfish.resource import Resource, collection, head
from clusterctl_lab.emulators.redfish.traits import Traits
from clusterctl_lab.emulators.redfish.view import View

CAPACITY = 8
"""More are refused, as memory of firmware is small."""


class BootCertificates:
    """Keeps what is posted for all boots that follow; a text that is no certificate is refused."""

    def __init__(self, context: BmcContext) -> None:
        self._context = context
        self.writes: Writes = {("POST", context.profile.paths.boot_certificates): self._add}

    def _add(self, request: Request, _: Traits) -> Answer:
        body = request.json()
        only(body, ("CertificateString", "CertificateType"))
        if required(body, "CertificateType") != "PEM":
            raise RefusedError(Problem.VALUE_NOT_IN_LIST, str(body["CertificateType"]), "CertificateType")
        pem = str(required(body, "CertificateString"))
        try:
            x509.load_pem_x509_certificate(pem.encode())
        except ValueError:
            raise RefusedError(Problem.VALUE_REFUSED, "CertificateString") from None
        state = self._context.state
        if len(state.boot_authorities) >= CAPACITY:
            raise RefusedError(Problem.VALUE_REFUSED, "CertificateString")
        state.boot_authorities = (*state.boot_authorities, pem)
        path = member(self._context.profile.paths.boot_certificates, len(state.boot_authorities))
        return Answer(201, _certificate(path, pem), {"Location": path})


def member(path: str, number: int) -> str:
    """Return the path of a certificate; `number` counts from 1."""
    return f"{path}/{number}"


def resources(path: str, view: View) -> Iterator[Resource]:
    """Yield the collection and its certificates."""
    found = {member(path, number): pem for number, pem in enumerate(view.boot_authorities, start=1)}
    yield collection(path, "CertificateCollection", "Boot Certificates", list(found))
    yield from (_certificate(at, pem) for at, pem in found.items())


def _certificate(path: str, pem: str) -> Resource:
    return {
        **head(path, "Certificate.v1_3_0.Certificate", "Boot Certificate"),
        "CertificateString": pem,
        "CertificateType": "PEM",
    }

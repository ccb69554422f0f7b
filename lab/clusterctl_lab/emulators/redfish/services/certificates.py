"""Certificates (DMTF CertificateService 1.0.4; recorded at Dell and Supermicro): a BMC makes key and request itself.

Required parameters as in Supermicro's recorded GenerateCSRActionInfo; answers as in the schema's GenerateCSRResponse.
A certificate that belongs to another key is refused. What is in force is presented to the connections that come next.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from clusterctl_lab.emulators.redfish.context import BmcContext, Writes
from clusterctl_lab.emulators.redfish.exchange import Answer, Request, only, required
from clusterctl_lab.emulators.redfish.profile import Paths, Problem, RefusedError
from clusterctl_lab.emulators.redfish.resource import Resource, collection, head, ref
from clusterctl_lab.emulators.redfish.traits import Traits

GENERATE, REPLACE = "Actions/CertificateService.GenerateCSR", "Actions/CertificateService.ReplaceCertificate"
_SUBJECT = {
    "CommonName": NameOID.COMMON_NAME,
    "Organization": NameOID.ORGANIZATION_NAME,
    "OrganizationalUnit": NameOID.ORGANIZATIONAL_UNIT_NAME,
    "City": NameOID.LOCALITY_NAME,
    "State": NameOID.STATE_OR_PROVINCE_NAME,
    "Country": NameOID.COUNTRY_NAME,
}
_OPTIONAL = ("AlternativeNames", "Email", "KeyPairAlgorithm", "KeyBitLength", "KeyUsage")


class Certificates:
    """The web server's certificate. `present` puts a PEM file with key and certificate in force."""

    def __init__(self, context: BmcContext) -> None:
        self._paths = context.profile.paths
        self._key: ec.EllipticCurvePrivateKey | None = None
        self.present: Callable[[str], None] = lambda _file: None
        service = self._paths.certificate_service
        self.writes: Writes = (
            {("POST", f"{service}/{GENERATE}"): self._generate, ("POST", f"{service}/{REPLACE}"): self._replace}
            if service
            else {}
        )

    def _generate(self, request: Request, _: Traits) -> Answer:
        body = request.json()
        only(body, (*_SUBJECT, *_OPTIONAL, "CertificateCollection"))
        target = required(body, "CertificateCollection", kind=dict).get("@odata.id")
        if target != self._paths.https_certificates:
            raise RefusedError(Problem.VALUE_NOT_IN_LIST, str(target), "CertificateCollection")
        names = [x509.NameAttribute(oid, self._word(body, name)) for name, oid in _SUBJECT.items()]
        self._key = ec.generate_private_key(ec.SECP256R1())
        builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(names))
        csr = builder.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()
        return Answer(200, {"CSRString": csr, "CertificateCollection": {"@odata.id": target}})

    @staticmethod
    def _word(body: Mapping[str, Any], name: str) -> str:
        text = str(required(body, name))
        limit = 2 if name == "Country" else 64
        if not text or len(text) > limit:
            raise RefusedError(Problem.VALUE_NOT_IN_LIST, text, name)
        return text

    def _replace(self, request: Request, _: Traits) -> Answer:
        body = request.json()
        only(body, ("CertificateString", "CertificateType", "CertificateUri"))
        if required(body, "CertificateUri", kind=dict).get("@odata.id") != member(self._paths):
            raise RefusedError(Problem.VALUE_REFUSED, "CertificateUri")
        if required(body, "CertificateType") != "PEM":
            raise RefusedError(Problem.VALUE_NOT_IN_LIST, str(body["CertificateType"]), "CertificateType")
        try:
            found = x509.load_pem_x509_certificate(str(required(body, "CertificateString")).encode())
        except ValueError:
            raise RefusedError(Problem.VALUE_REFUSED, "CertificateString") from None
        if self._key is None or found.public_key() != self._key.public_key():
            raise RefusedError(Problem.VALUE_REFUSED, "CertificateString")
        key = self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        with tempfile.NamedTemporaryFile() as file:  # mode 0600; OpenSSL loads from a file only
            file.write(key + found.public_bytes(Encoding.PEM))
            file.flush()
            self.present(file.name)
        return Answer(204)


def member(paths: Paths) -> str:
    """The certificate in force."""
    return f"{paths.https_certificates}/SecurityCertificate.2"


def resources(paths: Paths) -> Iterator[Resource]:
    """Service, collection, and the certificate in force, without what is in it."""
    service = paths.certificate_service
    yield {
        **head(service, "CertificateService.v1_0_4.CertificateService", "Certificate Service"),
        "Description": "Certificate Service",
        "Actions": {
            "#CertificateService.GenerateCSR": {"target": f"{service}/{GENERATE}"},
            "#CertificateService.ReplaceCertificate": {"target": f"{service}/{REPLACE}"},
        },
    }
    yield collection(paths.https_certificates, "CertificateCollection", "Certificate Collection", [member(paths)])
    yield {
        **head(member(paths), "Certificate.v1_3_0.Certificate", "Server Certificates"),
        "Description": "IDRAC Web server SSL digital certificate",
    }


def network_protocol(path: str, paths: Paths) -> Resource:
    """The manager's protocols: HTTPS alone, with the link to its certificates."""
    return {
        **head(path, "ManagerNetworkProtocol.v1_7_0.ManagerNetworkProtocol", "Manager Network Protocol"),
        "Description": "Manager Network Service Status",
        "HTTPS": {"Certificates": ref(paths.https_certificates), "Port": 443, "ProtocolEnabled": True},
    }

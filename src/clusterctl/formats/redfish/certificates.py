"""How a BMC gets a new TLS certificate whose key never leaves it.

DMTF's CertificateService (`GenerateCSR`, `ReplaceCertificate`) and the collection that ManagerNetworkProtocol links as
`HTTPS.Certificates`, as recorded at Dell and Supermicro; Supermicro's GenerateCSRActionInfo requires all parts of the
subject. Cisco lists the certificate, in place of the collection, as the only allowable value (recorded at UCS C220 M5
and M6, C240 M5 and S3260: github.com/akaliwod/iserver, doc/redfish-tests-*).

HPE has HpeHttpsCert instead (schema v2_0_0 and resource recorded at iLO 5): the request appears in the resource some
time after the action, and the import restarts the iLO.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from clusterctl.fleet.bmc.certificates import CertificateWish
from clusterctl.fleet.errors import EdgeError, ParseError
from clusterctl.fleet.node import Serial
from clusterctl.formats.redfish import system
from clusterctl.formats.redfish.machine import serial_of
from clusterctl.formats.redfish.services import manager_of
from clusterctl.formats.redfish.tree import Answers, NotYetReadError, ReadRequest, RedfishTree, Resource

Body = Mapping[str, Any]
_GENERATE, _REPLACE = "#CertificateService.GenerateCSR", "#CertificateService.ReplaceCertificate"
_HPE_GENERATE, _HPE_IMPORT = "#HpeHttpsCert.GenerateCSR", "#HpeHttpsCert.ImportCertificate"


@dataclass(frozen=True, slots=True)
class CertificateControl:
    """The two actions of one BMC.

    collection, current  what a request names as its place, and the web server's certificate; empty at HPE
    pending              HPE's resource in which the request appears; empty elsewhere
    """

    serial: Serial
    generate: str
    replace: str
    collection: str = ""
    current: str = ""
    pending: str = ""

    def request_bodies(self, wish: CertificateWish) -> tuple[Body, ...]:
        """Return the requests for a CSR, the likeliest first: a BMC may have a short key as its default."""
        subject = {"CommonName": wish.common_name, "City": wish.city, "State": wish.state, "Country": wish.country}
        if self.pending:
            return ({**subject, "OrgName": wish.organization, "OrgUnit": wish.unit},)
        whole = {
            **subject,
            "Organization": wish.organization,
            "OrganizationalUnit": wish.unit,
            "CertificateCollection": {"@odata.id": self.collection},
        }
        return (whole, {**whole, "KeyPairAlgorithm": "TPM_ALG_RSA", "KeyBitLength": 2048})

    def replacement(self, pem: str) -> Body:
        """Return the order to use a certificate."""
        if self.pending:
            return {"Certificate": pem}
        uri = {"@odata.id": self.current}
        return {"CertificateString": pem, "CertificateType": "PEM", "CertificateUri": uri}


def read_certificates(answers: Answers) -> CertificateControl | ReadRequest:
    """Return the BMC's actions, or what else is to be read. Raise `EdgeError` where it has none."""
    tree = RedfishTree(answers)
    try:
        host = system.host_system(tree)
        return _control(tree, serial_of(tree, host), manager_of(tree, host))
    except NotYetReadError:
        return ReadRequest(tuple(tree.wanted))


def _control(tree: RedfishTree, serial: Serial, manager: Resource) -> CertificateControl:
    if (own := _hpe_certificate(tree, manager)) is not None:
        found = tree.get(own)
        generate, replace = _target(found, _HPE_GENERATE), _target(found, _HPE_IMPORT)
        return CertificateControl(serial, generate, replace, pending=found.path)
    if tree.root.link("CertificateService") is None:
        raise no_way(tree.root.where("CertificateService"))
    service = tree.follow(tree.root, "CertificateService")
    generate, replace = _target(service, _GENERATE), _target(service, _REPLACE)
    protocol = tree.follow(manager, "NetworkProtocol")
    if protocol.link("HTTPS", "Certificates") is None:
        raise no_way(protocol.where("HTTPS", "Certificates"))
    collection = tree.follow(protocol, "HTTPS", "Certificates")
    members = collection.links("Members")
    if not members:
        raise no_way(collection.where("Members"))
    places = service.texts("Actions", _GENERATE, "CertificateCollection@Redfish.AllowableValues")
    allowed = [one for one in places if one in members]
    place = allowed[0] if allowed and collection.path not in places else collection.path
    return CertificateControl(serial, generate, replace, place, members[0])


def _hpe_certificate(tree: RedfishTree, manager: Resource) -> str | None:
    """Return the path of HPE's own resource; None where there is none."""
    if manager.link("Oem", "Hpe", "Links", "SecurityService") is None:
        return None
    return tree.follow(manager, "Oem", "Hpe", "Links", "SecurityService").link("Links", "HttpsCert")


def _target(resource: Resource, action: str) -> str:
    found = resource.text("Actions", action, "target")
    if not found.startswith("/"):
        raise no_way(resource.where("Actions", action))
    return found


def no_way(where: str) -> EdgeError:
    """Return the error about a BMC that makes no certificate request."""
    return EdgeError(
        "the BMC makes no certificate request (CertificateService.GenerateCSR)",
        where=where,
        remedy="update its firmware, or renew its certificate in its own web page",
    )


def csr_in(body: Any) -> str:
    """Return the request in the answer to GenerateCSR, or in HPE's resource; empty where there is none yet."""
    if not isinstance(body, Mapping):
        raise ParseError("the answer to GenerateCSR is no object", where="GenerateCSR")
    found = body.get("CSRString", body.get("CertificateSigningRequest"))
    return found if isinstance(found, str) else ""

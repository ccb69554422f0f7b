"""How BMCs renew certificates: the actions of recorded ones, and a whole renewal of the lab's."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from clusterctl.edges.certificate_authority import SiteAuthority, own_key
from clusterctl.edges.clock import CLOCK
from clusterctl.edges.redfish import RedfishBmcs
from clusterctl.edges.redfish.pins import KnownBmcs
from clusterctl.edges.redfish.write import RefusedError
from clusterctl.fleet.bmc.certificates import CertificateWish
from clusterctl.fleet.errors import EdgeError, ParseError
from clusterctl.fleet.node import Serial
from clusterctl.formats.redfish.certificates import csr_in, read_certificates
from clusterctl.ports import Deadline
from clusterctl_lab.healthy import build
from tests.edges.certifying import COLLECTION, ROOT, SERVICE, Authority, pem_of, request_of, with_certificates
from tests.edges.redfish.test_against_lab import LAYOUT, PASSWORD, lab
from tests.edges.redfish.trees import ask, recorded, small

WISH = CertificateWish(
    names=("node001.bmc.example",),
    addresses=("127.0.0.1",),
    organization="Example",
    unit="HPC",
    city="Bonn",
    state="NRW",
    country="DE",
)


@pytest.mark.parametrize("vendor", ["dell", "supermicro"])
def test_recorded_bmcs_have_dmtfs_actions(vendor: str) -> None:
    """A Dell and a Supermicro: both actions, the collection of the web server, its certificate."""
    control = ask(read_certificates, recorded(vendor))
    service = "/redfish/v1/CertificateService/Actions/CertificateService"
    assert (control.generate, control.replace) == (f"{service}.GenerateCSR", f"{service}.ReplaceCertificate")
    assert control.collection.endswith("/NetworkProtocol/HTTPS/Certificates")
    assert control.current.startswith(control.collection + "/")
    body = control.request_bodies(WISH)[0]
    required = {"CommonName", "Organization", "OrganizationalUnit", "City", "State", "Country", "CertificateCollection"}
    assert required == set(body)  # as Supermicro's recorded GenerateCSRActionInfo requires


def test_a_recorded_hpe_has_its_own() -> None:
    """The request appears in a resource; the import takes the PEM alone (HpeHttpsCert v2_0_0)."""
    control = ask(read_certificates, recorded("hpe"))
    assert control.pending == "/redfish/v1/Managers/1/SecurityService/HttpsCert"
    assert set(control.request_bodies(WISH)[0]) == {"City", "CommonName", "Country", "OrgName", "OrgUnit", "State"}
    assert control.replacement("PEM") == {"Certificate": "PEM"}


def test_a_cisco_is_asked_with_the_place_that_it_allows() -> None:
    """Actions as recorded at a UCS C220 M6 (github.com/akaliwod/iserver, doc/redfish-tests-cisco-ucsc-c220-m6n): the certificate
    itself is its only allowable CertificateCollection.
    """
    tree = with_certificates(small())
    certificate = f"{COLLECTION}/1"
    tree[SERVICE]["Actions"]["#CertificateService.GenerateCSR"] |= {
        "CertificateCollection@Redfish.AllowableValues": [certificate],
        "KeyCurveId@Redfish.AllowableValues": ["TPM_ECC_NIST_P256", "TPM_ECC_NIST_P384"],
        "KeyPairAlgorithm@Redfish.AllowableValues": ["TPM_ALG_SHA256", "TPM_ALG_ECDSA"],
    }
    control = ask(read_certificates, tree)
    assert control.request_bodies(WISH)[0]["CertificateCollection"] == {"@odata.id": certificate}
    assert control.replacement("PEM")["CertificateUri"] == {"@odata.id": certificate}


@pytest.mark.parametrize("places", [[COLLECTION], [], ["/redfish/v1/AccountService/LDAP/Certificates/1"]])
def test_the_collection_is_the_place_elsewhere(places: list[str]) -> None:
    """Where it is allowed, where nothing is listed, and where what is listed is no certificate of the web server."""
    tree = with_certificates(small())
    tree[SERVICE]["Actions"]["#CertificateService.GenerateCSR"]["CertificateCollection@Redfish.AllowableValues"] = (
        places
    )
    assert ask(read_certificates, tree).collection == COLLECTION


def test_an_hpe_without_its_own_resource_has_dmtfs() -> None:
    """A security service that links no HttpsCert is no reason to give up."""
    tree = with_certificates(small())
    security = f"{ROOT}/Managers/1/SecurityService"
    tree[f"{ROOT}/Managers/1"]["Oem"] = {"Hpe": {"Links": {"SecurityService": {"@odata.id": security}}}}
    tree[security] = {"@odata.id": security, "Links": {}}
    assert ask(read_certificates, tree).collection == COLLECTION


def test_a_bmc_without_the_service_is_named() -> None:
    """With a remedy."""
    with pytest.raises(EdgeError, match="makes no certificate request") as error:
        ask(read_certificates, small())
    assert "firmware" in error.value.remedy


@pytest.mark.parametrize(("body", "found"), [({"CSRString": "x"}, "x"), ({}, ""), ({"CSRString": 7}, "")])
def test_the_request_in_an_answer(body: object, found: str) -> None:
    """An answer without one, or with something else, has none."""
    assert csr_in(body) == found


def signing(authority: Authority, days: int = 90) -> SiteAuthority:
    key = own_key(authority.certificate, pem_of(authority.key), days, CLOCK, "key")
    return SiteAuthority(authority.certificate, key)


def test_what_a_bmc_asks_for_does_not_count() -> None:
    """Names, an authority's rights: the site's alone are signed; a lifetime never beyond the authority's own."""
    authority = Authority(days=10)
    issued = signing(authority).issue(request_of(ec.generate_private_key(ec.SECP256R1())), WISH, Deadline.after(60))
    from cryptography import x509

    found = x509.load_pem_x509_certificate(issued.pem.encode())
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(name.value) for name in names] == ["node001.bmc.example", "127.0.0.1"]
    assert "evil" not in found.subject.rfc4514_string()
    assert found.not_valid_after_utc == authority.certificate.not_valid_after_utc


@pytest.mark.parametrize(
    "text", ["", "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n", "\ud800"]
)
def test_a_text_that_is_no_request(text: str) -> None:
    """A hostile BMC ends its own renewal, and nothing else."""
    with pytest.raises(EdgeError):
        signing(Authority()).issue(text, WISH, Deadline.after(60))


def test_a_request_that_its_key_did_not_sign() -> None:
    """It would certify a key that the BMC may not have."""
    import base64

    der = base64.b64decode("".join(request_of(ec.generate_private_key(ec.SECP256R1())).splitlines()[1:-1]))
    text = base64.b64encode(der[:-1] + bytes([der[-1] ^ 1])).decode()
    pem = f"-----BEGIN CERTIFICATE REQUEST-----\n{text}\n-----END CERTIFICATE REQUEST-----\n"
    with pytest.raises(EdgeError, match="request is not"):
        signing(Authority()).issue(pem, WISH, Deadline.after(60))


def test_garbage_is_no_certificate() -> None:
    """What a BMC presents is foreign text, too."""
    with pytest.raises(ParseError):
        signing(Authority()).read(b"\x30\x03abc")


def test_the_labs_bmc_renews_its_certificate(tmp_path: Path) -> None:
    """A new key, the site's certificate behind the next connection, the pin moved; another key's is refused."""
    bmcs, authority = RedfishBmcs(CLOCK, known=KnownBmcs(tmp_path / "pins", learn=True)), signing(Authority())
    machine, deadline = build(1, LAYOUT, PASSWORD), Deadline.after(60)
    serial = Serial(machine.serial)
    with lab([machine], tmp_path) as bmc_of:
        address = replace(bmc_of["node001"], ca_file="")
        before = authority.read(bmcs.presented(address, deadline))
        with bmcs.open_certificates(address, deadline) as bmc:
            issued = authority.issue(bmc.request(WISH, serial, deadline).value, WISH, deadline)
            other = authority.issue(request_of(ec.generate_private_key(ec.SECP256R1())), WISH, deadline)
            with pytest.raises(RefusedError):
                bmc.replace(other.pem, serial, deadline)
            bmc.replace(issued.pem, serial, deadline)
        der = bmcs.presented(address, deadline)
        assert hashlib.sha256(der).hexdigest() == issued.fingerprint != before.fingerprint
        assert authority.read(der).by_site
        bmcs.move_pin(address, before.fingerprint, issued.fingerprint)
        with bmcs.open_certificates(address, deadline) as bmc:
            bmc.renewable(serial, deadline)
            with pytest.raises(EdgeError, match="belongs to machine"):
                bmc.request(WISH, Serial("another"), deadline)

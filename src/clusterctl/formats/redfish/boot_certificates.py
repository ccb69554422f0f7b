"""The authorities that a machine's firmware trusts for a boot over HTTPS: DMTF ComputerSystem, `Boot.Certificates`.

Dell (iDRAC9 since 6.00) and Supermicro have the collection; a certificate is added by a POST of `CertificateString` and
`CertificateType` to it. HPE has none: its `HpeTlsConfig` below the BIOS is another way.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64decode
from binascii import Error as NoBase64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from clusterctl.fleet.errors import EdgeError
from clusterctl.fleet.node import Serial
from clusterctl.formats.redfish import system
from clusterctl.formats.redfish.machine import serial_of
from clusterctl.formats.redfish.tree import Answers, NotYetReadError, ReadRequest, RedfishTree, Resource

_PEM = re.compile(r"-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]*)-----END CERTIFICATE-----")


@dataclass(frozen=True, slots=True)
class BootAuthorities:
    """The collection's path, and SHA-256 of the certificates in it (hexadecimal); `hidden` counts those not shown."""

    serial: Serial
    collection: str
    fingerprints: frozenset[str]
    hidden: int

    def __str__(self) -> str:
        shown = ", ".join(sorted(one[:16] for one in self.fingerprints)) or "none"
        return f"boot authorities {shown}" + (f", and {self.hidden} that are not shown" if self.hidden else "")


def read_boot_authorities(answers: Answers) -> BootAuthorities | ReadRequest:
    """Return the authorities. Raises `EdgeError` where the BMC has no such collection."""
    tree = RedfishTree(answers)
    try:
        host = system.host_system(tree)
        serial = serial_of(tree, host)
        if host.link("Boot", "Certificates") is None:
            raise EdgeError(
                "the BMC enrolls no authority for a boot over HTTPS (Boot.Certificates)",
                where=host.where("Boot", "Certificates"),
                remedy="update its firmware; or enroll provisioning.https.ca in the UEFI setup, and set "
                "provisioning.https.enroll: by-hand",
            )
        listed = tree.members(host, "Boot", "Certificates")
    except NotYetReadError:
        return ReadRequest(tuple(tree.wanted))
    found = [_fingerprint(item) for item in listed]
    path = host.link("Boot", "Certificates") or ""
    return BootAuthorities(serial, path, frozenset(filter(None, found)), found.count(""))


def enrollment(pem: str) -> Mapping[str, Any]:
    """Return the body to POST."""
    return {"CertificateString": pem, "CertificateType": "PEM"}


def fingerprint(pem: str) -> str:
    """Return SHA-256 of the first certificate of a text; empty where it has none."""
    found = _PEM.search(pem)
    if found is None:
        return ""
    try:
        return hashlib.sha256(b64decode("".join(found[1].split()), validate=True)).hexdigest()
    except NoBase64:
        return ""


def _fingerprint(item: Resource) -> str:
    """Return it by the certificate itself, else by what the BMC computed (Certificate v1_3: `Fingerprint`)."""
    if shown := fingerprint(item.text("CertificateString")):
        return shown
    given = item.text("Fingerprint").replace(":", "").lower()
    return given if re.fullmatch(r"[0-9a-f]{64}", given) else ""

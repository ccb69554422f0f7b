"""Certificates of BMCs that were pinned on first use: one file per address, with the SHA-256 in it.

A machine gets a pin of its own once its serial, as the journal knows it, was read behind that certificate: the pin
follows the machine to another address.

The site decides about trust on first use (`bmc.first_use: pin`), for BMCs with certificates that no authority signs. A
pin holds from then on, also when the site no longer allows it, until the operator removes the file.
"""

from __future__ import annotations

import hashlib
import socket
import ssl
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from clusterctl.edges.disk import write_once, write_over
from clusterctl.edges.redfish.transport import translated
from clusterctl.fleet.errors import UsageError
from clusterctl.formats.certificate_pin import parse_pin, with_colons
from clusterctl.ports import BmcAddress, Deadline

CONNECT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class KnownBmcs:
    """Pins in `folder` (mode 0700). `learn`: the certificate of an unknown BMC is pinned now."""

    folder: Path
    learn: bool = False

    def file(self, host: str) -> Path:
        """Return the file for the pin of the BMC at this address."""
        return self.folder / host.replace(":", "_")

    def machine_file(self, serial: str) -> Path:
        """Return the file for the pin of the BMC in this machine."""
        return self.folder / f"machine-{quote(serial.strip().lower(), safe='')}"

    def is_of_machine(self, address: BmcAddress) -> bool:
        """Return whether the machine at this address has a pin of its own, and that pin decides."""
        return bool(address.machine) and _undecided(address) and self.machine_file(address.machine).exists()

    def pin_file(self, address: BmcAddress) -> Path:
        """Return the file that decides: the machine's, else the address's."""
        return self.machine_file(address.machine) if self.is_of_machine(address) else self.file(address.host)

    def keep_machine(self, serial: str, seen: str) -> None:
        """Pin the certificate behind which the serial was read; an existing pin of the machine stays."""
        write_once(self.machine_file(serial), f"{with_colons(seen)}\n".encode())

    def trusted(self, address: BmcAddress, deadline: Deadline) -> tuple[BmcAddress, str]:
        """Return the address with its pin where one exists or may be learnt, and a message where one was learnt.

        Learning sends nothing but a TLS handshake.
        """
        if not _undecided(address):
            return address, ""
        file = self.pin_file(address)
        learnt = ""
        if not file.exists():
            if not self.learn:
                return address, ""
            seen = presented(address, deadline)
            self.keep(address.host, seen)
            learnt = f"its certificate was trusted on first use and is pinned now: SHA-256 {with_colons(seen)}"
        return replace(address, fingerprint=_pin(file)), learnt

    def move(self, address: BmcAddress, before: str, now: str) -> None:
        """Put the pin `now` in the place of the pin `before`, of the address and of the machine; others stay."""
        for file in (self.file(address.host), self.machine_file(address.machine) if address.machine else None):
            if file is not None and file.exists() and _pin(file) == before:
                write_over(file, f"{with_colons(now)}\n".encode())

    def learns(self, address: BmcAddress) -> bool:
        """Return whether the certificate of this BMC would be pinned now."""
        return self.learn and _undecided(address) and not self.pin_file(address).exists()

    def keep(self, host: str, seen: str) -> None:
        """Pin the certificate with this SHA-256; an existing pin stays."""
        write_once(self.file(host), f"{with_colons(seen)}\n".encode())


def _undecided(address: BmcAddress) -> bool:
    """Return whether neither the sheet's pin nor the site's authority nor plain HTTP decides about trust."""
    return not (address.fingerprint or address.ca_file or address.plain_http)


def _pin(file: Path) -> str:
    try:
        return parse_pin(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        remedy = "remove it: the next certificate is then pinned on first use, where the site allows it"
        raise UsageError("is no pin of a BMC's certificate", where=str(file), remedy=remedy) from None


def presented(address: BmcAddress, deadline: Deadline) -> str:
    """Return the SHA-256 of the certificate that the BMC presents."""
    return hashlib.sha256(presented_der(address, deadline)).hexdigest()


def presented_der(address: BmcAddress, deadline: Deadline) -> bytes:
    """Return the certificate that the BMC proves to have; nothing but a TLS handshake is sent."""
    doing = "asking for its certificate"
    deadline.check(doing)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # only the certificate is read; nothing is sent
    seconds = min(CONNECT_SECONDS, max(deadline.remaining, 0.1))
    try:
        with (
            socket.create_connection((address.host, address.port), timeout=seconds) as plain,
            context.wrap_socket(plain) as tls,
        ):
            return tls.getpeercert(binary_form=True) or b""
    except OSError as error:
        raise translated(error, doing) from error

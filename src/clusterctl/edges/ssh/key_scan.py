"""The SSH host key that a host offers, and whether a certificate of the site's authority vouches for it.

OpenSSH's `ssh-keyscan` reads key and certificate: the host proves that it holds the key, nothing is sent to it.
Certificates: OpenSSH's PROTOCOL.certkeys.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    SSHCertificate,
    SSHCertificateType,
    load_ssh_public_identity,
    load_ssh_public_key,
)

from clusterctl.edges import processes
from clusterctl.edges.ssh.connection import CONNECT_SECONDS
from clusterctl.fleet.errors import ParseError, UnreachableError
from clusterctl.ports import Deadline, OfferedKey

KINDS = ("ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa")
"""Types of keys, the best first."""
_SURROUNDINGS = processes.Surroundings(missing="install openssh-client on the controller")


@dataclass(frozen=True, slots=True)
class HostKeyScanner:
    """Meets `HostKeyReader`. `authorities`: public keys that sign host certificates; none: no certificate counts."""

    authorities: tuple[str, ...] = ()
    port: int = 22

    def read(self, name: str, address: str, deadline: Deadline) -> OfferedKey:
        """Return the host's key. Raises `UnreachableError` where no SSH server answers."""
        refused = ""
        if self.authorities:
            certificates = self._scan(address, deadline, ("-c",))
            for line in certificates:
                try:
                    return OfferedKey(
                        certified_key(line, self.authorities, (name, address), time.time()), certified=True
                    )
                except ParseError as error:
                    refused = error.message
            refused = refused or "the host offers no certificate"
        keys = {line.split()[0]: line for line in self._scan(address, deadline)}
        best = next((keys[kind] for kind in KINDS if kind in keys), None)
        if best is None:
            raise UnreachableError(
                "no SSH server offers a key",
                where=f"{name} ({address}:{self.port})",
                remedy="see that the host is up, its address is right and its sshd answers",
            )
        return OfferedKey(_plain(best), refused=refused)

    def _scan(self, address: str, deadline: Deadline, options: Sequence[str] = ()) -> list[str]:
        """Return what follows the host's address in each line: type and key."""
        seconds = min(CONNECT_SECONDS, deadline.remaining)
        argv = ("ssh-keyscan", "-T", f"{max(1, seconds):.0f}", "-p", str(self.port), "-t", "ed25519,ecdsa,rsa")
        found = processes.run((*argv, *options, address), deadline.within(3 * seconds), _SURROUNDINGS)
        lines = (line.split() for line in found.stdout.splitlines() if not line.startswith("#"))
        return [" ".join(words[1:3]) for words in lines if len(words) >= 3]


def _host_certificate(line: str) -> SSHCertificate:
    """Return the certificate, whose signature is right. Raises `ParseError` for any other text."""
    try:
        found = load_ssh_public_identity(line.encode())
    except (ValueError, UnsupportedAlgorithm):
        raise ParseError("its certificate cannot be read") from None
    if not isinstance(found, SSHCertificate) or found.type is not SSHCertificateType.HOST:
        raise ParseError("its certificate is not that of a host")
    try:
        found.verify_cert_signature()
    except InvalidSignature:
        raise ParseError("the signature of its certificate is wrong") from None
    return found


def certified_key(line: str, authorities: Sequence[str], names: tuple[str, str], now: float) -> str:
    """Return the plain host key of a certificate. Raises `ParseError` unless an authority vouches for it.

    `names`: the host's name and address, one of which the certificate must name; `now`: seconds since 1970.
    """
    found = _host_certificate(line)
    signer = found.signature_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    if signer not in authorities:
        raise ParseError("its certificate is signed by none of the site's authorities")
    if not found.valid_after <= now < found.valid_before:
        raise ParseError("its certificate is not valid now")
    if found.critical_options:
        raise ParseError("its certificate has critical options, and hosts have none")
    principals = [name.decode(errors="replace") for name in found.valid_principals]
    if not any(one in names or one.startswith(f"{names[0]}.") for one in principals):
        raise ParseError(f"its certificate names {', '.join(principals) or 'no host'}")
    return found.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


def _plain(line: str) -> str:
    """Return the key in its canonical form. Raises `ParseError` where it is none."""
    try:
        return load_ssh_public_key(line.encode()).public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    except (ValueError, UnsupportedAlgorithm):
        raise ParseError("the host key cannot be read", where="ssh-keyscan") from None

"""BMCs' TLS certificates, and who signs them."""

from __future__ import annotations

from typing import Protocol, Self

from clusterctl.fleet.bmc.certificates import CertificateWish, Issued, Presented
from clusterctl.fleet.finding import Observed
from clusterctl.fleet.node import Serial
from clusterctl.ports.bmc import BmcAddress
from clusterctl.ports.deadline import Deadline


class CertificateClient(Protocol):
    """One BMC, one session, closed on exit."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...

    def renewable(self, serial: Serial, deadline: Deadline) -> Observed[None]:
        """Raise `EdgeError` where the BMC makes no request, or is in another machine."""
        ...

    def request(self, wish: CertificateWish, serial: Serial, deadline: Deadline) -> Observed[str]:
        """Let the BMC make a new key and a request for it (PEM); refuse a BMC that is in another machine."""
        ...

    def replace(self, pem: str, serial: Serial, deadline: Deadline) -> Observed[None]:
        """Give the BMC its new certificate. It may drop all connections then; only a handshake shows the outcome."""
        ...


class CertificateBmcs(Protocol):
    """Opens BMC sessions for their certificates."""

    def open_certificates(self, address: BmcAddress, deadline: Deadline) -> CertificateClient: ...

    def presented(self, address: BmcAddress, deadline: Deadline) -> bytes:
        """Return the certificate (DER) that the BMC proves to have, trusted or not; no login is sent."""
        ...

    def move_pin(self, address: BmcAddress, before: str, now: str) -> None:
        """Pin the certificate `now` where `before` was pinned on first use."""
        ...


class CertificateAuthority(Protocol):
    """Signs the requests of BMCs."""

    def read(self, der: bytes) -> Presented:
        """Return the contents of a certificate. Raises `ParseError`."""
        ...

    def issue(self, request: str, wish: CertificateWish, deadline: Deadline) -> Issued:
        """Sign a request, for what the site wants and nothing that the request asks for. Raises `EdgeError`."""
        ...

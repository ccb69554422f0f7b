"""The TLS certificates of BMCs: what one presents, and what a site wants. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Presented:
    """The certificate that a BMC proved to have, in one TLS handshake.

    fingerprint  SHA-256 of its DER, 64 digits
    names        its subjectAltName: names and addresses
    by_site      the site's authority has signed it
    """

    fingerprint: str
    subject: str
    issuer: str
    not_before: datetime
    not_after: datetime
    names: tuple[str, ...]
    by_site: bool

    def days_left(self, now: datetime) -> float:
        """Return the days until it expires; less than 0 where it has expired."""
        return (self.not_after - now) / timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateWish:
    """What a BMC's certificate is to be: all of it by the site, nothing by the BMC.

    names    names and addresses for subjectAltName; the first name is the common name
    """

    names: tuple[str, ...]
    addresses: tuple[str, ...]
    organization: str
    unit: str
    city: str
    state: str
    country: str

    @property
    def common_name(self) -> str:
        return self.names[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """A signed certificate: PEM, SHA-256 of its DER, and the SHA-256 of the request (DER) that it answers."""

    pem: str
    fingerprint: str
    request: str


def due(shown: Presented, wish: CertificateWish, now: datetime, renew_days: int) -> str:
    """Return why the certificate is to be renewed; empty where it is as wanted."""
    left = shown.days_left(now)
    if left < 0:
        return f"it expired on {shown.not_after:%Y-%m-%d}"
    if shown.not_before > now:
        return f"it is valid from {shown.not_before:%Y-%m-%d} on only"
    if not shown.by_site:
        return f"the site's authority did not sign it, but {shown.issuer}"
    missing = [name for name in (*wish.names, *wish.addresses) if name not in shown.names]
    if missing:
        return f"it does not name {', '.join(missing)}"
    return f"it expires on {shown.not_after:%Y-%m-%d}, in {left:.0f} days" if left < renew_days else ""

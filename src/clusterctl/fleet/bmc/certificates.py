"""The TLS certificates of BMCs: what one presents, and what a site wants. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from clusterctl.fleet.diagnosis import Diagnosis, enumerated, not_measured, ok, warn

NAME = "bmc_certificates"
"""Of the diagnosis."""
UNSEEN = timedelta(days=8)
"""A certificate that nothing has read for so long is not known: the timer of the controller reads each every day."""


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
class SeenCertificate:
    """When a certificate expires, as of the moment when it was read. `due`: it is to be renewed, by the site's rule."""

    not_after: datetime
    seen: datetime
    due: bool


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


def diagnose(seen: Mapping[str, SeenCertificate], nodes: Iterable[str], now: datetime, renew_days: int) -> Diagnosis:
    """Return a warning where certificates of these nodes' BMCs are due, or were not read for `UNSEEN`."""
    names = list(nodes)
    known = {name: seen[name] for name in names if name in seen and now - seen[name].seen <= UNSEEN}
    margin = timedelta(days=renew_days)
    due = sorted(name for name, one in known.items() if one.due or one.not_after - now < margin)
    unread = [name for name in names if name not in known]
    if due:
        soonest = min(known[name].not_after for name in due)
        more = f"; those of {len(unread)} others were not read for {UNSEEN.days} days" if unread else ""
        found = f"to be renewed: {enumerated(due)}, the first expires on {soonest:%Y-%m-%d}{more}"
        return warn(NAME, found, "clusterctl bmc certificates check prints why; clusterctl bmc certificates renew NODE")
    if unread:
        found = f"{len(unread)} of {len(names)} were not read for {UNSEEN.days} days: {enumerated(unread)}"
        return not_measured(NAME, found, "clusterctl bmc certificates check reads them")
    first = min((one.not_after for one in known.values()), default=None)
    return ok(NAME, f"none is due; the first expires on {first:%Y-%m-%d}" if first else "the site has no BMC")

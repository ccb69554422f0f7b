"""The site's authority for the certificates of BMCs, and what each certificate is to be."""

from __future__ import annotations

from pathlib import Path

from clusterctl.edges.certificate_authority import SiteAuthority, external_signer, in_bundle, load_authority, own_key
from clusterctl.edges.clock import CLOCK
from clusterctl.edges.site import Site
from clusterctl.edges.site.secrets import resolve_text
from clusterctl.fleet.bmc.certificates import CertificateWish
from clusterctl.fleet.errors import UsageError
from clusterctl.ports import BmcAddress
from clusterctl.ports.certificates import CertificateAuthority
from clusterctl.site.bmc_certificates import CertificateSettings


def certificate_settings(site: Site) -> CertificateSettings:
    """Return the site's rule. Raise `UsageError` where it has none."""
    found = site.settings.bmc.certificates
    if found is None:
        raise UsageError(
            "the site names no authority for the certificates of its BMCs",
            where=site.where("bmc", "certificates"),
            remedy="write it below bmc: docs/how-to/bmc-certificates.md",
        )
    return found


def reading_authority(site: Site) -> CertificateAuthority:
    """Return the authority without its key: it reads certificates and signs none."""
    settings = certificate_settings(site)
    return SiteAuthority(load_authority(Path(site.path(settings.ca))), external_signer(("false",)))


def authority(site: Site) -> CertificateAuthority:
    """Return the authority; its key is read now. Raise `UsageError` for a key or file that cannot be used.

    A site that trusts its BMCs by `bmc.ca_file` must trust this authority, too: else it would lock itself out.
    """
    settings = certificate_settings(site)
    file = Path(site.path(settings.ca))
    found = load_authority(file)
    trusted = site.path(site.settings.bmc.ca_file)
    if trusted and not in_bundle(found, Path(trusted)):
        raise UsageError(
            f"bmc.ca_file does not hold {settings.ca}: no BMC with a new certificate would be trusted",
            where=site.where("bmc", "ca_file"),
            remedy=f"add the authority to it: cat {settings.ca} >> {site.settings.bmc.ca_file}",
        )
    if settings.key is None:
        return SiteAuthority(found, external_signer(settings.signer))
    field = site.where("bmc", "certificates", "key")
    return SiteAuthority(
        found, own_key(found, resolve_text(settings.key, site.folder, field), settings.days, CLOCK, field)
    )


def wish_of(site: Site, node: str) -> CertificateWish:
    """Return what the certificate of a node's BMC is to be: its name and address by the site, nothing by the BMC."""
    settings = certificate_settings(site)
    subject = settings.subject
    return CertificateWish(
        names=(f"{node}.{settings.domain}",),
        addresses=(site.by_name[node].bmc,),
        organization=subject.organization,
        unit=subject.unit,
        city=subject.city,
        state=subject.state,
        country=subject.country,
    )


def require_movable(site: Site, address: BmcAddress, node: str) -> None:
    """Raise `UsageError` where no command could move the trust in the BMC's certificate."""
    if address.plain_http:
        remedy = "use bmc.scheme: https"
        raise UsageError("the site asks its BMCs without TLS", where=site.where("bmc", "scheme"), remedy=remedy)
    if address.fingerprint:
        raise UsageError(
            "the sheet pins the certificate of its BMC: with another one it would not be trusted",
            where=node,
            remedy="remove tls_fingerprint from the sheet, and name the authority as bmc.ca_file, or set "
            "bmc.first_use: pin",
        )

"""What the site trusts without proof: every run, plan and report states it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from ipaddress import ip_address
from urllib.parse import parse_qs, urlsplit

from clusterctl.edges.site import Site, SiteNode
from clusterctl.fleet.diagnosis import Diagnosis, ok, warn
from clusterctl.operations.site_facts import known_bmcs
from clusterctl.ports import BmcAddress


def diagnosis(site: Site) -> Diagnosis:
    """Return the notices as a diagnosis of `doctor`."""
    found = notices(site)
    if not found:
        return ok("trust", "all peers of a run prove their identity")
    return warn("trust", "; ".join(found), "docs/explanation/security.md describes how each proves its identity")


def notices(site: Site) -> tuple[str, ...]:
    """Return one sentence for each thing that is not proven: plain HTTP, BMCs that are trusted on first use."""
    return tuple(_notices(site))


def _notices(site: Site) -> Iterator[str]:
    yield from _of_maas(site)
    yield from _of_pxe(site)
    yield from _of_bmcs(site)
    yield from _of_journal(site.journal_url())


def _of_maas(site: Site) -> Iterator[str]:
    maas = site.settings.maas
    if maas is not None and maas.url.startswith("http://"):
        yield (
            f"MAAS is reached over plain HTTP ({maas.url}): the network can read the API key and change "
            "what is installed (provisioning.allow_plain_http)"
        )


def _of_pxe(site: Site) -> Iterator[str]:
    pxe = site.settings.pxe
    if pxe is None:
        return
    if pxe.https is None:
        yield (
            f"machines boot over TFTP and plain HTTP from {pxe.address}: every host in that network can read and "
            "change what is installed (provisioning, backend: pxe)"
        )
    elif pxe.https.enroll == "by-hand":
        yield (
            "machines boot over HTTPS, and whether their firmware trusts the site's authority alone is not known "
            "(provisioning.https.enroll: by-hand)"
        )


def _of_bmcs(site: Site) -> Iterator[str]:
    bmc = site.settings.bmc
    if bmc.scheme == "http" and site.with_bmc:
        yield (
            f"{_count(len(site.with_bmc))} reached over plain HTTP: the network can read their passwords "
            "(bmc.allow_plain_http)"
        )
        return
    if bmc.first_use == "pin":
        known = known_bmcs(site)
        unknown = [
            node
            for node in site.with_bmc
            if not node.tls_fingerprint and not known.pin_file(_address(site, node)).exists()
        ]
        if unknown:
            yield (
                f"{_count(len(unknown))} not known yet ({unknown[0].name} …): the certificate that each shows first "
                "is believed and pinned (bmc.first_use)"
            )


def _address(site: Site, node: SiteNode) -> BmcAddress:
    return replace(site.bmc_at(node.bmc), machine=site.logins.serial_of(node.name))


def _of_journal(url: str) -> Iterator[str]:
    parts = urlsplit(url)
    mode = parse_qs(parts.query).get("sslmode", [""])[-1]
    if parts.scheme.startswith("postgresql") and not _is_here(parts.hostname) and mode != "verify-full":
        yield (
            f"the journal's database on {parts.hostname} does not prove its identity: write sslmode=verify-full and "
            "sslrootcert=FILE into its URL (libpq verifies nothing by itself)"
        )


def _is_here(host: str | None) -> bool:
    """Return whether it is the controller itself: a socket, or its loopback address."""
    if host in (None, "localhost"):
        return True
    try:
        return ip_address(host or "").is_loopback
    except ValueError:
        return False


def _count(number: int) -> str:
    return f"{number} BMC{' is' if number == 1 else 's are'}"

"""NVIDIA UFM's REST API: events, alarms, ports, links, systems, and the ports that it keeps out of the routes."""

from __future__ import annotations

from clusterctl.edges.site import Site
from clusterctl.edges.site.secrets import resolve
from clusterctl.edges.tls import Trust
from clusterctl.edges.ufm.api import UfmApi, UfmConnection, time_zone
from clusterctl.ports import Clock
from clusterctl.site.ufm import UfmSettings

__all__ = ["UfmApi", "UfmConnection", "site_ufm", "time_zone"]


def site_ufm(site: Site, settings: UfmSettings, clock: Clock) -> UfmApi:
    """Return the UFM of a site; reads its token or password now. Raise `UsageError` for an unknown time zone."""
    token = resolve(settings.token, site.folder, site.where("fabric", "ufm", "token")) if settings.token else ""
    where = site.where("fabric", "ufm", "password")
    password = resolve(settings.password, site.folder, where) if settings.password else ""
    connection = UfmConnection(
        url=settings.url,
        token=token,
        login=(settings.user, password) if password else None,
        trust=Trust(ca_file=site.path(settings.ca_file), fingerprint=settings.tls_fingerprint),
        zone=time_zone(settings.time_zone, site.where("fabric", "ufm", "time_zone")),
        origin=site.origin,
    )
    return UfmApi(connection, clock)

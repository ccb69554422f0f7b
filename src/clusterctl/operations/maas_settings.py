"""What the site says of its MAAS, as the edge takes it."""

from __future__ import annotations

from dataclasses import asdict

from clusterctl.edges.maas import MaasSettings, StateLimits
from clusterctl.edges.site import Site
from clusterctl.fleet.errors import UsageError


def maas_settings(site: Site) -> MaasSettings:
    """Reads the API key, a secret, now. Raises `UsageError` where the site has no MAAS."""
    said = site.settings.maas
    if said is None:
        raise UsageError("the site has no MAAS", where=site.where("provisioning"), remedy="add backend: maas")
    return MaasSettings(
        url=said.url,
        api_key=site.maas_api_key(),
        series=said.series,
        ca_file=site.path(said.ca_file),
        tls_fingerprint=said.tls_fingerprint,
        pool=said.pool,
        zone=said.zone,
        tags=said.tags,
        limits=StateLimits(**asdict(said.deadlines)),
        origin=site.origin,
        allow_plain_http=said.allow_plain_http,
    )

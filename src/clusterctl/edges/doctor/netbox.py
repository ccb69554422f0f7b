"""The check of the site's NetBox: route, TLS, token and version, and that it has the site."""

from __future__ import annotations

from clusterctl.edges.netbox import NetboxApi, NetboxConnection
from clusterctl.edges.netbox.reading import site_id
from clusterctl.edges.site import Site
from clusterctl.edges.tls import Trust
from clusterctl.fleet.diagnosis import Diagnosis, broken, ok
from clusterctl.fleet.errors import ClusterctlError
from clusterctl.fleet.peer_text import visible_line
from clusterctl.ports import Deadline

SECONDS = 8.0


def check_netbox(site: Site) -> Diagnosis:
    """Ask NetBox for its version and for the site; both need a token that may read. Nothing is changed."""
    settings = site.settings.netbox
    if settings is None:
        return ok("netbox", "the site has none")
    try:
        connection = NetboxConnection(
            settings.url, site.netbox_token(), Trust(site.path(settings.ca_file), settings.tls_fingerprint)
        )
        with NetboxApi(connection, Deadline.after(SECONDS)) as api:
            version = api.version()
            site_id(api, settings.site, site.where("netbox", "site"))
    except ClusterctlError as error:
        remedy = error.remedy or "check netbox.url, the network, and that NetBox runs"
        return broken("netbox", f"{settings.url}: {error.message}", remedy)
    return ok("netbox", f"{settings.url} is NetBox {visible_line(version, 40)}, and has the site {settings.site}")

"""NetBox's REST API through pynetbox, within bounds: bytes, pages, time, tries, and a verified certificate."""

from clusterctl.edges.netbox.api import NetboxApi, NetboxListing
from clusterctl.edges.netbox.session import NetboxConnection, NetboxRefusedError

__all__ = ["NetboxApi", "NetboxConnection", "NetboxListing", "NetboxRefusedError"]

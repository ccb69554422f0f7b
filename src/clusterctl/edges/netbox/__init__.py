"""NetBox's REST API through pynetbox, within bounds: bytes, pages, time, tries, and a verified certificate."""

from clusterctl.edges.netbox.api import Listing, NetboxApi
from clusterctl.edges.netbox.session import NetboxConnection, NetboxRefusedError

__all__ = ["Listing", "NetboxApi", "NetboxConnection", "NetboxRefusedError"]

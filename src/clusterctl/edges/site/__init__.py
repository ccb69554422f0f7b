"""The site directory: `site.yml`, the vendor's CSV, SKUs, secrets by reference. Read once into a frozen `Site`."""

from clusterctl.edges.site.load import Site, load_site
from clusterctl.site.nodes import SiteNode

__all__ = ["Site", "SiteNode", "load_site"]

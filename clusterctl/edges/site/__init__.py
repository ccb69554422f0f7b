"""The site directory: `site.yml`, the vendor's CSV, SKUs, secrets by reference. Read once into a frozen `Site`."""

from clusterctl.edges.site.load import Site, SiteNode, load_site

__all__ = ["Site", "SiteNode", "load_site"]

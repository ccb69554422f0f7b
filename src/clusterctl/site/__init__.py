"""The site as validated, frozen dataclasses: `site.yml`. Pure: `edges/site` reads and writes the files.

A check of one field is part of the field's type (`fields`); a check across fields is the class's `__post_init__`.
"""

from clusterctl.site.nodes import SiteNode
from clusterctl.site.settings import SiteSettings

__all__ = ["SiteNode", "SiteSettings"]

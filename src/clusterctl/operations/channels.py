"""The channels of a site: how messages leave the controller. Imported only where a message is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusterctl.edges.site import Site

if TYPE_CHECKING:
    from clusterctl.ports.notify import Notifier
    from clusterctl.site.notify import NotifySettings


def site_notifier(site: Site, settings: NotifySettings) -> Notifier:
    """Return the site's channels by apprise, which takes a third of a second to import."""
    from clusterctl.edges.notify import AppriseChannels

    return AppriseChannels(site, settings)

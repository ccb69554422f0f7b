"""The channels, the ticket system and the log store of a site. Imported only where one of them is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusterctl.edges.site import Site

if TYPE_CHECKING:
    from clusterctl.ports.logs import LogStore
    from clusterctl.ports.notify import Notifier
    from clusterctl.ports.tickets import Tickets
    from clusterctl.site.monitoring import LokiSettings
    from clusterctl.site.notify import NotifySettings
    from clusterctl.site.tickets import TicketSettings


def site_notifier(site: Site, settings: NotifySettings) -> Notifier:
    """Return the site's channels by apprise, which takes a third of a second to import."""
    from clusterctl.edges.notify import AppriseChannels

    return AppriseChannels(site, settings)


def ticket_system(site: Site, settings: TicketSettings) -> Tickets:
    """Return the site's ticket system."""
    from clusterctl.edges.tickets import site_tickets

    return site_tickets(site, settings)


def log_store(site: Site, settings: LokiSettings) -> LogStore:
    """Return the store of the nodes' logs."""
    from clusterctl.edges.loki import site_loki

    return site_loki(site, settings)

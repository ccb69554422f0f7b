"""Ticket systems: one file each. `site_tickets` returns the site's one.

They use requests rather than the client libraries of the systems (jira, PyGithub): these repeat requests by themselves,
also a POST without an answer, and a ticket must not be created twice.
"""

from __future__ import annotations

from clusterctl.edges.site import Site
from clusterctl.edges.site.secrets import resolve
from clusterctl.edges.tickets.github import GithubIssues
from clusterctl.edges.tickets.http import TicketApi
from clusterctl.edges.tickets.jira import JiraIssues
from clusterctl.edges.tickets.webhook import WebhookTickets
from clusterctl.ports.tickets import Tickets
from clusterctl.site.tickets import GithubSettings, JiraSettings, TicketSettings

__all__ = ["site_tickets"]


def site_tickets(site: Site, settings: TicketSettings) -> Tickets:
    """Return the ticket system of a site; reads its token now."""
    token = resolve(settings.token, site.folder, site.where("tickets", "token"))
    ca_file = site.path(settings.ca_file)
    if isinstance(settings, JiraSettings):
        basic = (settings.user, token) if settings.user else None
        return JiraIssues(
            TicketApi(settings.url, ca_file=ca_file, bearer="" if basic else token, basic=basic), settings
        )
    api = TicketApi(settings.url, ca_file=ca_file, bearer=token)
    if isinstance(settings, GithubSettings):
        return GithubIssues(api, settings)
    return WebhookTickets(api)

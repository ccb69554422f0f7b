"""`tickets` of a site: where incidents become tickets. Its token is a secret."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from clusterctl.site.fields import Secret, Words, section
from clusterctl.site.notify import IncidentKindName
from clusterctl.site.urls import service_url

ServiceUrl = Annotated[str, AfterValidator(service_url)]
Kinds = Annotated[tuple[IncidentKindName, ...], Field(min_length=1, description="which incidents become tickets")]
CloseResolved = Annotated[bool, Field(description="close the ticket of an incident that is resolved")]
_HARDWARE: tuple[IncidentKindName, ...] = ("nodes", "links", "fabric")
Authority = Annotated[str, Field(description="PEM file of the authority, where it is not one of the system's")]


@section
class JiraSettings:
    """`user`: of Jira Cloud, whose `token` is an API token; without it the token is one of Jira Data Center."""

    kind: Literal["jira"]
    url: ServiceUrl
    token: Secret
    project: Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]{1,31}$")]
    issue_type: Words = "Task"
    close_transition: Annotated[
        str,
        Field(
            max_length=100, description="of the workflow, for close_resolved; by default one to a status that is done"
        ),
    ] = ""
    user: str = ""
    ca_file: Authority = ""
    incidents: Kinds = _HARDWARE
    close_resolved: CloseResolved = False


@section
class GithubSettings:
    """Issues of one repository, `owner/name`. The token needs to read and write its issues, nothing else."""

    kind: Literal["github"]
    repository: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$")]
    token: Secret
    url: ServiceUrl = "https://api.github.com"
    ca_file: Authority = ""
    incidents: Kinds = _HARDWARE
    close_resolved: CloseResolved = False


@section
class WebhookSettings:
    """A service of the site's own (docs/how-to/tickets.md has its requests)."""

    kind: Literal["webhook"]
    url: ServiceUrl
    token: Secret
    ca_file: Authority = ""
    incidents: Kinds = _HARDWARE
    close_resolved: CloseResolved = False


TicketSettings = Annotated[JiraSettings | GithubSettings | WebhookSettings, Field(discriminator="kind")]

"""`tickets` of a site: where incidents become tickets. Its token is a secret."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from clusterctl.formats.site.yaml_problems import UNSHOWN
from clusterctl.site.fields import Secret, Words, section
from clusterctl.site.notify import IncidentKindName


def _service_url(value: str) -> str:
    parts = urlsplit(value)
    local = parts.hostname in ("127.0.0.1", "::1", "localhost")
    if parts.scheme not in ("https", "http") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("must be a URL such as https://jira.example.com")
    if parts.scheme == "http" and not local:
        raise ValueError("must be https: a token is sent to it")
    if parts.username or parts.password:
        raise PydanticCustomError(UNSHOWN, "the url holds a user or password: the token belongs in token, by reference")
    return value.rstrip("/")


ServiceUrl = Annotated[str, AfterValidator(_service_url)]
Kinds = Annotated[tuple[IncidentKindName, ...], Field(min_length=1, description="which incidents become tickets")]
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
    user: str = ""
    ca_file: Authority = ""
    incidents: Kinds = _HARDWARE


@section
class GithubSettings:
    """Issues of one repository, `owner/name`. The token needs to read and write its issues, nothing else."""

    kind: Literal["github"]
    repository: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$")]
    token: Secret
    url: ServiceUrl = "https://api.github.com"
    ca_file: Authority = ""
    incidents: Kinds = _HARDWARE


@section
class WebhookSettings:
    """A service of the site's own (docs/how-to/tickets.md has its requests)."""

    kind: Literal["webhook"]
    url: ServiceUrl
    token: Secret
    ca_file: Authority = ""
    incidents: Kinds = _HARDWARE


TicketSettings = Annotated[JiraSettings | GithubSettings | WebhookSettings, Field(discriminator="kind")]

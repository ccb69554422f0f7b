"""`monitoring` of a site: where the nodes' logs are kept."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from clusterctl.site.fields import Secret, section
from clusterctl.site.urls import service_url

ServiceUrl = Annotated[str, AfterValidator(service_url)]


@section
class LokiSettings:
    """Grafana Loki, to which the role `log_shipping` sends the nodes' logs.

    tenant  its X-Scope-OrgID, where it has tenants
    label   has the node's name on each line
    """

    url: Annotated[ServiceUrl, Field(description="without /loki/api/v1: https://logs.example.com:3100")]
    tenant: Annotated[str, Field(pattern=r"^[A-Za-z0-9!._*'()-]{0,150}$")] = ""
    token: Annotated[Secret | None, Field(description="sent as bearer token")] = None
    ca_file: Annotated[str, Field(description="PEM file of the authority, where it is not one of the system's")] = ""
    label: Annotated[str, Field(pattern=r"^[a-zA-Z_][a-zA-Z0-9_]{0,63}$")] = "host"


@section
class MonitoringSettings:
    """What watches the site. `loki` is asked by `clusterctl logs`."""

    loki: LokiSettings | None = None

"""`notify` of a site: which incidents go to which channels. The URL of a channel is a secret: it holds tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from clusterctl.site.fields import Name, Positive, Secret, section, unique

IncidentKindName = Literal["nodes", "links", "fabric", "night", "alert", "controller"]
PhaseName = Literal["opened", "updated", "resolved"]


@section
class ChannelSettings:
    """`url`: of a service, as apprise has it (https://appriseit.com/services/)."""

    url: Secret


@section
class RouteSettings:
    """Which messages go to which channels."""

    to: Annotated[tuple[Name, ...], Field(min_length=1), AfterValidator(unique)]
    incidents: Annotated[tuple[IncidentKindName, ...], Field(min_length=1)] = (
        "nodes", "links", "fabric", "night", "alert", "controller",
    )  # fmt: skip
    on: Annotated[tuple[PhaseName, ...], Field(min_length=1)] = ("opened", "updated", "resolved")
    severity: Annotated[
        Literal["warning", "critical"], Field(description="critical: only incidents that are critical")
    ] = "warning"


@section
class NotifySettings:
    """Channels by name, and the routes to them."""

    channels: Annotated[Mapping[Name, ChannelSettings], Field(min_length=1)]
    routes: Annotated[tuple[RouteSettings, ...], Field(min_length=1)]
    attempts: Annotated[Positive, Field(description="to send one message, 30 s to 1 h apart")] = 12

    def __post_init__(self) -> None:
        unknown = [name for route in self.routes for name in route.to if name not in self.channels]
        if unknown:
            raise ValueError(f"routes name {unknown[0]}, which is no channel: {', '.join(self.channels)}")

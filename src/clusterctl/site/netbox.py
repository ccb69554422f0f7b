"""`netbox` of a site: NetBox as its source of truth, and which of NetBox's objects are its nodes and switches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated

from pydantic import AfterValidator, Field

from clusterctl.fleet.node import Stage
from clusterctl.site.fields import FileName, Fingerprint, Flag, Positive, Secret, section, shaped, unique
from clusterctl.site.urls import plain_url

Slug = Annotated[str, AfterValidator(shaped(r"[A-Za-z0-9_-]{1,100}", "a slug of NetBox, such as gpu-node"))]
Slugs = Annotated[tuple[Slug, ...], AfterValidator(unique)]
CustomField = Annotated[str, AfterValidator(shaped(r"[a-z0-9_]{0,50}", "the name of a custom field, such as bmc_mac"))]
LIVING = ("active", "planned", "staged", "failed", "offline")
"""Status of the devices that are nodes; `inventory` is a device in store, `decommissioning` one on its way out."""


def _netbox_url(value: str) -> str:
    return plain_url(value, "must be the URL of NetBox, like https://netbox.example").removesuffix("/api")


def _stages(value: Mapping[str, str]) -> Mapping[str, str]:
    known = [stage.value for stage in Stage]
    for name in value:
        if name not in known:
            raise ValueError(f"{name} is no stage: {', '.join(known)}")
    return value


ByStage = Annotated[Mapping[str, Slug], AfterValidator(_stages)]


@section
class NetboxExport:
    """What is written back to NetBox. A stage that a mapping does not name leaves NetBox's value as it is."""

    statuses: Annotated[ByStage, Field(description="stage → status of the device")] = field(default_factory=dict)
    stage_field: Annotated[CustomField, Field(description="custom field (text) that gets the stage")] = ""
    tags: Annotated[ByStage, Field(description="stage → slug of a tag; the others named here are taken away")] = field(
        default_factory=dict
    )
    inventory: Annotated[Flag, Field(description="serials of GPUs, adapters and drives as inventory items")] = True
    journal: Annotated[Flag, Field(description="a journal entry at each quarantine")] = True


@section
class NetboxSettings:
    """Where NetBox is, and what of it belongs to this site. Roles, status and the site are NetBox's slugs."""

    url: Annotated[str, AfterValidator(_netbox_url)]
    token: Secret
    site: Slug
    node_roles: Annotated[Slugs, Field(min_length=1, description="roles of the devices that are nodes")]
    fabric_roles: Annotated[Slugs, Field(description="roles of the switches of the wiring plan")] = ()
    ethernet_roles: Annotated[Slugs, Field(description="roles of the switches of the Ethernet plan")] = ()
    statuses: Annotated[Slugs, Field(min_length=1, description="of the devices that are nodes")] = LIVING
    sku_field: Annotated[CustomField, Field(description="custom field of a device with its SKU")] = ""
    skus: Annotated[
        Mapping[str, FileName], Field(description="value of sku_field, or slug of a device type → SKU of the site")
    ] = field(default_factory=dict)
    bmc_mac_field: Annotated[CustomField, Field(description="custom field with the BMC's MAC address")] = ""
    export: Annotated[NetboxExport | None, Field(description="what export netbox writes back")] = None
    ca_file: str = ""
    tls_fingerprint: Fingerprint = ""
    allow_plain_http: Flag = False
    seconds: Annotated[Positive, Field(description="that one import or export may take")] = 600

    def __post_init__(self) -> None:
        if self.ca_file and self.tls_fingerprint:
            raise ValueError("give ca_file or tls_fingerprint, not both")
        if self.url.startswith("http://") and not self.allow_plain_http:
            raise ValueError("plain http shows the token to the whole network: use https, or allow_plain_http: true")
        twice = sorted({*self.node_roles} & {*self.fabric_roles, *self.ethernet_roles})
        if twice:
            raise ValueError(f"{twice[0]} is a role of nodes and of switches: keep one")

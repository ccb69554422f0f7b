"""What a node sees of its MAAS: the JSON document of the built-in program `maas-view`.

What it asks is what MAAS gives a machine: names and the proxy `http://10-10-0-0--24.maas-internal:8000/`
(src/maasserver/compose_preseed.py), the racks' time, and the metadata service, whose URL and key cloud-init keeps
(cloud-init's data source MAAS).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from clusterctl.formats.documents import read_document

_WHERE = "maas-view"


@dataclass(frozen=True, slots=True)
class Lookup:
    """A name's addresses by the node's own resolver; `error` where there are none."""

    addresses: tuple[str, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class PackageFetch:
    """A fetch of the index `url` of the node's first package source; empty: it has none by HTTP.

    own_proxy  of the node's apt
    proxy      the proxy that the fetch went through
    """

    url: str
    own_proxy: str
    proxy: str
    status: int | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class TimeAnswer:
    """An SNTP answer (RFC 4330): `leap` 3 is a clock that is not set; `offset` seconds that it is ahead of the node."""

    leap: int = 0
    stratum: int = 0
    offset: float = 0.0
    error: str = ""


@dataclass(frozen=True, slots=True)
class MetadataAnswer:
    """The metadata service, asked with the machine's own key.

    configured  cloud-init has a URL and a key of MAAS; else nothing was asked
    named       it returned an instance ID
    """

    url: str
    configured: bool
    named: bool = False
    status: int | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class NodeView:
    """Everything that a node was asked to try, by name and by time server."""

    names: Mapping[str, Lookup]
    packages: PackageFetch
    time: Mapping[str, TimeAnswer]
    metadata: MetadataAnswer


@dataclass(frozen=True, slots=True)
class _Document:
    packages: PackageFetch
    metadata: MetadataAnswer
    names: dict[str, Lookup] = field(default_factory=dict)
    time: dict[str, TimeAnswer] = field(default_factory=dict)


def parse_node_view(text: str) -> NodeView:
    """Return what the node saw. Raises `ParseError` for another document."""
    found = read_document(_Document, text, _WHERE)
    return NodeView(found.names, found.packages, found.time, found.metadata)

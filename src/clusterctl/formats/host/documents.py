"""Operating system, name resolution and containers: the node's built-in `host-os`, `resolve-names`, `container-gpus`
and `containers`, and `docker info`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.documents import Text, read_document

_GPU_LINE = re.compile(r"^GPU \d+: .*\(UUID: (?P<uuid>GPU-[0-9a-f-]+)\)\s*$", re.MULTILINE)
_HEALTH = re.compile(r"\((?:health: )?(?P<health>healthy|unhealthy|starting)\)")


@dataclass(frozen=True, slots=True)
class WantedOs:
    """What the site requires; empty for no requirement."""

    release: str = ""
    kernel: str = ""


@dataclass(frozen=True, slots=True)
class HostOs:
    """`os_release`: the file by key, None if missing. `next_boot`: target of the link `vmlinuz`, None without a
    link. `installed`: the kernels in /boot.
    """

    wanted: WantedOs
    os_release: dict[str, str] | None
    kernel: Text
    installed: tuple[str, ...]
    next_boot: str | None


@dataclass(frozen=True, slots=True)
class NameAnswer:
    """`outcome`: address, none, nxdomain, refused and other DNS results, silent, or the system's message."""

    server: str
    name: str
    outcome: str


@dataclass(frozen=True, slots=True)
class NameAnswers:
    """`wanted`: the names that the site lists; if it lists none, the answers are for the host's own name."""

    wanted: tuple[str, ...]
    servers: tuple[str, ...]
    answers: tuple[NameAnswer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerGpus:
    """Result of `docker run … IMAGE nvidia-smi -L`; `image` is empty where nothing was run."""

    image: str
    image_absent: bool = False
    code: int
    output: str
    complaint: str

    @property
    def uuids(self) -> tuple[str, ...]:
        """The UUIDs of nvidia-smi's lines `GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-…)`."""
        return tuple(match["uuid"] for match in _GPU_LINE.finditer(self.output))


@dataclass(frozen=True, slots=True)
class Container:
    """`state` is Docker's (running, exited, restarting …), `status` its message. `health` is empty for an image without
    health check (docs.docker.com/reference: docker container ls; Dockerfile, HEALTHCHECK).
    """

    name: str
    state: str
    status: str
    health: str


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    state: Text
    status: str


@dataclass(frozen=True, slots=True)
class _Containers:
    wanted: tuple[str, ...]
    containers: tuple[_Row, ...]


def parse_host_os(text: str) -> HostOs:
    """Return the document of `host-os`. This parser and all others here raise `ParseError` for another document."""
    return read_document(HostOs, text, "host-os")


def parse_name_answers(text: str) -> NameAnswers:
    """Return the document of `resolve-names`."""
    return read_document(NameAnswers, text, "resolve-names")


def parse_container_gpus(text: str) -> ContainerGpus:
    """Return the document of `container-gpus`."""
    return read_document(ContainerGpus, text, "container-gpus")


def parse_containers(text: str) -> tuple[tuple[str, ...], tuple[Container, ...]]:
    """Return the names that the site requires, and the containers that exist."""
    document = read_document(_Containers, text, "containers")
    return document.wanted, tuple(_container(row) for row in document.containers)


def _container(row: _Row) -> Container:
    match = _HEALTH.search(row.status)
    return Container(row.name, row.state, row.status, match["health"] if match else "")


_WHERE = "docker info"


@dataclass(frozen=True, slots=True)
class DockerInfo:
    """Version of the daemon, empty where none answered; `errors` are then the command's messages."""

    version: str
    errors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Document:
    ServerVersion: str = ""
    ServerErrors: tuple[str, ...] | None = None


def parse_docker_info(text: str) -> DockerInfo:
    """Return the content of `docker info --format '{{json .}}'`. Raises `ParseError` without version and error."""
    document = read_document(_Document, text, _WHERE)
    errors = document.ServerErrors or ()
    if not document.ServerVersion and not errors:
        raise ParseError("neither a version of the daemon nor an error", where=_WHERE)
    return DockerInfo(document.ServerVersion, errors)

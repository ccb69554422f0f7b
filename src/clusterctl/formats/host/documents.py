"""The JSON documents of the node's built-in `host-os`, `resolve-names`, `container-gpus` and `containers`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, TypeVar

import pydantic

from clusterctl.fleet.errors import ParseError

_Model = TypeVar("_Model", bound=pydantic.BaseModel)
_GPU_LINE = re.compile(r"^GPU \d+: .*\(UUID: (?P<uuid>GPU-[0-9a-f-]+)\)\s*$", re.MULTILINE)
_HEALTH = re.compile(r"\((?:health: )?(?P<health>healthy|unhealthy|starting)\)")


class WantedOs(pydantic.BaseModel, frozen=True):
    """Empty: the site does not say."""

    release: str = ""
    kernel: str = ""


class HostOs(pydantic.BaseModel, frozen=True):
    """`os_release` is the file's content by key, None where there is none; `next_boot`: the kernel that the link
    `vmlinuz` names, None where there is no link; `installed`: all of /boot.
    """

    wanted: WantedOs
    os_release: dict[str, str] | None
    kernel: Annotated[str, pydantic.Field(min_length=1)]
    installed: tuple[str, ...]
    next_boot: str | None


class NameAnswer(pydantic.BaseModel, frozen=True):
    """`outcome`: address, none, nxdomain, refused and their like, silent, or the system's words."""

    server: str
    name: str
    outcome: str


class NameAnswers(pydantic.BaseModel, frozen=True):
    """`wanted`: the names that the site lists; where it lists none, the answers are for the host's own."""

    wanted: tuple[str, ...]
    servers: tuple[str, ...]
    answers: tuple[NameAnswer, ...]


class ContainerGpus(pydantic.BaseModel, frozen=True):
    """How `docker run … IMAGE nvidia-smi -L` ended; `image` is empty where nothing was run."""

    image: str
    code: int
    said: str
    complaint: str

    @property
    def uuids(self) -> tuple[str, ...]:
        """As nvidia-smi(1) lists them: `GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-…)`."""
        return tuple(match["uuid"] for match in _GPU_LINE.finditer(self.said))


@dataclass(frozen=True, slots=True)
class Container:
    """`state` as Docker calls it (running, exited, restarting …), `status` in its words; `health` is empty where its
    image defines no check of it (docs.docker.com/reference: docker container ls; Dockerfile, HEALTHCHECK).
    """

    name: str
    state: str
    status: str
    health: str


class _Row(pydantic.BaseModel):
    name: str
    state: Annotated[str, pydantic.Field(min_length=1)]
    status: str


class _Containers(pydantic.BaseModel):
    wanted: tuple[str, ...]
    containers: tuple[_Row, ...]


def parse_host_os(text: str) -> HostOs:
    """`ParseError` where it is no such document; so with all others here."""
    return _read(text, HostOs, "host-os")


def parse_name_answers(text: str) -> NameAnswers:
    return _read(text, NameAnswers, "resolve-names")


def parse_container_gpus(text: str) -> ContainerGpus:
    return _read(text, ContainerGpus, "container-gpus")


def parse_containers(text: str) -> tuple[tuple[str, ...], tuple[Container, ...]]:
    """The names that the site wants, and those of them that there are."""
    document = _read(text, _Containers, "containers")
    return document.wanted, tuple(_container(row) for row in document.containers)


def _container(row: _Row) -> Container:
    match = _HEALTH.search(row.status)
    return Container(row.name, row.state, row.status, match["health"] if match else "")


def _read(text: str, model: type[_Model], program: str) -> _Model:
    try:
        return model.model_validate_json(text)
    except pydantic.ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise ParseError(f"not understood: {first['msg']}", where=f"{program} {field}".strip()) from None


_WHERE = "docker info"


@dataclass(frozen=True, slots=True)
class DockerInfo:
    """`version` of the daemon, empty where none answered; `errors`: why not, in the command's words."""

    version: str
    errors: tuple[str, ...]


class _Document(pydantic.BaseModel):
    ServerVersion: str = ""
    ServerErrors: tuple[str, ...] | None = None


def parse_docker_info(text: str) -> DockerInfo:
    """Read the JSON document; `ParseError` where it is none, or tells neither a version nor an error."""
    try:
        document = _Document.model_validate_json(text)
    except pydantic.ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise ParseError(f"not understood: {first['msg']}", where=_WHERE) from None
    errors = document.ServerErrors or ()
    if not document.ServerVersion and not errors:
        raise ParseError("neither a version of the daemon nor an error", where=_WHERE)
    return DockerInfo(document.ServerVersion, errors)

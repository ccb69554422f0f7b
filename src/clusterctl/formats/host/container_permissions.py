"""The document of the node's built-in `container-permissions`: who may use Docker, GPUs and adapters."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

from clusterctl.formats.documents import Text, Within, read_document

_WHERE = "container-permissions"
_SECTION = re.compile(r"\s*\[(?P<name>[\w.-]+)\]\s*(?:#.*)?")
_FLAG = re.compile(r"\s*(?P<name>[\w-]+)\s*=\s*(?P<value>true|false)\s*(?:#.*)?")
_CLI = "nvidia-container-cli"
_BY_ENVIRONMENT = "accept-nvidia-visible-devices-envvar-when-unprivileged"
_BY_MOUNTS = "accept-nvidia-visible-devices-as-volume-mounts"
Mode = Annotated[int, Within(ge=0, le=0o7777)]


@dataclass(frozen=True, slots=True)
class FileAccess:
    """A path with its mode and group. `acl`: an access list grants more than the mode shows."""

    path: Text
    mode: Mode
    group: str
    acl: bool

    @property
    def octal(self) -> str:
        return f"{self.mode:04o}"


@dataclass(frozen=True, slots=True)
class DockerAccess:
    """The daemon that runs: its sockets, the TCP addresses that it listens on, whether it asks their clients for a
    certificate, and the folder of its images and containers (None where there is none).
    """

    sockets: tuple[FileAccess, ...]
    tcp: tuple[str, ...]
    tls_verify: bool
    data: FileAccess | None


@dataclass(frozen=True, slots=True)
class ToolkitSettings:
    """NVIDIA's container toolkit, defaults where its file names no other value (docs.nvidia.com/datacenter/
    cloud-native/container-toolkit, config.toml): whether it leaves the device cgroup alone, and by what an unprivileged
    container may ask for GPUs.
    """

    no_cgroups: bool
    by_environment: bool
    by_mounts: bool


@dataclass(frozen=True, slots=True)
class ContainerPermissions:
    """`docker`: None where no daemon runs. `toolkit`: None where it is not installed."""

    docker: DockerAccess | None
    toolkit: ToolkitSettings | None
    devices: tuple[FileAccess, ...]


@dataclass(frozen=True, slots=True)
class _Document:
    docker: DockerAccess | None
    toolkit: str | None
    devices: tuple[FileAccess, ...]


def parse_container_permissions(text: str) -> ContainerPermissions:
    """Return the permissions. Raises `ParseError` for another document."""
    document = read_document(_Document, text, _WHERE)
    toolkit = _toolkit(document.toolkit) if document.toolkit is not None else None
    return ContainerPermissions(document.docker, toolkit, document.devices)


def _toolkit(text: str) -> ToolkitSettings:
    """Return the flags of the file (TOML). Commented ones are the defaults."""
    section, flags = "", {}
    for line in text.splitlines():
        if found := _SECTION.fullmatch(line):
            section = found["name"]
        elif found := _FLAG.fullmatch(line):
            flags[section, found["name"]] = found["value"] == "true"
    return ToolkitSettings(
        no_cgroups=flags.get((_CLI, "no-cgroups"), False),
        by_environment=flags.get(("", _BY_ENVIRONMENT), True),
        by_mounts=flags.get(("", _BY_MOUNTS), False),
    )

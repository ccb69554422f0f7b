"""The part of autoinstall that we write, narrower than subiquity's own schema: from its reference manual, and with every
key that is not named there refused (subiquity only warns of those, and does without).
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, populate_by_name=True)


class Webhook(Strict):
    type: Literal["webhook"]
    endpoint: str
    level: Literal["DEBUG", "INFO", "WARN", "ERROR"]


class MatchMac(Strict):
    macaddress: str = Field(pattern=r"^([0-9a-f]{2}:){5}[0-9a-f]{2}$")


class Ethernet(Strict):
    match: MatchMac
    dhcp4: bool
    dhcp_identifier: Literal["mac"] = Field(alias="dhcp-identifier")


class Network(Strict):
    version: Literal[2]
    ethernets: dict[str, Ethernet]


class Archive(Strict):
    arches: list[Literal["default", "amd64"]]
    uri: str


class Candidate(Strict):
    uri: str


class MirrorSelection(Strict):
    primary: list[Candidate]


class Apt(Strict):
    geoip: Literal[False]
    fallback: Literal["abort", "continue-anyway", "offline-install"]
    http_proxy: str | None = None
    primary: list[Archive] | None = None
    mirror_selection: MirrorSelection | None = Field(default=None, alias="mirror-selection")
    security: list[Archive] | None = None


class MatchPath(Strict):
    """One mapping: a list of them is understood since 24.08.1 only."""

    path: str


class Disk(Strict):
    type: Literal["disk"]
    id: str
    match: MatchPath
    ptable: Literal["gpt"]
    wipe: Literal["superblock-recursive"]
    preserve: Literal[False]


class Partition(Strict):
    type: Literal["partition"]
    id: str
    device: str
    number: int
    size: str | int
    wipe: Literal["superblock"]
    preserve: Literal[False]
    flag: Literal["boot"] | None = None
    grub_device: Literal[True] | None = None


class Format(Strict):
    type: Literal["format"]
    id: str
    volume: str
    fstype: Literal["fat32", "ext4"]
    preserve: Literal[False]


class Mount(Strict):
    type: Literal["mount"]
    id: str
    device: str
    path: str


class Swap(Strict):
    size: Literal[0]


class Grub(Strict):
    reorder_uefi: bool


class Storage(Strict):
    swap: Swap
    grub: Grub
    config: list[Disk | Partition | Format | Mount]


class Keyboard(Strict):
    layout: str


class Refresh(Strict):
    update: bool


class Source(Strict):
    search_drivers: bool


class Ssh(Strict):
    install_server: Literal[True] = Field(alias="install-server")
    allow_pw: Literal[False] = Field(alias="allow-pw")


class Autoinstall(Strict):
    version: Literal[1]
    locale: str
    keyboard: Keyboard
    timezone: str
    refresh_installer: Refresh = Field(alias="refresh-installer")
    source: Source
    reporting: dict[str, Webhook]
    network: Network
    apt: Apt
    storage: Storage
    ssh: Ssh
    user_data: dict[str, Any] = Field(alias="user-data")
    packages: list[str] | None = None
    updates: Literal["security", "all"]
    early_commands: list[str | list[str]] = Field(alias="early-commands")
    late_commands: list[str | list[str]] = Field(alias="late-commands")
    error_commands: list[str | list[str]] = Field(alias="error-commands")
    shutdown: Literal["reboot", "poweroff"]

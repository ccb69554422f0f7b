"""Bodies of MAAS's API 2.0 about machines, drives, events and errors. Seen on MAAS 3.4.10 and 3.5.13."""

from __future__ import annotations

import base64
import enum
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import takewhile
from typing import Any

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.hardware.disk_contract import KernelDrive
from clusterctl.fleet.node import Mac, Serial
from clusterctl.fleet.peer_text import visible_line
from clusterctl.fleet.secret import NeverPickled

MAX_TEXT, MAX_TITLE = 400, 80
"""Characters of foreign text that are kept."""
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")
_TITLE = re.compile(r"<(?:title|h1)[^<>]{0,200}>([^<]*)", re.IGNORECASE)
UNKNOWN = "Unknown"  # what MAAS writes where commissioning found nothing
EVENT_TIME = "%a, %d %b. %Y %H:%M:%S"
_WWN = re.compile(r".*/(?:wwn-|nvme-(?=eui\.|nvme\.|uuid\.))(?P<wwn>[^/]+)")


class MachineStatus(enum.IntEnum):
    """The integer `status` of a machine; the strings (`status_name`) are for display."""

    NEW = 0
    COMMISSIONING = 1
    FAILED_COMMISSIONING = 2
    MISSING = 3
    READY = 4
    RESERVED = 5
    DEPLOYED = 6
    RETIRED = 7
    BROKEN = 8
    DEPLOYING = 9
    ALLOCATED = 10
    FAILED_DEPLOYMENT = 11
    RELEASING = 12
    FAILED_RELEASING = 13
    DISK_ERASING = 14
    FAILED_DISK_ERASING = 15
    RESCUE_MODE = 16
    ENTERING_RESCUE_MODE = 17
    FAILED_ENTERING_RESCUE_MODE = 18
    EXITING_RESCUE_MODE = 19
    FAILED_EXITING_RESCUE_MODE = 20
    TESTING = 21
    FAILED_TESTING = 22


@dataclass(frozen=True, slots=True)
class MaasBlockDevice:
    """One physical drive. `id` is MAAS's own. `root`: the filesystem `/` shall lie on it. `laid_out`: MAAS will
    partition or format it. `wwn` is empty where its `id_path` is made of something else.
    """

    id: int
    name: str
    serial: Serial | None
    model: str
    size_bytes: int
    root: bool = False
    wwn: str = ""
    laid_out: bool = False

    @property
    def seen(self) -> KernelDrive:
        """The drive as commissioning saw it; its content was not read."""
        return KernelDrive(f"/dev/{self.name}", self.serial or "", self.wwn, self.model, self.size_bytes)

    def __str__(self) -> str:
        return f"{self.name} ({self.model or 'unknown model'}, serial {self.serial or 'unknown'})"


@dataclass(frozen=True, slots=True)
class MaasMachine:
    """One machine as MAAS sees it. `message` is its last event, not its state; `serial` None until commissioned;
    `boot_disk` is a drive's id. `unreadable`: why its description was not understood; only its id, name and cards are
    known then, and of these what MAAS gave: its status means nothing, and its id may be one of our own.
    """

    system_id: str
    hostname: str
    status: MachineStatus
    status_name: str
    message: str
    owner: str
    locked: bool
    power_type: str
    pool: str
    zone: str
    serial: Serial | None
    macs: tuple[Mac, ...]
    addresses: tuple[str, ...]
    boot_disk: int | None
    drives: tuple[MaasBlockDevice, ...]
    tags: tuple[str, ...] = ()
    unreadable: str = ""

    @property
    def root_drives(self) -> tuple[MaasBlockDevice, ...]:
        """The drives that `/` is laid on: one, where a storage layout is set."""
        return tuple(drive for drive in self.drives if drive.root)


@dataclass(frozen=True, slots=True)
class PowerParameters(NeverPickled):
    """MAAS's login at a BMC; empty where its power type has none. `password` is a secret."""

    address: str
    user: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class MaasEvent:
    """One entry of a machine's event log; the highest `id` is the newest. `at` has no zone: up to MAAS 3.5 it is the
    region's local time, so that only the distance of two events is known.
    """

    id: int
    node: str
    level: str
    type: str
    description: str
    at: datetime

    def __str__(self) -> str:
        return f"{self.type}: {self.description}" if self.description else self.type


def machine(body: Any) -> MaasMachine:
    """Return the machine of a JSON object. Raises `ParseError` naming the field that is missing or wrong."""
    try:
        return _machine(body)
    except (ArithmeticError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise ParseError(
            f"MAAS's description of a machine was not understood ({type(error).__name__}: {_quoted(error)})",
            where="MAAS",
            remedy="check that the address is MAAS's API 2.0; keep the evidence and report it",
        ) from error


def _quoted(error: Exception) -> str:
    return visible_line(str(error), MAX_TITLE)


def power_parameters(body: Any) -> PowerParameters:
    """Return what `GET /machines/<id>/?op=power_parameters` answers. No error repeats its content."""
    names = ("power_address", "power_user", "power_pass")
    found = [body.get(name, "") for name in names] if isinstance(body, Mapping) else []
    if not found or not all(isinstance(value, str) for value in found):
        raise ParseError("MAAS's power parameters of a machine were not understood", where="MAAS")
    return PowerParameters(*found)


def machines(body: Any) -> tuple[MaasMachine, ...]:
    """Return the list that `GET /machines/` answers. A machine that is not understood is `unreadable`, and hides no
    other. Raises `ParseError` where it is no list of JSON objects.
    """
    return tuple(_one_of_many(item) for item in _list(body, "machines"))


def _one_of_many(body: Any) -> MaasMachine:
    try:
        return machine(body)
    except ParseError as error:
        if not isinstance(body, Mapping):
            raise
        return _unreadable(body, error.message)


def _unreadable(body: Mapping[str, Any], reason: str) -> MaasMachine:
    cards = _cards(body.get("interface_set"))
    hostname = _text_or(body.get("hostname"), "?")
    named = {"hostname": hostname, "status_name": "unreadable", "power_type": "", "status": MachineStatus.MISSING}
    system_id = _text_or(body.get("system_id"), f"unknown-{cards[0]['mac_address'] if cards else hostname}")
    found = _machine({**named, "system_id": system_id, "interface_set": cards, "hardware_info": {}})
    return replace(found, unreadable=reason)


def _text_or(value: Any, instead: str) -> str:
    return value if isinstance(value, str) and value else instead


def _cards(listed: Any) -> list[Mapping[str, str]]:
    """Return the cards of a list that have a MAC address."""
    macs = [item.get("mac_address") for item in listed if isinstance(item, Mapping)] if isinstance(listed, list) else []
    return [{"mac_address": mac} for mac in macs if isinstance(mac, str)]


def block_devices(body: Any) -> tuple[MaasBlockDevice, ...]:
    """Return the physical drives of the list that `GET /nodes/<id>/blockdevices/` answers."""
    try:
        return tuple(_drive(item) for item in _list(body, "block devices") if item["type"] == "physical")
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ParseError(f"MAAS's list of drives was not understood ({error})", where="MAAS") from error


def events(body: Any) -> tuple[MaasEvent, ...]:
    """Return what `GET /events/?op=query` answers: newest first."""
    try:
        return tuple(
            MaasEvent(
                item["id"],
                item["node"],
                item["level"],
                plain(item["type"]),
                plain(item["description"]),
                datetime.strptime(item["created"], EVENT_TIME),  # noqa: DTZ007 — MAAS gives no zone
            )
            for item in _list(body["events"], "events")
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ParseError(f"MAAS's events were not understood ({error})", where="MAAS") from error


STARTS = {
    MachineStatus.COMMISSIONING: "Commissioning",
    MachineStatus.TESTING: "Testing",
    MachineStatus.DEPLOYING: "Deploying",
    MachineStatus.RELEASING: "Releasing",
}
"""The types of the events that MAAS writes when a state begins (provisioningserver/events.py; the first and third
recorded)."""
POWER_FAILURES = frozenset(
    {
        "Failed to power on node",
        "Failed to power off node",
        "Failed to power cycle node",
        "Failed to query node's BMC",
    }
)
"""Types of events, as STARTS."""


def failure(events: Sequence[MaasEvent], after: int = 0) -> tuple[MaasEvent, bool] | None:
    """Return why a machine's last attempt failed, and whether its BMC was the reason; None where no event names one.

    `events` are the machine's, newest first. Events count that are newer than the last start of a state, and than the
    event `after`. The newest error counts before the newest warning.
    """
    recent = list(takewhile(lambda event: event.id > after and event.type not in STARTS.values(), events))
    for level in ("ERROR", "WARNING"):
        found = next((event for event in recent if event.level == level), None)
        if found is not None:
            return found, any(event.type in POWER_FAILURES for event in recent)
    return None


def install_log(body: Any) -> str:
    """Return curtin's log out of what `GET /nodes/<id>/results/current-installation/?include_output=1` answers; its end
    where it is long.
    """
    try:
        outputs = [item["output"] for item in body["results"] if item["name"] == INSTALL_LOG]
        return b"".join(base64.b64decode(item)[-LOG_BYTES:] for item in outputs).decode(errors="replace")
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ParseError(
            f"MAAS's installation results were not understood ({type(error).__name__})", where="MAAS"
        ) from error


def tagged(body: Any) -> int:
    """Return on how many machines a tag was put: what `POST /tags/<name>/?op=update_nodes` answers."""
    if not isinstance(body, Mapping) or not isinstance(body.get("added"), int):
        raise ParseError("MAAS's answer to update_nodes holds no number", where="MAAS")
    return int(body["added"])


INSTALL_LOG = "/tmp/install.log"  # noqa: S108 — the name of a result
LOG_BYTES = 262_144


def user_name(body: Any) -> str:
    """Return the key's user: what `GET /users/?op=whoami` answers."""
    if not isinstance(body, Mapping) or not isinstance(body.get("username"), str):
        raise ParseError("MAAS's answer to whoami holds no username", where="MAAS")
    return str(body["username"])


def error_fields(content_type: str, text: str) -> Mapping[str, tuple[str, ...]]:
    """Return the fields that a 400 names as wrong; empty for the other shape, one plain sentence."""
    if not content_type.startswith("application/json"):
        return {}
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(body, dict):
        return {}
    return {str(field): tuple(str(item) for item in _as_list(messages)) for field, messages in body.items()}


def error_text(content_type: str, text: str) -> str:
    """Return either error shape as one line: `architecture: This field is required.; mac_addresses: …`.

    Of a page of HTML, return its title.
    """
    if text.strip() and is_page(content_type, text):
        title = _TITLE.search(text)
        return f"a web page titled {plain(title[1], MAX_TITLE)!r}" if title else "a web page"
    fields = error_fields(content_type, text)
    if not fields:
        return plain(text)
    return plain(
        "; ".join(
            (" ".join(messages) if field == "__all__" else f"{field}: {' '.join(messages)}")
            for field, messages in fields.items()
        )
    )


def is_page(content_type: str, text: str) -> bool:
    """Return whether an answer is a page of HTML, as web servers write it; MAAS's API writes plain text or JSON."""
    return content_type.startswith("text/html") or text.lstrip()[:15].lower().startswith(("<!doctype", "<html"))


def plain(text: str, limit: int = MAX_TEXT) -> str:
    """Return foreign text as one line of at most `limit`: without HTML tags and colours, and with nothing hidden."""
    line = _TAG.sub(" ", _ESCAPE.sub(" ", text[: 4 * limit]))
    return visible_line(line, limit)


def _machine(body: Mapping[str, Any]) -> MaasMachine:
    boot_disk = body.get("boot_disk")
    return MaasMachine(
        system_id=_required(body, "system_id"),
        hostname=_required(body, "hostname"),
        status=MachineStatus(body["status"]),
        status_name=str(body["status_name"]),
        message=plain(body.get("status_message") or ""),
        owner=body.get("owner") or "",
        locked=bool(body.get("locked", False)),
        power_type=str(body["power_type"]),
        pool=_name(body.get("pool")),
        zone=_name(body.get("zone")),
        serial=_known(body.get("hardware_info", {}).get("system_serial")),
        macs=tuple(Mac(item["mac_address"].lower()) for item in body.get("interface_set", ()) if item["mac_address"]),
        addresses=tuple(str(address) for address in body.get("ip_addresses", ())),
        boot_disk=int(boot_disk["id"]) if boot_disk else None,
        drives=tuple(_drive(item) for item in body.get("physicalblockdevice_set", ())),
        tags=tuple(str(name) for name in body.get("tag_names", ())),
    )


def _required(body: Mapping[str, Any], name: str) -> str:
    value = body[name]
    if not isinstance(value, str) or not value:
        raise TypeError(f"{name} is no text")
    return value


def _drive(body: Mapping[str, Any]) -> MaasBlockDevice:
    filesystems = [body["filesystem"], *(partition["filesystem"] for partition in body["partitions"])]
    return MaasBlockDevice(
        id=int(body["id"]),
        name=str(body["name"]),
        serial=_known(body["serial"]),
        model=body["model"] or "",
        size_bytes=int(body["size"]),
        root=any(filesystem and filesystem["mount_point"] == "/" for filesystem in filesystems),
        wwn=_wwn(body.get("id_path")),
        laid_out=any(filesystems) or bool(body["partitions"] or body.get("partition_table_type")),
    )


def _wwn(id_path: Any) -> str:
    """Return the WWN. MAAS keeps the drive's name in `/dev/disk/by-id`, which udev makes of the WWN if there is one."""
    found = _WWN.fullmatch(str(id_path or ""))
    return found["wwn"] if found else ""


def _known(value: Any) -> Serial | None:
    text = str(value or "").strip()
    return Serial(text) if text and text != UNKNOWN else None


def _name(body: Any) -> str:
    return str(body["name"]) if body else ""


def _list(body: Any, what: str) -> Sequence[Any]:
    if not isinstance(body, list):
        raise ParseError(f"MAAS's list of {what} is no list", where="MAAS")
    return body


def _as_list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else [value]

"""What the tests of replay share: a recording of our own making, on disk."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = "/redfish/v1"
SYSTEM = f"{ROOT}/Systems/S1"
LOG = f"{ROOT}/Managers/M1/LogServices/SEL"


def link(path: str) -> dict[str, str]:
    return {"@odata.id": path}


def small() -> dict[str, dict[str, Any]]:
    """One machine with two MACs that follow each other, a GUID made of the first, a part's serial in a path."""
    return {**_service(), **_system(), **_event_log()}


def _service() -> dict[str, dict[str, Any]]:
    return {
        ROOT: {
            **link(ROOT),
            "Vendor": "Unnamed",
            "Systems": link(f"{ROOT}/Systems"),
            "SessionService": link(f"{ROOT}/SessionService"),
            "Links": {"Sessions": link(f"{ROOT}/SessionService/Sessions")},
            "ProtocolFeaturesSupported": {"ExpandQuery": {"NoLinks": True}},
        },
        f"{ROOT}/SessionService": {"SessionTimeout": 60, "Sessions": link(f"{ROOT}/SessionService/Sessions")},
        f"{ROOT}/SessionService/Sessions": {
            "Members": [link(f"{ROOT}/SessionService/Sessions/old")],
            "Name": "Sessions",
        },
        f"{ROOT}/SessionService/Sessions/old": {"UserName": "operator"},
        f"{ROOT}/Systems": {"Members": [link(SYSTEM)], "Members@odata.count": 1},
    }


def _system() -> dict[str, dict[str, Any]]:
    reset = {
        "target": f"{SYSTEM}/Actions/ComputerSystem.Reset",
        "ResetType@Redfish.AllowableValues": ["On", "ForceOff"],
    }
    return {
        SYSTEM: {
            "@odata.id": SYSTEM,
            "@odata.etag": '"1"',
            "SerialNumber": "SN00420017",
            "Manufacturer": "Unnamed",
            "PowerState": "On",
            "Boot": {"BootSourceOverrideEnabled": "Disabled", "BootSourceOverrideTarget": "None"},
            "HostName": "host-SN00420017",
            "UUID": "00000000-0000-0000-0000-0269AA000001",
            "Actions": {"#ComputerSystem.Reset": reset},
            "Links": {"ManagedBy": [link(f"{ROOT}/Managers/M1")], "Chassis": []},
            "Ports": [
                {"MACAddress": "02:69:AA:00:00:01", "NodeGUID": "0269:aa03:0000:0001"},
                {"MACAddress": "02:69:aa:00:00:02"},
            ],
            "Drive": link(f"{SYSTEM}/Drives/DRV0099"),
        },
        f"{SYSTEM}/Drives/DRV0099": {**link(f"{SYSTEM}/Drives/DRV0099"), "SerialNumber": "DRV0099"},
    }


def _event_log() -> dict[str, dict[str, Any]]:
    entries = f"{LOG}/Entries"
    clear = {"#LogService.ClearLog": {"target": f"{LOG}/Actions/LogService.ClearLog"}}
    return {
        f"{ROOT}/Managers/M1": {**link(f"{ROOT}/Managers/M1"), "LogServices": link(f"{ROOT}/Managers/M1/LogServices")},
        f"{ROOT}/Managers/M1/LogServices": {"Members": [link(LOG)]},
        LOG: {**link(LOG), "Entries": link(entries), "Actions": clear},
        entries: {
            **link(entries),
            "Members": [
                {"Created": "2026-01-01T00:00:00Z", "Severity": "OK", "Message": "It was recorded.", "Id": "1"}
            ],
            "Members@odata.count": 1,
            "Members@odata.nextLink": f"{entries}?$skip=1",
        },
        f"{entries}?$skip=1": {"Members": [], "Members@odata.count": 1},
    }


def write(tree: Mapping[str, Any], folder: Path) -> Path:
    """As the Mockup Creator does: a folder for each resource."""
    for path, body in tree.items():
        place = folder / path.lstrip("/")
        place.mkdir(parents=True, exist_ok=True)
        (place / "index.json").write_text(body if isinstance(body, str) else json.dumps(body), encoding="utf-8")
    return folder


def pack(folder: Path, archive: Path) -> Path:
    with tarfile.open(archive, "w:xz") as tar:
        tar.add(folder, arcname="recorded")
    return archive

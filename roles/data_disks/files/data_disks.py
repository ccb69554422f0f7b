"""Finds the disks of this host that a pool or an array is made of, and what has to be done to them. Only reads.

Run as `python3 - '{"kind": "zfs_member", "name": "data", "serials": [], "overwrite": []}'`; standard library and
Python 3.9 only. `kind` is the signature of a member, as wipefs(8) calls it (`zfs_member`, `linux_raid_member`), `name`
the label of the pool or array. Without `serials` every whole solid-state disk is meant that the operating system is not
on. One JSON document on standard output:

    action   `accept` (it runs), `import` (it is on the disks), `create`, or `refuse`
    refused  why, a sentence each, with the serial number of the disk
    disks    path, serial, id (below /dev/disk/by-id) and size in bytes of each disk that is meant
    wipe     devices whose signatures have to go first: those of disks that stand in `overwrite`
    size     bytes that the disks have together
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

SYSTEM = {"/", "/usr", "/var", "/boot", "/boot/efi", "/efi"}
BY_ID = "/dev/disk/by-id"
LSBLK = ["lsblk", "--json", "--bytes", "--output", "NAME,PATH,TYPE,SIZE,ROTA,RO,RM,SERIAL,MOUNTPOINTS"]
WIPEFS = ["wipefs", "--no-act", "--json", "--output", "DEVICE,TYPE,LABEL,UUID"]

Device = Mapping[str, Any]
Request = Mapping[str, Any]


def tree(device: Device) -> Iterator[Device]:
    """The device and all that is made of it."""
    yield device
    for child in device.get("children", ()):
        yield from tree(child)


def mounts(device: Device) -> list[str]:
    return [place for one in tree(device) for place in one.get("mountpoints") or () if place]


def is_disk(device: Device) -> bool:
    return device["type"] == "disk" and int(device["size"] or 0) > 0 and bool((device["serial"] or "").strip())


def serial_of(device: Device) -> str:
    return str(device["serial"]).strip()


def holds_system(device: Device) -> bool:
    return bool(SYSTEM & set(mounts(device)))


def by_rule(devices: Sequence[Device]) -> list[Device]:
    """Return every whole, fixed solid-state disk that has a serial number and no part of the system."""
    fixed = (one for one in devices if is_disk(one) and not one["rota"] and not one["rm"] and not one["ro"])
    return [one for one in fixed if not holds_system(one)]


def by_serial(devices: Sequence[Device], serials: Sequence[str], refused: list[str], *, runs: bool) -> list[Device]:
    """The disks of those serials. One that is not here is refused, unless the pool runs without it."""
    found = []
    for serial in serials:
        disks = [one for one in devices if is_disk(one) and serial_of(one) == serial]
        if not disks and not runs:
            refused.append(f"{serial}: this host has no disk with this serial number")
        systems = [one["path"] for one in disks if holds_system(one)]
        refused += [f"{serial}: {path} holds the operating system" for path in systems]
        found += disks
    return found


def unique(disks: list[Device], refused: list[str]) -> list[Device]:
    """Refuse a serial number that two disks report: it proves nothing."""
    for serial in sorted({serial_of(one) for one in disks}):
        same = [one["path"] for one in disks if serial_of(one) == serial]
        if len(same) > 1:
            refused.append(f"{serial}: {' and '.join(same)} report this serial number, which proves nothing")
    return disks


def stable_name(disk: Device, links: Mapping[str, str]) -> str:
    """The shortest link by model and serial number: udev makes others by namespace (`_1`), WWN and NQN."""
    names = sorted((name for name, path in links.items() if path == disk["path"]), key=lambda name: (len(name), name))
    serial = serial_of(disk).replace(" ", "_")
    return next((name for name in names if name.endswith(serial)), next(iter(names), ""))


def contents(disk: Device, signatures: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """What is on the disk and on its partitions: (kind, label) of each signature, partition tables among them.

    wipefs(8) was given paths and prints names.
    """
    names = {os.path.basename(one["path"]) for one in tree(disk)}
    rows = [row for row in signatures if os.path.basename(row["device"]) in names]
    return sorted({(row["type"], (row["label"] or "").rpartition(":")[2]) for row in rows})


def described(disk: Device, found: Sequence[tuple[str, str]]) -> str:
    """Return what the disk holds as text for the operator; empty where it holds nothing."""
    content = [f"{kind} {label}".strip() for kind, label in found]
    content += [f"mounted on {place}" for place in mounts(disk)]
    content += [f"part of {one['path']}" for one in tree(disk) if one["type"] not in ("disk", "part")]
    return ", ".join(content)


def judge_new(
    disks: Sequence[Device], found: Mapping[str, Sequence[tuple[str, str]]], request: Request, refused: list[str]
) -> list[str]:
    """Devices to wipe; whatever holds something and was not named is refused, and whatever is in use in any case."""
    wipe: list[str] = []
    for disk in disks:
        serial, held = serial_of(disk), described(disk, found[serial_of(disk)])
        busy = bool(mounts(disk)) or any(one["type"] not in ("disk", "part") for one in tree(disk))
        if busy:
            refused.append(f"{serial}: {disk['path']} is in use ({held})")
        elif held and serial not in request["overwrite"]:
            refused.append(
                f"{serial}: {disk['path']} holds data ({held}); to lose it, name the serial number in overwrite"
            )
        elif held:
            wipe += [one["path"] for one in reversed(list(tree(disk)))]
    return wipe


def judge_old(disks: Sequence[Device], own: set[str], request: Request, refused: list[str]) -> None:
    """A pool that is there must be made of what is meant, no disk more or less."""
    missing = [one for one in disks if serial_of(one) not in own]
    refused += [
        f"{serial_of(one)}: {one['path']} is meant, and not in {request['name']}, which exists" for one in missing
    ]


def strangers(
    devices: Sequence[Device], disks: Sequence[Device], own: set[str], request: Request, refused: list[str]
) -> None:
    """Disks that are in the pool and not meant."""
    beyond = own - {serial_of(one) for one in disks}
    found = [one for one in devices if is_disk(one) and serial_of(one) in beyond]
    refused += [f"{serial_of(one)}: {one['path']} is in {request['name']}, and not meant" for one in found]


def decide(
    request: Request,
    devices: Sequence[Device],
    signatures: Sequence[Mapping[str, Any]],
    links: Mapping[str, str],
    members: Sequence[str] | None,
) -> dict[str, Any]:
    """The document that is printed. `members` are the paths of a running pool's devices, None where none runs."""
    refused: list[str] = []
    mine = (request["kind"], request["name"])
    found = {serial_of(one): contents(one, signatures) for one in devices if is_disk(one)}
    if members is None:
        own = {serial for serial, held in found.items() if mine in held}
    else:
        own = {serial_of(one) for one in devices if is_disk(one) and set(members) & {at["path"] for at in tree(one)}}
    if request["serials"]:
        disks = by_serial(devices, request["serials"], refused, runs=bool(own))
    else:
        if not any(holds_system(one) for one in devices):
            refused.append("no disk is seen to hold the operating system: name the data disks by serial number")
        disks = by_rule(devices)
    disks = unique(disks, refused)
    wipe = []
    if own:
        judge_old(disks, own, request, refused)
        strangers(devices, disks, own, request, refused)
    else:
        wipe = judge_new(disks, found, request, refused)
    action = "accept" if members is not None else "import" if own else "create"
    if not disks and not refused:
        refused.append("this host has no solid-state disk apart from those of the operating system")
    chosen = [
        {"path": one["path"], "serial": serial_of(one), "id": stable_name(one, links), "size": int(one["size"])}
        for one in sorted(disks, key=serial_of)
    ]
    refused += [f"{one['serial']}: {one['path']} has no name in {BY_ID}" for one in chosen if not one["id"]]
    return {
        "action": "refuse" if refused else action,
        "refused": refused,
        "disks": chosen,
        "wipe": wipe,
        "size": sum(one["size"] for one in chosen),
    }


def run(argv: Sequence[str]) -> str:
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout


def read_links() -> dict[str, str]:
    if not os.path.isdir(BY_ID):
        return {}
    return {name: os.path.realpath(os.path.join(BY_ID, name)) for name in os.listdir(BY_ID)}


def read_signatures(devices: Sequence[Device]) -> Sequence[Mapping[str, Any]]:
    paths = [one["path"] for disk in devices if is_disk(disk) for one in tree(disk)]
    return json.loads(run([*WIPEFS, *paths]) or "{}").get("signatures", []) if paths else []


def read_members(request: Request) -> list[str] | None:
    """Device paths of the pool or array where it runs."""
    if request["kind"] != "zfs_member":
        return None
    try:
        answer = subprocess.run(
            ["zpool", "list", "-vHPL", request["name"]],
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            universal_newlines=True,
        )
    except FileNotFoundError:
        return None
    if answer.returncode != 0:
        return None
    words = (line.split() for line in answer.stdout.splitlines())
    return [line[0] for line in words if line and line[0].startswith("/dev/")]


def main(request: Request) -> None:
    devices = json.loads(run(LSBLK))["blockdevices"]
    document = decide(request, devices, read_signatures(devices), read_links(), read_members(request))
    print(json.dumps(document))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))

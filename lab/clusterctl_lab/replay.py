"""`clusterctl lab replay`: serves recorded BMCs to an operator, until Ctrl-C."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from clusterctl.fleet.csv_text import csv_text
from clusterctl.fleet.errors import UsageError
from clusterctl_lab.certificates import LabCa
from clusterctl_lab.emulators.redfish.replay import (
    Copy,
    ReplaySettings,
    dangling,
    find_landmarks,
    load_recording,
    make_copies,
    serve_replay,
    vendor_of,
)

Progress = Callable[[str], None]
_UNITS = 40
"""Machines in each of the racks that the list puts them into; where they stood was not recorded."""
CA, PASSWORD, BMCS = "lab-ca.pem", "bmc-password", "bmcs.csv"


@dataclass(frozen=True, slots=True)
class ReplayOrder:
    """`folder`, which must not exist yet, gets what a site needs to reach the BMCs; it goes when the replay ends.

    copies  how many machines are made of each recording; 1: the recorded one
    """

    trees: Sequence[Path]
    folder: Path
    settings: ReplaySettings
    copies: int = 1
    seed: int = 0


def replay(order: ReplayOrder, progress: Progress) -> None:
    """Serve until interrupted. Raises `UsageError` for what is no recording, before anything is made."""
    machines = [machine for tree in order.trees for machine in _machines(tree, order, progress)]
    if order.folder.exists():
        raise UsageError("is there already", where=str(order.folder), remedy="name a new folder: --out DIR")
    try:
        asyncio.run(_serve(order, machines, progress))
    finally:
        if order.folder.exists():
            shutil.rmtree(order.folder)


def _machines(tree: Path, order: ReplayOrder, progress: Progress) -> Sequence[Copy]:
    """The copies of one recording, and a word on what it lacks."""
    recording = load_recording(tree)
    copies = make_copies(recording, order.copies, order.seed)
    marks = find_landmarks(copies[0])
    vendor = vendor_of(marks.maker)
    words = vendor.value if vendor else "the DMTF"
    progress(f"{recording.name}: {len(recording.resources)} resources; errors are worded as {words} has them")
    for gap in marks.gaps:
        progress(f"{recording.name}: {gap}")
    missing = dangling(copies[0])
    if missing:
        progress(f"{recording.name}: {missing} links lead to resources that were not recorded: 404")
    return copies


async def _serve(order: ReplayOrder, machines: Sequence[Copy], progress: Progress) -> None:
    settings = order.settings
    order.folder.mkdir(mode=0o700, parents=True)
    addresses = [settings.address(number) for number in range(len(machines))]
    ca = LabCa(order.folder / "tls", "replay")
    tls = ca.certificate_for(*addresses)
    _write_site(order, ca, list(zip(addresses, machines, strict=True)))
    served = await serve_replay(machines, settings, lambda _: tls)
    try:
        first, last = addresses[0], addresses[-1]
        progress(f"{len(machines)} BMCs at {first}{f' to {last}' if last != first else ''}, port {settings.port}")
        progress(f"user {settings.user}; password, authority and a list of them in {order.folder}; Ctrl-C ends it")
        await _until_interrupted()
    finally:
        await served.close()


async def _until_interrupted() -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await stop.wait()


def _write_site(order: ReplayOrder, ca: LabCa, machines: Sequence[tuple[str, Copy]]) -> None:
    """The authority, the password (mode 0600) and a list of BMCs as `bmcs.csv` of a site has it."""
    shutil.copyfile(ca.ca_file, order.folder / CA)
    descriptor = os.open(order.folder / PASSWORD, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
        handle.write(f"{order.settings.password}\n")
    sheet = csv_text((("name", "bmc_address", "serial", "rack", "unit"), *_rows(machines)))
    (order.folder / BMCS).write_text(sheet, encoding="utf-8")


def _rows(machines: Sequence[tuple[str, Copy]]) -> Iterator[tuple[object, ...]]:
    for number, (address, copy) in enumerate(machines, start=1):
        rack, unit = divmod(number - 1, _UNITS)
        marks = find_landmarks(copy)
        system = copy.get(marks.system, {})
        serial = system.get("SKU" if marks.maker.startswith("dell") else "SerialNumber")
        yield f"node{number:03d}", address, serial or "", f"R{rack + 1:02d}", unit + 1

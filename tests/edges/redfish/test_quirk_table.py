"""docs/reference/bmc-quirks.md: every vendor of the lab × every quirk × what the client does, from a run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusterctl.fleet.bmc.logs import UNREAD
from clusterctl.fleet.node import Inventory, Serial
from clusterctl_lab.bmc_quirk import BmcQuirk
from clusterctl_lab.emulators.redfish.quirks import QUIRKS
from clusterctl_lab.machine import Machine
from clusterctl_lab.vendor import Vendor
from tests.edges.redfish.quirk_kit import OPERATIONS, Site, failure, machine, served, whole
from tests.paths import ROOT

PAGE = ROOT / "docs/reference/bmc-quirks.md"
MANNERS = Path(__file__).parent / "data" / "manners.yml"
PREFACE = """# BMC quirks, and what the client makes of them

Written by `make quirk-table`: each operation of the client, against each vendor's BMC in the lab, with each quirk.
`lab inject bmc-quirks NODE:QUIRK` gives them to a machine of a rehearsal; `clusterctl lab faults` prints where they were observed.

✓ done, and seen to be so. ? read in part: what could not be read is inconclusive. ✗ a typed error, which is named below.
Nothing else happened: no traceback, no hang, no part silently lost.
"""
FACTS = """
### What BMCs do, where it was seen, and what `discover` makes of it

Each row is played by a server in `tests/edges/redfish/test_manners.py`; its data is `tests/edges/redfish/data/manners.yml`.
The machine behind the BMC is whole: what is not `pass` is a property of the BMC.

| the BMC | seen at | findings |
|---|---|---|
"""
OTHERS = """
Facts of the same kind, each with a test of its own:

| the BMC | seen at | what is done |
|---|---|---|
| takes all power by an OEM action at a chassis that no System names, with its reset types in an ActionInfo | NVIDIA bmcweb, `#NvidiaChassis.AuxPowerReset` (`AuxPowerCycle`, `AuxPowerCycleForce`) | `power ac-cycle` uses it |
| takes all power by `#LenovoComputerSystem.SystemReset` with `ACPowerCycle` | Lenovo XCC (libredfish) | `power ac-cycle` uses it |
| has no power supplies: a chassis or a power shelf has them | check_redfish#79 (Lenovo HX3720, HPE BL460); devicetype-library#4508 (GB300 tray) | `psus: none` or `shelf` in the SKU |
| lists power supplies without a Status | check_redfish#53 (Gigabyte H262) | `unreported: [psus]` in the SKU |
| lists the members of a mirror, and its volume without serial and WWN | iDRAC-Redfish-Scripting#330; dellemc-openmanage-ansible-modules#635 (BOSS-N1) | `root_disk: {chosen_by: host}` |
| keeps a POST hang in its log after the repair | IPMI 2.0 table 42-3, 0Fh and 1Fh | a later boot makes it a warning |
| reports the end of POST with its time | iDRAC9 of an R750 (`BootProgress.LastState` OSRunning, `LastStateTime`) | it disproves an earlier POST hang |
| is a DPU's | Vendor Nvidia, Product `BlueField-3 DPU` or `Nvidia-BMCMezz`, System `Bluefield` (nv-redfish) | the sweep gives it no login and no node |
| is an NVLink switch tray's | chassis `MGX_NVSwitch_0`; Product `P3809`, which GH200 has too (libredfish) | the sweep makes it no node |
| is a power shelf's | Vendor `LITE-ON…`, whose root names no Systems; chassis `powershelf` (nv-redfish, libredfish) | the sweep makes it no node |
| is an enclosure's or a switch blade's: its manager is of the type EnclosureManager, and no Systems are named | DSP0268 Manager.ManagerType; HPE Cray CMM and Slingshot switch blade (csm-redfish-interface-emulator) | the sweep calls it `enclosure controller` and makes it no node; `discover` names the remedy |
"""
DONE, IN_PART, REPORTED = "✓", "?", "✗"


def facts() -> str:
    """The manners of BMCs, by their data."""
    rows = yaml.safe_load(MANNERS.read_text())
    lines = (
        f"| {row['name']} | {row['source']} | "
        f"{', '.join(f'`{check}` {verdict.split()[0]}' for check, verdict in row['expect'].items())} |\n"
        for row in rows
    )
    return FACTS + "".join(lines) + OTHERS


def name_of(quirk: BmcQuirk | None) -> str:
    return quirk.value if quirk else "(none)"


def outcomes(site: Site, quirk: BmcQuirk | None) -> Iterator[tuple[str, str, str]]:
    """Operation, mark, and the words of the error. Where no login works, all operations fail alike."""
    there = site.world.machines[name_of(quirk)]
    got: list[Inventory] = []
    entered = failure(lambda: site.open(there.name).__enter__().__exit__(None, None, None))
    if entered is not None:
        yield from ((name, REPORTED, entered.message) for name in OPERATIONS)
        return
    with site.open(there.name) as bmc:
        for name, operation in OPERATIONS.items():
            error = failure(lambda operation=operation: got.append(operation(bmc, Serial(there.serial)).value))
            if error is not None:
                assert error.where, (name, error)
                yield name, REPORTED, error.message
            else:
                yield name, IN_PART if in_part(name, got[-1], there) else DONE, ""


def in_part(operation: str, found: Any, there: Machine) -> bool:
    """Whether something that the BMC lists could not be read."""
    if operation == "event log":
        return any(entry.message_id == UNREAD for entry in found)
    return operation == "inventory" and bool(found.unread or not whole(found, there))


def all_outcomes(site: Site) -> dict[str, dict[str, tuple[str, str]]]:
    """Mark and words by quirk and operation; the machines are independent of each other."""
    cast = [None, *QUIRKS]
    with ThreadPoolExecutor(max_workers=8) as pool:
        reported = pool.map(lambda quirk: {name: (mark, words) for name, mark, words in outcomes(site, quirk)}, cast)
        return {name_of(quirk): marks for quirk, marks in zip(cast, reported, strict=True)}


def table(vendor: Vendor, found: dict[str, dict[str, tuple[str, str]]]) -> str:
    head = f"\n## {vendor.value}\n\n| quirk | {' | '.join(OPERATIONS)} |\n|---{'|---' * len(OPERATIONS)}|\n"
    rows = "".join(
        f"| `{name}` | {' | '.join(marks[operation][0] for operation in OPERATIONS)} |\n"
        for name, marks in found.items()
    )
    message = {(name, operation): words for name, marks in found.items() for operation, (_, words) in marks.items()}
    errors = "".join(f"- `{name}`, {', '.join(where)}: {words}\n" for (name, words), where in grouped(message).items())
    return head + rows + (f"\n{errors}" if errors else "")


def grouped(message: dict[tuple[str, str], str]) -> dict[tuple[str, str], list[str]]:
    """BmcQuirk and words → the operations that ended with them."""
    found: dict[tuple[str, str], list[str]] = {}
    for (name, operation), words in message.items():
        if words:
            found.setdefault((name, words), []).append(operation)
    return found


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_the_table(tmp_path: Path) -> None:
    """With every vendor a well-quirky BMC is fully served; the page is written where CLUSTERCTL_WRITE_PAGES is
    set.
    """
    page = PREFACE + facts()
    for vendor in Vendor:
        cast = enumerate([None, *BmcQuirk], start=1)
        machines = {
            name_of(quirk): machine(number, name_of(quirk), vendor, *([quirk] if quirk else []))
            for number, quirk in cast
        }
        folder = tmp_path / vendor.value
        folder.mkdir()
        with served(machines, folder) as site:
            found = all_outcomes(site)
        assert {mark for mark, _ in found["(none)"].values()} == {DONE}, found["(none)"]
        page += table(vendor, found)
    if os.environ.get("CLUSTERCTL_WRITE_PAGES"):
        PAGE.write_text(page)


@pytest.mark.skipif(not PAGE.exists(), reason="an installed wheel has no docs")
def test_the_page_has_every_vendor_and_quirk() -> None:
    """A new one of either is noticed here; `make quirk-table` writes the page."""
    preface, *sections = PAGE.read_text().split("\n## ")
    assert preface == PREFACE + facts()
    assert [section.split("\n")[0] for section in sections] == [vendor.value for vendor in Vendor]
    for section in sections:
        rows = [line.split("`")[1] for line in section.splitlines() if line.startswith("| `")]
        assert rows == ["(none)", *(quirk.value for quirk in BmcQuirk)]

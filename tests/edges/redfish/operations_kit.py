"""Each operation of the client on BMCs of every make that is at hand, as one word or sentence: what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path

from clusterctl.edges.redfish import KnownBmcs, RedfishBmcs
from clusterctl.edges.redfish.sweep import CandidateProbe
from clusterctl.edges.redfish.write import NotDoneError
from clusterctl.fleet.bmc.boot import BootOnce, BootSource
from clusterctl.fleet.bmc.observation import SweepOutcome
from clusterctl.fleet.errors import ClusterctlError, OutcomeUnknownError, ParseError
from clusterctl.fleet.node import Inventory, Serial
from clusterctl.ports import BmcAddress, BmcClient, Deadline, Power
from clusterctl_lab.vendor import Vendor
from tests.edges.redfish import quirk_kit
from tests.edges.redfish.conftest import QUICK, FixedClock
from tests.edges.redfish.test_replay_of_lab import RECORDED, replayed
from tests.edges.sweep.kit import QUICK as VISIT_TIMING
from tests.edges.sweep.kit import OneLogin

SECONDS = 60.0
PACE = replace(QUICK, switch_off=30.0)
"""A BMC that loses its power is waited for on a busy machine too; nothing else is seen late."""
MODELS = {"dell": "R750", "hpe": "DL385", "supermicro": "821GE"}
"""The recorded machines."""


@dataclass(frozen=True)
class Target:
    """One BMC as the page names it, and whose machine it is in."""

    name: str
    address: BmcAddress
    serial: Serial
    image: str = "https://192.0.2.1/some.iso"


def soon() -> Deadline:
    return Deadline.after(SECONDS)


Operation = Callable[[BmcClient, Target], object]
"""A text is what is to be reported in addition to the success."""


def _identity(bmc: BmcClient, target: Target) -> None:
    found = bmc.inventory(soon()).value.serial
    assert found == target.serial, found


def _inventory(bmc: BmcClient, _: Target) -> str:
    found = bmc.inventory(soon()).value
    parts = [field.name for field in fields(Inventory) if field.name in _PARTS]
    reported = {"not reported": None, "none listed": ()}
    lists = {words: [name for name in parts if getattr(found, name) == value] for words, value in reported.items()}
    return "; ".join(f"{words}: {', '.join(names)}" for words, names in lists.items() if names)


_PARTS = ("gpus", "hcas", "nics", "drives", "psus", "temperatures", "cpus", "dimms", "fans", "firmware")


def _log(bmc: BmcClient, _: Target) -> str:
    return "" if bmc.event_log(soon()).value else "no entries"


def _switched(*powers: Power) -> Operation:
    """There from the other state: what is so already proves nothing."""

    def operation(bmc: BmcClient, target: Target) -> None:
        for power in powers:
            bmc.set_power(power, target.serial, soon())

    return operation


def _boot(source: BootSource) -> Operation:
    def operation(bmc: BmcClient, target: Target) -> None:
        uri = target.image if source is BootSource.UEFI_HTTP else ""
        bmc.boot_once(BootOnce(source, uri), target.serial, soon())

    return operation


def _eject(bmc: BmcClient, target: Target) -> None:
    """Of what is in: where nothing can be put in, nothing can be taken out."""
    bmc.insert_media(target.image, target.serial, soon())
    bmc.eject_media(target.image, target.serial, soon())


def _status(bmc: BmcClient, _: Target) -> str:
    return "not reported" if bmc.power(soon()).value is Power.UNKNOWN else ""


OPERATIONS: Mapping[str, Operation] = {
    "identity": _identity,
    "inventory": _inventory,
    "power: status": _status,
    "power: on": _switched(Power.OFF, Power.ON),
    "power: cycle": lambda bmc, target: bmc.cycle_power(target.serial, soon()),
    "boot once: PXE": _boot(BootSource.PXE),
    "boot once: UEFI HTTP": _boot(BootSource.UEFI_HTTP),
    "boot once: disk": _boot(BootSource.DISK),
    "boot once: CD": _boot(BootSource.CD),
    "insert media": lambda bmc, target: bmc.insert_media(target.image, target.serial, soon()),
    "eject media": _eject,
    "power: AC cycle": lambda bmc, target: bmc.ac_cycle(target.serial, soon()),
    "power: off": _switched(Power.ON, Power.OFF),
    "event log": _log,
    "clear event log": lambda bmc, _: bmc.clear_log(bmc.archive_log(soon()).value, soon()),
}
SWEEP = "sweep"


def cells(target: Target, folder: Path) -> dict[str, str]:
    """Operation → what came of it; each in a session of its own, in this order."""
    bmcs = RedfishBmcs(FixedClock(), PACE)
    found = {name: _cell(bmcs, target, operation) for name, operation in OPERATIONS.items()}
    found[SWEEP] = _swept(target, folder)
    return {name: _lasting(cell, target) for name, cell in found.items()}


def _lasting(cell: str, target: Target) -> str:
    """Without the ports of this run."""
    here = f"{target.address.host}:{target.address.port}"
    return cell.replace(here, "").replace(target.image, "IMAGE")


def _cell(bmcs: RedfishBmcs, target: Target, operation: Operation) -> str:
    try:
        with bmcs.open(target.address, soon()) as bmc:
            more = operation(bmc, target)
    except (NotDoneError, OutcomeUnknownError) as error:
        return f"error: {error.message}"
    except ParseError as error:
        return f"error: {error.message}, {error.where}"
    except ClusterctlError as error:  # found out by looking: nothing was asked of the BMC
        return f"not offered: {error.message}"
    return f"done; {more}" if isinstance(more, str) and more else "done"


def _swept(target: Target, folder: Path) -> str:
    door = target.address

    def at(host: str) -> BmcAddress:
        return BmcAddress(host, "", "", door.port, ca_file=door.ca_file)

    seen = CandidateProbe(at, OneLogin(door.password), KnownBmcs(folder / "pins"), timing=VISIT_TIMING)(
        door.host, soon()
    )
    if seen.outcome is not SweepOutcome.IDENTIFIED:
        return f"{seen.outcome.value}: {seen.cause}"
    assert seen.serial == target.serial, seen.serial
    return "done"


@contextmanager
def emulated(folder: Path) -> Iterator[list[Target]]:
    """The lab's BMC of each vendor."""
    vendors = enumerate(Vendor, 1)
    machines = {vendor.value: quirk_kit.machine(number, vendor.value, vendor) for number, vendor in vendors}
    with quirk_kit.served(machines, folder) as site:
        yield [Target(f"lab: {name}", site.address(name), Serial(made.serial)) for name, made in machines.items()]


@contextmanager
def recorded(folder: Path) -> Iterator[list[Target]]:
    """The recorded trees in replay; skips where they are not at hand."""
    with ExitStack() as stack:
        targets = []
        for number, (vendor, serial) in enumerate(RECORDED.items()):
            place = folder / vendor
            place.mkdir()
            (address,) = stack.enter_context(replayed(vendor, 1, place, first=number))
            targets.append(Target(f"recorded: {vendor} {MODELS[vendor]}", address, Serial(serial)))
        yield targets


def tried(targets: list[Target], folder: Path) -> dict[str, dict[str, str]]:
    """Cells by target and operation; the BMCs are independent of each other."""
    with ThreadPoolExecutor(max_workers=4) as pool:
        return dict(
            zip([target.name for target in targets], pool.map(lambda one: cells(one, folder), targets), strict=True)
        )

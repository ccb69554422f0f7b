"""Which of MAAS's machines is ours, what must be set right on it, which of its drives gets the OS. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from clusterctl.edges.maas.api import Form
from clusterctl.edges.maas.machines import Listing, Machines
from clusterctl.edges.maas.settings import MaasSettings
from clusterctl.edges.maas.states import OWNED
from clusterctl.fleet.errors import EdgeError
from clusterctl.fleet.finding import Observed
from clusterctl.fleet.hardware.disk_contract import DiskContract
from clusterctl.fleet.node import Mac, Serial
from clusterctl.formats.maas.machines import BlockDevice, MaasMachine
from clusterctl.ports import BmcAddress, Deadline, InstallTarget

HTTPS_PORT = 443


class Sought(Protocol):
    """A machine of ours, as far as it is to be found in MAAS."""

    @property
    def name(self) -> str: ...
    @property
    def serial(self) -> Serial: ...
    @property
    def macs(self) -> tuple[Mac, ...]: ...


def ours(found: Iterable[MaasMachine], target: Sought) -> MaasMachine | None:
    """The one machine that has a MAC of the target, or else its hostname; None where there is none.

    Raises `EdgeError` where there are several, where the serial that MAAS read is another one, or where only the
    hostname speaks for it: a name alone proves nothing.
    """
    candidates = {machine.system_id: machine for machine in found}
    by_mac = [machine for machine in candidates.values() if set(machine.macs) & set(target.macs)]
    by_name = [machine for machine in candidates.values() if machine.hostname == target.name]
    names = ", ".join(sorted(f"{machine.hostname} ({machine.system_id})" for machine in candidates.values()))
    if len({machine.system_id for machine in (*by_mac, *by_name)}) > 1:
        raise EdgeError(
            f"several machines in MAAS could be it: {names}",
            where=target.name,
            remedy="delete or rename in MAAS the ones that are not it",
        )
    machine = next(iter((*by_mac, *by_name)), None)
    if machine is None:
        return None
    check_serial(machine, target)
    if not by_mac and machine.serial is None:
        raise EdgeError(
            f"MAAS has another machine of this name, with other MAC addresses: {names}",
            where=target.name,
            remedy="delete or rename it in MAAS",
        )
    return machine


def check_serial(machine: MaasMachine, target: Sought) -> None:
    """Raise `EdgeError` where MAAS read another serial number than the BMC told us. Not told: nothing to compare."""
    if machine.serial is None or _same(machine.serial, target.serial):
        return
    raise EdgeError(
        f"MAAS's machine {machine.hostname} ({machine.system_id}) has serial {machine.serial}, the BMC says "
        f"{target.serial}",
        where=target.name,
        remedy="correct the MAC addresses or the power address of the machine in MAAS",
    )


def prove_serial(machine: MaasMachine, target: InstallTarget) -> None:
    """As `check_serial`, for what cannot be undone: not told is not proven."""
    check_serial(machine, target)
    if machine.serial is None:
        raise EdgeError(
            f"MAAS has not read the serial of its machine {machine.hostname} ({machine.system_id})",
            where=target.name,
            remedy="commission it again in MAAS, so that MAAS knows which machine it is",
        )


def check_owner(machine: MaasMachine, target: InstallTarget, me: str) -> None:
    """Raise `EdgeError` where the machine is in another user's hands. `me`: the user of our key."""
    if machine.status in OWNED and machine.owner not in ("", me):
        raise EdgeError(
            f"in MAAS the machine belongs to {machine.owner} ({machine.status_name}), and our key is {me}'s",
            where=target.name,
            remedy="give it back in MAAS first",
        )


def corrections(machine: MaasMachine, target: InstallTarget, settings: MaasSettings) -> Form:
    """The fields of an adopted or new machine to change: name, pool, zone, and power where MAAS has none."""
    form: list[tuple[str, str]] = []
    if machine.hostname != target.name:
        form.append(("hostname", target.name))
    if settings.pool and machine.pool != settings.pool:
        form.append(("pool", settings.pool))
    if settings.zone and machine.zone != settings.zone:
        form.append(("zone", settings.zone))
    if not machine.power_type:
        form.extend(power_form(target.bmc, settings))
    return form


def enrolment(target: InstallTarget, settings: MaasSettings) -> Form:
    """The form that makes the machine known, without commissioning it at once."""
    return [
        ("hostname", target.name),
        ("architecture", settings.architecture),
        *(("mac_addresses", mac) for mac in target.macs),
        ("commission", "false"),
        *power_form(target.bmc, settings),
    ]


def power_form(bmc: BmcAddress, settings: MaasSettings) -> Form:
    """How MAAS reaches the BMC: over HTTPS, also where we do not. `power_address` is `address[:port]`; to a URL MAAS
    answers 500.
    """
    form = [
        ("power_type", "redfish"),
        ("power_parameters_power_address", power_address(bmc)),
        ("power_parameters_power_user", bmc.user),
        ("power_parameters_power_pass", bmc.password),
    ]
    if settings.power_node_id:
        form.append(("power_parameters_node_id", settings.power_node_id))
    return form


def power_address(bmc: BmcAddress) -> str:
    host = f"[{bmc.host}]" if ":" in bmc.host else bmc.host
    usual = bmc.plain_http or bmc.port == HTTPS_PORT
    return bmc.host if usual else f"{host}:{bmc.port}"


def root_drive(drives: Sequence[BlockDevice], target: InstallTarget, boot_disk: int | None = None) -> BlockDevice:
    """Return the one drive with the root disk's serial or WWN, or that the SKU's rule names.

    `boot_disk`: the id of the drive that MAAS boots from, which decides where the installer shall. Raise `EdgeError`
    naming all drives otherwise.
    """
    if target.disk.by_rule:
        return _by_rule(drives, target, boot_disk)
    matching = [drive for drive in drives if target.disk.fits(drive.seen)]
    if len(matching) == 1:
        return matching[0]
    number = "no drive" if not matching else f"{len(matching)} drives"
    seen = ", ".join(str(drive) for drive in drives) or "none at all"
    raise EdgeError(
        f"MAAS sees {number} with the root disk's {target.disk}; it sees {seen}",
        where=target.name,
        remedy="compare the drives in BMC and MAAS; commission the machine again after a drive was exchanged",
    )


def _by_rule(drives: Sequence[BlockDevice], target: InstallTarget, boot_disk: int | None) -> BlockDevice:
    rule = target.root_rule
    decides = rule is not None and rule.chosen_by == "installer" and boot_disk is not None
    candidates = [drive for drive in drives if not decides or drive.id == boot_disk]
    chosen = target.disk.choose([drive.seen for drive in candidates], target.name)
    return next(drive for drive in candidates if drive.seen == chosen)


def root_contract(machine: MaasMachine, target: InstallTarget) -> DiskContract | None:
    """Return the drive that MAAS lays `/` on, where the SKU leaves it to the host or to MAAS; None where that is not
    exactly one.
    """
    roots = machine.root_drives
    return target.disk.named(roots[0].seen) if target.disk.by_rule and len(roots) == 1 else None


def check_layout(machine: MaasMachine, target: InstallTarget) -> None:
    """Raise `EdgeError` unless `/` lies on the root disk and on no other drive, and MAAS boots from that one too: where
    it knows no boot disk of a machine, it takes the one with the lowest id.
    """
    roots = machine.root_drives
    if len(roots) == 1 and _is_root(roots[0], machine, target):
        if machine.boot_disk in (None, roots[0].id):
            return
        raise EdgeError(
            f"MAAS would put the boot loader on another drive than the root disk with {target.disk}",
            where=target.name,
            remedy="release the machine in MAAS, then run the step again",
        )
    seen = ", ".join(str(drive) for drive in roots) or "no drive"
    raise EdgeError(
        f"MAAS would put the root filesystem on {seen}, not on the drive with {target.disk}",
        where=target.name,
        remedy="release the machine in MAAS, then run the step again",
    )


def _is_root(drive: BlockDevice, machine: MaasMachine, target: InstallTarget) -> bool:
    if not target.disk.by_rule:
        return target.disk.fits(drive.seen)
    return drive.id == _by_rule(machine.drives, target, machine.boot_disk).id


def answering(machine: MaasMachine, target: InstallTarget) -> tuple[str, ...]:
    """Where the installed host answers: at what the site gives it, which takes the place of what MAAS gave it."""
    return target.network.answering(target.address) or machine.addresses


def _same(one: Serial, other: Serial) -> bool:
    return one.strip().casefold() == other.strip().casefold()


class Finder:
    """Remembers the ids of the machines that were found. Safe to use from many threads, for different machines."""

    def __init__(self, machines: Machines) -> None:
        self._machines = machines
        self._ids: dict[str, str] = {}

    def remember(self, target: InstallTarget, machine: MaasMachine) -> None:
        self._ids[target.name] = machine.system_id

    def find(self, target: InstallTarget, deadline: Deadline) -> Observed[MaasMachine] | None:
        """By MAC and by name: where an act follows, every machine that could be it counts."""
        listed = self._by_macs([target], deadline) | self._machines.by_hostnames([target.name], deadline)
        machine = ours(listed.machines.values(), target)
        if machine is None:
            return None
        self.remember(target, machine)
        return Observed(machine, listed.of(machine))

    def listed(self, targets: Sequence[InstallTarget], deadline: Deadline) -> Listing:
        """By the ids that are known; else, or where MAAS knows the id no more, by MAC; else by name."""
        ids = [self._ids[target.name] for target in targets if target.name in self._ids]
        listed = self._machines.by_ids(ids, deadline)
        sought = [target for target in targets if self._ids.get(target.name) not in listed.machines]
        if sought:
            listed |= self._by_macs(sought, deadline)
        macs = {mac for machine in listed.machines.values() for mac in machine.macs}
        names = [target.name for target in sought if not macs & set(target.macs)]
        return listed | self._machines.by_hostnames(names, deadline) if names else listed

    def _by_macs(self, targets: Sequence[InstallTarget], deadline: Deadline) -> Listing:
        return self._machines.by_macs([mac for target in targets for mac in target.macs], deadline)

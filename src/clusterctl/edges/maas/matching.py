"""Which of MAAS's machines is ours, what must be corrected on it, and which of its drives gets the OS."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from clusterctl.edges.maas.api import Form
from clusterctl.edges.maas.machines import MachineListing, Machines
from clusterctl.edges.maas.settings import MaasSettings
from clusterctl.edges.maas.states import OWNED
from clusterctl.fleet.errors import EdgeError
from clusterctl.fleet.finding import Observed
from clusterctl.fleet.hardware.disk_contract import DiskContract
from clusterctl.fleet.node import Mac, Serial
from clusterctl.formats.maas.machines import MaasBlockDevice, MaasMachine, MachineStatus
from clusterctl.ports import BmcAddress, Deadline, FailureKind, InstallError, InstallTarget

HTTPS_PORT = 443
REDFISH = "redfish"
"""MAAS's name of the power type."""
DEFAULT_POOL = "default"
"""MAAS's own pool, into which it puts new machines."""
UNINSTALLED = frozenset(
    {MachineStatus.NEW, MachineStatus.READY, MachineStatus.FAILED_COMMISSIONING, MachineStatus.FAILED_TESTING}
)


class Sought(Protocol):
    """What identifies a machine of ours in MAAS."""

    @property
    def name(self) -> str: ...
    @property
    def serial(self) -> Serial: ...
    @property
    def macs(self) -> tuple[Mac, ...]: ...


def ours(found: Iterable[MaasMachine], target: Sought) -> MaasMachine | None:
    """Return the one machine that has a MAC of the target, or else its hostname; None where there is none.

    Raises `InstallError` where there are several, where the serial that MAAS read is another one, or where only the
    hostname matches: a name alone proves nothing.
    """
    macs = set(target.macs)
    candidates = {one.system_id: one for one in found if macs.intersection(one.macs) or one.hostname == target.name}
    if not candidates:
        return None
    names = ", ".join(sorted(f"{machine.hostname} ({machine.system_id})" for machine in candidates.values()))
    if len(candidates) > 1:
        raise InstallError(
            f"several machines in MAAS could be it: {names}",
            FailureKind.FOREIGN,
            where=target.name,
            remedy="delete or rename in MAAS the ones that are not it",
        )
    (machine,) = candidates.values()
    check_serial(machine, target)
    if machine.serial is None and macs.isdisjoint(machine.macs):
        raise InstallError(
            f"MAAS has another machine of this name, with other MAC addresses: {names}",
            FailureKind.FOREIGN,
            where=target.name,
            remedy="delete or rename it in MAAS",
        )
    return machine


def check_serial(machine: MaasMachine, target: Sought) -> None:
    """Raise `InstallError` where MAAS read another serial number than the BMC reports. Without one, there is nothing to
    compare.
    """
    if machine.serial is None or _same(machine.serial, target.serial):
        return
    raise InstallError(
        f"MAAS's machine {machine.hostname} ({machine.system_id}) has serial {machine.serial}, the BMC reports "
        f"{target.serial}",
        FailureKind.FOREIGN,
        where=target.name,
        remedy="correct the MAC addresses or the power address of the machine in MAAS",
    )


def require_readable(machine: MaasMachine, target: Sought) -> None:
    """Raise where MAAS's description of this machine was not understood: nothing is done to it, and no other waits."""
    if machine.unreadable:
        remedy = f"read the machine's page in MAAS, and commission {target.name} again"
        raise InstallError(machine.unreadable, FailureKind.OPERATOR, where=target.name, remedy=remedy)


def prove_serial(machine: MaasMachine, target: InstallTarget) -> None:
    """Raise as `check_serial`, for what cannot be undone: also where MAAS has read no serial."""
    check_serial(machine, target)
    if machine.serial is None:
        raise EdgeError(
            f"MAAS has not read the serial of its machine {machine.hostname} ({machine.system_id})",
            where=target.name,
            remedy="commission it again in MAAS, so that MAAS knows which machine it is",
        )


def check_owner(machine: MaasMachine, target: InstallTarget, me: str) -> None:
    """Raise `InstallError` where the machine belongs to another user. `me`: the user of our key."""
    if machine.status in OWNED and machine.owner not in ("", me):
        raise InstallError(
            f"in MAAS the machine belongs to {machine.owner} ({machine.status_name}), and our key is {me}'s",
            FailureKind.FOREIGN,
            where=target.name,
            remedy=f"ask {machine.owner} to release it in MAAS",
        )


def check_pool(machine: MaasMachine, target: InstallTarget, settings: MaasSettings) -> None:
    """Raise `InstallError` where the machine would be taken out of a pool without the operator's word."""
    if not settings.pool or machine.status not in UNINSTALLED:
        return
    if machine.pool in (settings.pool, DEFAULT_POOL, *settings.move_from_pools):
        return
    raise InstallError(
        f"in MAAS the machine is in pool {machine.pool}, and the site's pool is {settings.pool}",
        FailureKind.OPERATOR,
        where=target.name,
        remedy=(
            f"if no one needs it there, add {machine.pool} to provisioning.move_from_pools, or move it: "
            f"maas PROFILE machine update {machine.system_id} pool={settings.pool}"
        ),
    )


def corrections(machine: MaasMachine, target: InstallTarget, settings: MaasSettings) -> Form:
    """Return the fields of an adopted or new machine to change: name, pool, zone, and power where MAAS has none."""
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
    """Return the form that enrols the machine without commissioning it at once."""
    return [
        ("hostname", target.name),
        ("architecture", settings.architecture),
        *(("mac_addresses", mac) for mac in target.macs),
        ("commission", "false"),
        *power_form(target.bmc, settings),
    ]


def power_form(bmc: BmcAddress, settings: MaasSettings) -> Form:
    """Return how MAAS reaches the BMC: over HTTPS, also where we do not. `power_address` is `address[:port]`; to a URL
    MAAS answers 500.
    """
    form = [
        ("power_type", REDFISH),
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


def root_drive(
    drives: Sequence[MaasBlockDevice], target: InstallTarget, boot_disk: int | None = None
) -> MaasBlockDevice:
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


def _by_rule(drives: Sequence[MaasBlockDevice], target: InstallTarget, boot_disk: int | None) -> MaasBlockDevice:
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
    """Raise `EdgeError` unless `/` lies on the root disk and on no other drive, and MAAS boots from that one too."""
    problem = layout_problem(machine, target)
    if problem:
        raise EdgeError(problem, where=target.name, remedy="release the machine in MAAS, then run the step again")


def layout_problem(machine: MaasMachine, target: InstallTarget) -> str:
    """Return what is wrong with the machine's layout; empty where nothing is.

    Where MAAS knows no boot disk of a machine, it takes the one with the lowest id.
    """
    roots = machine.root_drives
    if len(roots) != 1 or not _is_root(roots[0], machine, target):
        seen = ", ".join(str(drive) for drive in roots) or "no drive"
        return f"MAAS would put the root filesystem on {seen}, not on the drive with {target.disk}"
    others = [drive for drive in machine.drives if drive.laid_out and not drive.root]
    if others:
        return f"MAAS would also partition or format {', '.join(map(str, others))}"
    if machine.boot_disk not in (None, roots[0].id):
        return f"MAAS would put the boot loader on another drive than the root disk with {target.disk}"
    return ""


def _is_root(drive: MaasBlockDevice, machine: MaasMachine, target: InstallTarget) -> bool:
    if not target.disk.by_rule:
        return target.disk.fits(drive.seen)
    return drive.id == _by_rule(machine.drives, target, machine.boot_disk).id


def answering(machine: MaasMachine, target: InstallTarget) -> tuple[str, ...]:
    """Return where the installed host answers: at the site's address for it, in place of the one that MAAS gave it."""
    return target.network.answering(target.address) or machine.addresses


def _same(one: Serial, other: Serial) -> bool:
    return one.strip().casefold() == other.strip().casefold()


class Finder:
    """Finds machines in MAAS, and remembers their ids. Safe to use from many threads, for different machines."""

    def __init__(self, machines: Machines) -> None:
        self._machines = machines
        self._ids: dict[str, str] = {}

    def remember(self, target: InstallTarget, machine: MaasMachine) -> None:
        self._ids[target.name] = machine.system_id

    def find(self, target: InstallTarget, deadline: Deadline) -> Observed[MaasMachine] | None:
        """Return the machine, sought by MAC and by name: before an act, every machine that could be it counts.

        Raises `InstallError` as `ours` and `require_readable`: of an unreadable one neither state nor owner is known.
        """
        listed = self._by_macs([target], deadline) | self._machines.by_hostnames([target.name], deadline)
        machine = ours(listed.machines.values(), target)
        if machine is None:
            return None
        require_readable(machine, target)
        self.remember(target, machine)
        return Observed(machine, listed.of(machine))

    def listed(self, targets: Sequence[InstallTarget], deadline: Deadline) -> MachineListing:
        """Return the machines, sought by the ids that are known; where there is none, by MAC; else by name."""
        ids = {target.name: self._ids.get(target.name) for target in targets}
        listed = self._machines.by_ids(list(filter(None, ids.values())), deadline)
        sought = [target for target in targets if ids[target.name] not in listed.machines]
        if sought:
            listed |= self._by_macs(sought, deadline)
        macs = {mac for machine in listed.machines.values() for mac in machine.macs}
        names = [target.name for target in sought if macs.isdisjoint(target.macs)]
        return listed | self._machines.by_hostnames(names, deadline) if names else listed

    def _by_macs(self, targets: Sequence[InstallTarget], deadline: Deadline) -> MachineListing:
        return self._machines.by_macs([mac for target in targets for mac in target.macs], deadline)

"""The iLO 5 profile: all resources of one machine, and how errors read."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish import standard
from clusterctl_lab.emulators.redfish.hpe import (
    components,
    logs,
    manager,
    messages,
    network,
    paths,
    pcie,
    power,
    storage,
    system,
    thermal,
)
from clusterctl_lab.emulators.redfish.profile import BiosAttribute, Log, Paths
from clusterctl_lab.emulators.redfish.resource import Resource
from clusterctl_lab.emulators.redfish.traits import BootRules, Etag, IfMatch, Mode, Traits
from clusterctl_lab.emulators.redfish.vendor_profile import Assembled
from clusterctl_lab.emulators.redfish.view import View

_SECTIONS = (manager, components, logs, network, pcie, power, storage, thermal)
_PATHS = Paths(
    root=paths.ROOT,
    sessions=f"{paths.ROOT}/SessionService/Sessions",
    system=paths.SYSTEM,
    reset=system.RESET,
    ac_cycle=(system.SYSTEM_RESET, system.AUX_CYCLE),
    clear_log={logs.CLEAR_IML: Log.SEL, logs.CLEAR_IEL: Log.LIFECYCLE},
    manager_reset=manager.RESET,
    accounts=f"{paths.ROOT}/AccountService/Accounts",
    bios=f"{paths.SYSTEM}/Bios",
    bios_settings=f"{paths.SYSTEM}/Bios/Settings",
    media=tuple(f"{paths.MANAGER}/VirtualMedia/{number}" for number in (1, 2)),
    simple_update=manager.SIMPLE_UPDATE,
    tasks=f"{paths.ROOT}/TaskService/Tasks",
)
_TRAITS = Traits(
    reset_types=system.RESET_TYPES,
    max_sessions=13,
    session_timeout=1800.0,
    boot=BootRules(
        targets=(
            "None",
            "Cd",
            "Hdd",
            "Usb",
            "SDCard",
            "Diags",
            "BiosSetup",
            "Pxe",
            "UefiShell",
            "UefiHttp",
        ),
        modes=("UEFI",),
        mode=Mode.READ_ONLY,
    ),
    account_id="1",
    password_length=(8, 39),
    etag=Etag.WEAK,
    if_match=IfMatch.HONOURED,
    post_busy=True,
)
"""Recorded: weak ETags, MinPasswordLength 8, account 1, SessionTimeout 30, which are minutes. No lock-out: a failed
login delays the next one. Whether the machine boots by UEFI is set in its BIOS and not with an override.
"""
_BIOS = {
    "BootMode": BiosAttribute("Uefi", ("Uefi", "LegacyBios")),
    "ProcAmdIoVt": BiosAttribute("Enabled", ("Enabled", "Disabled")),
    "Sriov": BiosAttribute("Enabled", ("Enabled", "Disabled")),
    "WorkloadProfile": BiosAttribute("GeneralPowerEfficientCompute"),
}


def _rest(paths_: Paths, traits: Traits, view: View) -> Iterator[Resource]:
    yield from system.resources(view, traits.boot)
    yield from standard.resources(paths_, traits, view)


HPE = Assembled(_PATHS, _TRAITS, _SECTIONS, _rest, messages, logs.login, _BIOS)
"""iLO 5."""

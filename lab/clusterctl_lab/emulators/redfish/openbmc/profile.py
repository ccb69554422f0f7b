"""The DGX profile: all resources of one machine, and how errors read."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish import standard
from clusterctl_lab.emulators.redfish.messages import Language
from clusterctl_lab.emulators.redfish.openbmc import components, hgx, manager, network, paths, power, system, thermal
from clusterctl_lab.emulators.redfish.profile import BiosAttribute, Log, Paths
from clusterctl_lab.emulators.redfish.resource import Resource
from clusterctl_lab.emulators.redfish.traits import BootRules, Etag, IfMatch, Lockout, Traits
from clusterctl_lab.emulators.redfish.vendor_profile import Assembled
from clusterctl_lab.emulators.redfish.view import View

_SECTIONS = (manager, components, hgx, network, power, thermal)
_LANGUAGE = Language(base="Base.1.12")
_PATHS = Paths(
    root=paths.ROOT,
    sessions=f"{paths.ROOT}/SessionService/Sessions",
    system=paths.SYSTEM,
    reset=system.RESET,
    clear_log={manager.CLEAR_SEL: Log.SEL, manager.CLEAR_AUDIT: Log.LIFECYCLE},
    boot=paths.SETTINGS,
    manager_reset=manager.RESET,
    accounts=f"{paths.ROOT}/AccountService/Accounts",
    bios=f"{paths.SYSTEM}/Bios",
    bios_settings=f"{paths.SYSTEM}/Bios/SD",
    media=tuple(f"{paths.MANAGER}/VirtualMedia/CD{number}" for number in (1, 2)),
    multipart_push=manager.MULTIPART_PUSH,
    simple_update=manager.SIMPLE_UPDATE,
    tasks=f"{paths.ROOT}/TaskService/Tasks",
)
_TRAITS = Traits(
    reset_types=system.RESET_TYPES,
    max_sessions=15,
    session_timeout=30.0,
    boot=BootRules(
        targets=(
            "None",
            "Pxe",
            "Floppy",
            "Cd",
            "Usb",
            "Hdd",
            "BiosSetup",
            "Utilities",
            "Diags",
            "UefiShell",
            "UefiHttp",
        ),
        whole=True,
    ),
    account_id="2",
    password_length=(13, 20),
    etag=Etag.STRONG,
    if_match=IfMatch.REQUIRED,
    lockout=Lockout(tries=5, seconds=30.0),
)
"""Recorded: SessionTimeout 30, lock-out 5 tries for 30 s, passwords of 13 to 20 characters, the override's values. That
a PATCH needs If-Match, and goes to the settings object, is NVIDIA's user guide's (its examples).
"""
_BIOS = {
    "SRIOVEnable": BiosAttribute("SRIOVEnableEnable", ("SRIOVEnableEnable", "SRIOVEnableDisable")),
    "TPMDeviceSelection": BiosAttribute("TPMDeviceSelectionEnable"),
}


def _rest(paths_: Paths, traits: Traits, view: View) -> Iterator[Resource]:
    yield from system.resources(view, traits.boot)
    yield from system.processors(view)
    yield from standard.resources(paths_, traits, view)


OPENBMC = Assembled(_PATHS, _TRAITS, _SECTIONS, _rest, _LANGUAGE, manager.login, _BIOS)
"""The BMC of a DGX H100."""

"""The Supermicro profile: all resources of one machine, and how errors read."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish import standard
from clusterctl_lab.emulators.redfish.messages import Language
from clusterctl_lab.emulators.redfish.profile import BiosAttribute, Log, Paths
from clusterctl_lab.emulators.redfish.resource import Resource, bare
from clusterctl_lab.emulators.redfish.supermicro import (
    components,
    logs,
    manager,
    network,
    paths,
    pcie,
    power,
    storage,
    system,
    thermal,
)
from clusterctl_lab.emulators.redfish.traits import BootRules, Etag, IfMatch, Lockout, Mode, Traits
from clusterctl_lab.emulators.redfish.vendor_profile import Assembled
from clusterctl_lab.emulators.redfish.view import View

_SECTIONS = (manager, components, logs, network, pcie, power, storage, thermal)
_LANGUAGE = Language(base="Base.1.10")
"""Recorded: registry Base.1.10.3. Published: its wording, with HTTP 400 (dsx-ai-factory/infra-controller#2121)."""

_PATHS = Paths(
    root=paths.ROOT,
    sessions=f"{paths.ROOT}/SessionService/Sessions",
    system=paths.SYSTEM,
    reset=system.RESET,
    boot_certificates=paths.BOOT_CERTIFICATES,
    clear_log={logs.CLEAR_HEALTH: Log.SEL, logs.CLEAR_MAINTENANCE: Log.LIFECYCLE},
    manager_reset=manager.RESET,
    accounts=f"{paths.ROOT}/AccountService/Accounts",
    bios=f"{paths.SYSTEM}/Bios",
    bios_settings=f"{paths.SYSTEM}/Bios/SD",
    media=tuple(f"{paths.MANAGER}/VirtualMedia/VirtualMedia{number}" for number in (1, 2, 3)),
    multipart_push=manager.MULTIPART_PUSH,
    simple_update=manager.SIMPLE_UPDATE,
    tasks=f"{paths.ROOT}/TaskService/Tasks",
)
_TRAITS = Traits(
    reset_types=system.RESET_TYPES,
    max_sessions=16,
    session_timeout=300.0,
    boot=BootRules(
        targets=("None", "Pxe", "Floppy", "Cd", "Usb", "Hdd", "BiosSetup", "UsbCd", "UefiBootNext", "UefiHttp"),
        modes=("UEFI", "Legacy"),
        mode=Mode.REQUIRED,
    ),
    account_id="2",
    password_length=(8, 20),
    etag=Etag.STRONG,
    if_match=IfMatch.HONOURED,
    lockout=Lockout(tries=3, seconds=30.0),
)
"""Recorded: SessionTimeout 300, lock-out 3 tries for 30 s, passwords of 8 to 20 characters, account `root` as number 2,
strong ETags. Mode must be sent with an override, or it falls back to Legacy (users of sushy and bmclib).
"""
_BIOS = {
    "SR_IOVSupport_0047": BiosAttribute("Enabled", ("Enabled", "Disabled")),
    "AES_NI_3C75": BiosAttribute("Enable", ("Enable", "Disable")),
    "Above4GDecoding_0041": BiosAttribute("Enabled", ("Enabled", "Disabled")),
}
"""A few of the recorded attributes; each name ends in a number of that BIOS build."""


def _rest(paths_: Paths, traits: Traits, view: View) -> Iterator[Resource]:
    yield from system.resources(view, traits.boot)
    yield from standard.resources(paths_, traits, view)


SUPERMICRO = Assembled(_PATHS, _TRAITS, _SECTIONS, _rest, _LANGUAGE, logs.login, _BIOS, form=bare)
"""The BMC of an X13 board."""

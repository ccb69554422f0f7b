"""The DGX profile: all resources of one machine, and how errors read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from clusterctl.lab.faces.redfish import standard
from clusterctl.lab.faces.redfish.messages import Language
from clusterctl.lab.faces.redfish.openbmc import (
    chassis,
    firmware,
    hgx,
    logs,
    manager,
    memory,
    network,
    paths,
    power,
    service,
    storage,
    system,
    thermal,
)
from clusterctl.lab.faces.redfish.profile import BiosAttribute, Log, Paths, RefusedError
from clusterctl.lab.faces.redfish.resource import Resource, Tree, index
from clusterctl.lab.faces.redfish.traits import BootRules, Etag, IfMatch, Lockout, Traits
from clusterctl.lab.faces.redfish.view import LogRecord, View

_SECTIONS = (service, chassis, firmware, hgx, logs, manager, memory, network, power, storage, thermal)
_LANGUAGE = Language(base="Base.1.12")
_PATHS = Paths(
    root=paths.ROOT,
    sessions=f"{paths.ROOT}/SessionService/Sessions",
    system=paths.SYSTEM,
    reset=system.RESET,
    clear_log={logs.CLEAR_SEL: Log.SEL, logs.CLEAR_AUDIT: Log.LIFECYCLE},
    boot=paths.SETTINGS,
    manager_reset=manager.RESET,
    accounts=f"{paths.ROOT}/AccountService/Accounts",
    bios=f"{paths.SYSTEM}/Bios",
    bios_settings=f"{paths.SYSTEM}/Bios/SD",
    media=tuple(f"{paths.MANAGER}/VirtualMedia/CD{number}" for number in (1, 2)),
    multipart_push=firmware.MULTIPART_PUSH,
    simple_update=firmware.SIMPLE_UPDATE,
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


@dataclass(frozen=True, slots=True)
class OpenBmc:
    """The BMC of a DGX H100."""

    paths: Paths = _PATHS
    traits: Traits = _TRAITS
    bios: Mapping[str, BiosAttribute] = field(default_factory=_BIOS.copy)
    questions: Mapping[str, Callable[[View], Resource]] = field(default_factory=dict)

    def tree(self, view: View) -> Tree:
        tree: Tree = {"/redfish": {"v1": f"{paths.ROOT}/"}}
        tree |= index(system.resources(view, self.traits.boot))
        tree |= index(system.processors(view))
        tree |= index(standard.resources(self.paths, self.traits, view))
        for section in _SECTIONS:
            tree |= index(section.resources(view))
        return tree

    def refusal(self, refused: RefusedError) -> tuple[int, Resource]:
        return _LANGUAGE.refusal(refused)

    def success(self) -> Resource:
        return _LANGUAGE.success()

    def login_record(self, at: str, user: str, client: str) -> LogRecord:
        return logs.login(at, user, client)


OPENBMC = OpenBmc()

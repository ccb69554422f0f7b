"""The Dell profile: its parts put together."""

from __future__ import annotations

from dataclasses import dataclass, field

from clusterctl.lab.faces.redfish.dell import (
    chassis,
    firmware,
    logs,
    manager,
    messages,
    network,
    paths,
    pcie,
    power,
    processors,
    service,
    storage,
    system,
)
from clusterctl.lab.faces.redfish.profile import Paths, RefusedError
from clusterctl.lab.faces.redfish.resource import Resource, Tree, index
from clusterctl.lab.faces.redfish.view import LogRecord, View

_SECTIONS = (chassis, firmware, logs, manager, network, pcie, power, processors, storage, system)


@dataclass(frozen=True, slots=True)
class Dell:
    """iDRAC9. Six sessions, which expire after 1800 s of idleness (recorded: SessionService.SessionTimeout)."""

    max_sessions: int = 6
    session_timeout: float = 1800.0
    reset_types: tuple[str, ...] = system.RESET_TYPES
    boot_modes: tuple[str, ...] = ("UEFI",)
    paths: Paths = field(
        default=Paths(
            root=paths.ROOT,
            sessions=paths.SESSIONS,
            system=paths.SYSTEM,
            reset=f"{paths.SYSTEM}/Actions/ComputerSystem.Reset",
            clear_sel=f"{paths.SEL}/Actions/LogService.ClearLog",
        )
    )

    def tree(self, view: View) -> Tree:
        tree: Tree = {"/redfish": {"v1": f"{paths.ROOT}/"}}
        tree |= index(service.resources(view, self.session_timeout))
        for section in _SECTIONS:
            tree |= index(section.resources(view))
        return tree

    def refusal(self, refused: RefusedError) -> tuple[int, Resource]:
        return messages.refusal(refused)

    def success(self) -> Resource:
        return messages.success()

    def login_record(self, at: str, user: str, client: str) -> LogRecord:
        return logs.login(at, user, client)


DELL = Dell()

"""The Dell profile: its parts put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from clusterctl.lab.faces.redfish.dell import (
    accounts,
    bios,
    boot_options,
    chassis,
    firmware,
    jobs,
    lifecycle,
    logs,
    manager,
    media,
    memory,
    network,
    paths,
    pcie,
    power,
    processors,
    service,
    storage,
    system,
    thermal,
)
from clusterctl.lab.faces.redfish.dell.messages import LANGUAGE
from clusterctl.lab.faces.redfish.profile import BiosAttribute, Log, Paths, RefusedError
from clusterctl.lab.faces.redfish.resource import Resource, Tree, index
from clusterctl.lab.faces.redfish.traits import Traits
from clusterctl.lab.faces.redfish.view import LogRecord, View

_SECTIONS = (
    bios,
    boot_options,
    chassis,
    firmware,
    jobs,
    lifecycle,
    logs,
    manager,
    media,
    memory,
    network,
    pcie,
    power,
    processors,
    storage,
    system,
    thermal,
)


_PATHS = Paths(
    root=paths.ROOT,
    sessions=paths.SESSIONS,
    system=paths.SYSTEM,
    reset=f"{paths.SYSTEM}/Actions/ComputerSystem.Reset",
    ac_cycle=(paths.EXTENDED_RESET, "PowerCycle"),
    clear_log={f"{paths.SEL}/Actions/LogService.ClearLog": Log.SEL},
    manager_reset=paths.MANAGER_RESET,
    accounts=paths.ACCOUNTS,
    bios=paths.BIOS,
    bios_settings=paths.BIOS_SETTINGS,
    media=paths.MEDIA,
    multipart_push=paths.MULTIPART_PUSH,
    simple_update=paths.SIMPLE_UPDATE,
    tasks=paths.TASKS,
    jobs=paths.JOBS,
    clear_jobs=paths.DELETE_JOBS,
)
_TRAITS = Traits(
    reset_types=system.RESET_TYPES,
    max_sessions=6,
    session_timeout=1800.0,
    boot=system.BOOT,
    account_id="2",
    task_id="JID_{:012d}",
    bios_jobs=True,
)
"""Six sessions, which expire after 1800 s of idleness (recorded: SessionService.SessionTimeout)."""


@dataclass(frozen=True, slots=True)
class Dell:
    """iDRAC9."""

    paths: Paths = _PATHS
    traits: Traits = _TRAITS
    bios: Mapping[str, BiosAttribute] = field(default_factory=lambda: bios.ATTRIBUTES)
    questions: Mapping[str, Callable[[View], Resource]] = field(
        default_factory=lambda: {paths.LC_STATUS: lifecycle.remote_services}
    )

    def tree(self, view: View) -> Tree:
        tree: Tree = {"/redfish": {"v1": f"{paths.ROOT}/"}}
        tree |= index(service.resources(view, self.traits.session_timeout))
        tree |= index(accounts.resources(view, self.traits))
        for section in _SECTIONS:
            tree |= index(section.resources(view))
        return tree

    def refusal(self, refused: RefusedError) -> tuple[int, Resource]:
        return LANGUAGE.refusal(refused)

    def success(self) -> Resource:
        return LANGUAGE.success()

    def login_record(self, at: str, user: str, client: str) -> LogRecord:
        return logs.login(at, user, client)


DELL = Dell()

"""The Dell profile: its parts put together."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish.dell import (
    accounts,
    bios,
    chassis,
    components,
    logs,
    manager,
    network,
    paths,
    pcie,
    power,
    service,
    storage,
    system,
    thermal,
)
from clusterctl_lab.emulators.redfish.dell.messages import LANGUAGE
from clusterctl_lab.emulators.redfish.profile import Log, Paths
from clusterctl_lab.emulators.redfish.resource import Resource
from clusterctl_lab.emulators.redfish.services import certificates
from clusterctl_lab.emulators.redfish.traits import Traits
from clusterctl_lab.emulators.redfish.vendor_profile import Assembled
from clusterctl_lab.emulators.redfish.view import View

_SECTIONS = (bios, chassis, manager, logs, components, network, pcie, power, storage, system, thermal)


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
    certificate_service=paths.CERTIFICATE_SERVICE,
    https_certificates=paths.HTTPS_CERTIFICATES,
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


def _rest(known: Paths, traits: Traits, view: View) -> Iterator[Resource]:
    yield from service.resources(view, traits.session_timeout)
    yield from certificates.resources(known)
    yield certificates.network_protocol(paths.NETWORK_PROTOCOL, known)
    yield from accounts.resources(view, traits)


DELL = Assembled(
    _PATHS,
    _TRAITS,
    _SECTIONS,
    _rest,
    LANGUAGE,
    logs.login,
    bios.ATTRIBUTES,
    questions={paths.LC_STATUS: manager.remote_services, paths.LC_SCREEN: manager.screen},
)
"""iDRAC9."""

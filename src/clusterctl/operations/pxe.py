"""Our own PXE: serve it in the foreground, or examine what it lacks."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from clusterctl.edges.pxe.attempt_store import AttemptStore
from clusterctl.edges.pxe.checks import examine
from clusterctl.edges.site import Site, load_site
from clusterctl.fleet.diagnosis import Diagnosis, Health
from clusterctl.fleet.errors import ClusterctlError
from clusterctl.operations.adapters import backend_of, state_dir
from clusterctl.operations.installers import factory, pxe_service, pxe_settings
from clusterctl.operations.operation import Control, Event

LOOK_S = 2.0
"""Seconds between two checks that every part of the service runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PxeCheck:
    """`trouble`: what keeps the service from being examined as a whole; None where nothing does."""

    found: tuple[Diagnosis, ...]
    trouble: ClusterctlError | None

    @property
    def exit_code(self) -> int:
        if self.trouble is not None:
            return self.trouble.exit_code
        return 1 if any(item.health in (Health.NOT_MEASURED, Health.WARN) for item in self.found) else 0


def serve(folder: Path, control: Control) -> None:
    """Serve until cancelled. Raises where a part of the service dies: systemd starts it again."""
    site = load_site(folder)
    settings = pxe_settings(site)
    service = pxe_service(site, settings, AttemptStore(state_dir(site) / "pxe" / "machines"))
    with closing(service):
        service.serve()
        control.on_event(Event(text=f"serving {site.settings.name} at {settings.base} on {settings.interface}"))
        while not control.cancelled.wait(LOOK_S):
            service.ensure()


def check(folder: Path) -> PxeCheck:
    """Return what is missing before machines can be installed."""
    site = load_site(folder)
    settings = pxe_settings(site)
    service = pxe_service(site, settings, AttemptStore(state_dir(site) / "pxe" / "machines"))
    found, trouble = examine(factory(settings), service, _without_address(site))
    return PxeCheck(found=tuple(found), trouble=trouble)


def _without_address(site: Site) -> list[str]:
    ours = [node for node in site.nodes if backend_of(site, node.name) == "pxe"]
    return [node.name for node in ours if not node.address]

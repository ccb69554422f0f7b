"""Our own PXE in the foreground, and what it lacks."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path

import click

from clusterctl.edges.pxe.checks import examine
from clusterctl.edges.pxe.desk import Desk
from clusterctl.edges.site import Site, load_site
from clusterctl.fleet.diagnosis import Health
from clusterctl.operations.context import state_dir
from clusterctl.operations.installers import armoury, pxe_service, pxe_settings
from clusterctl.operations.installing import backend_of
from clusterctl_cli.render_diagnoses import show
from clusterctl_cli.stopping import stoppable

LOOK_S = 2.0
"""Seconds between two looks whether all of it still serves."""


def serve(folder: Path) -> int:
    """Until somebody stops us, or a part of it dies, which is an error: systemd starts us again."""
    site = load_site(folder)
    settings = pxe_settings(site)
    service = pxe_service(site, settings, Desk(state_dir(site) / "pxe" / "machines"))
    cancelled = threading.Event()
    with stoppable(cancelled), closing(service):
        service.serve()
        click.echo(f"serving {site.settings.name} at {settings.base} on {settings.interface}; Ctrl-C ends it", err=True)
        while not cancelled.wait(LOOK_S):
            service.ensure()
    return 0


def check(folder: Path, *, as_json: bool) -> int:
    """What is missing, line by line; the exit code."""
    site = load_site(folder)
    settings = pxe_settings(site)
    service = pxe_service(site, settings, Desk(state_dir(site) / "pxe" / "machines"))
    found, trouble = examine(armoury(settings), service, _without_address(site))
    show(found, as_json=as_json)
    if trouble is not None:
        return trouble.exit_code
    return 1 if any(item.health in (Health.NOT_MEASURED, Health.WARN) for item in found) else 0


def _without_address(site: Site) -> list[str]:
    ours = [node for node in site.nodes if backend_of(site, node.name) == "pxe"]
    return [node.name for node in ours if not node.address]

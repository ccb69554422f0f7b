"""`clusterctl maas check`."""

from __future__ import annotations

from pathlib import Path

import click

from clusterctl_cli.formats import format_option
from clusterctl_cli.options import site_option, verbose_option


@click.group()
def maas() -> None:
    """The MAAS host that installs the site's machines (docs/how-to/maas-host.md)."""


@maas.command()
@click.option("--subnet", metavar="CIDR", default="", help="The provisioning network, where MAAS has others.")
@click.option("--deadline", type=click.FloatRange(min=1), default=120.0, show_default=True, help="Seconds to wait.")
@site_option
@format_option()
@verbose_option
def check(*, subnet: str, deadline: float, folder: Path, as_json: bool) -> int:
    """Say what the MAAS host lacks to install this site, and how to mend it. Changes nothing.

    Exit code 0: ready; 1: something is broken; 3: MAAS cannot be reached, or rejects our key.
    """
    from clusterctl.edges.clock import CLOCK
    from clusterctl.edges.maas.api import MaasApi
    from clusterctl.edges.maas.host import HostFacts, SiteNeeds, check_host
    from clusterctl.edges.site import load_site
    from clusterctl.fleet.diagnosis import Health
    from clusterctl.fleet.errors import EnvironmentBrokenError
    from clusterctl.operations.adapters import maas_settings
    from clusterctl.ports import Deadline
    from clusterctl_cli.render_diagnoses import show

    site = load_site(folder)
    settings = maas_settings(site)
    needs = SiteNeeds(
        series=settings.series,
        architecture=settings.architecture,
        nodes=len(site.nodes),
        at_once=site.settings.batch.install,
        limits=settings.limits,
        subnet=subnet,
    )
    report = check_host(HostFacts(MaasApi(settings, CLOCK), Deadline.after(deadline), needs))
    show(report.found, as_json=as_json)
    if not report.reached:
        return EnvironmentBrokenError.exit_code
    return int(any(item.health is Health.BROKEN for item in report.found))

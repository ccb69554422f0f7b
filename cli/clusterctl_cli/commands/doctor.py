"""`clusterctl doctor`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clusterctl_cli.formats import format_option
from clusterctl_cli.options import site_option, verbose_option

if TYPE_CHECKING:
    from clusterctl.edges.site import Site
    from clusterctl.fleet.errors import ClusterctlError


@click.command()
@site_option
@format_option()
@verbose_option
def doctor(folder: Path, as_json: bool) -> int:
    """Say what is missing or wrong on this controller, and how to mend it. Changes nothing; needs no site.

    Exit code 3 when something is broken.
    """
    from clusterctl.edges.clock import CLOCK
    from clusterctl.edges.doctor import examine
    from clusterctl.fleet.diagnosis import Health
    from clusterctl.fleet.errors import ClusterctlError, EnvironmentBrokenError
    from clusterctl.operations.adapters import known_bmcs
    from clusterctl.operations.trust import diagnosis
    from clusterctl_cli.render_diagnoses import show

    site = _site(folder)
    if isinstance(site, ClusterctlError):
        found = examine(site, None, CLOCK)
    else:
        found = examine(site, replace(known_bmcs(site), learn=False), CLOCK, [("trust", partial(diagnosis, site))])
    show(found, as_json=as_json)
    ill = any(item.health is Health.BROKEN for item in found)
    return EnvironmentBrokenError.exit_code if ill else 0


def _site(folder: Path) -> Site | ClusterctlError:
    """The site, or why there is none: only where nobody named one, that is fine."""
    from clusterctl.edges.doctor import NoSiteError
    from clusterctl.edges.site import load_site
    from clusterctl.fleet.errors import ClusterctlError

    if folder == Path() and not (folder / "site.yml").exists():
        return NoSiteError("none here", remedy="name one with --site DIR, and the rest is looked at as well")
    try:
        return load_site(folder)
    except ClusterctlError as error:
        return error

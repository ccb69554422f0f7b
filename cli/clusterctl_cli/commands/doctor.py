"""`clusterctl doctor`."""

from __future__ import annotations

from pathlib import Path

import click

from clusterctl_cli.formats import format_option
from clusterctl_cli.options import site_option


@click.command()
@site_option
@format_option()
def doctor(folder: Path, as_json: bool) -> int:
    """Print what is missing or wrong on this controller, and how to repair it. Changes nothing; needs no site.

    Exit code 3 when something is broken.
    """
    from clusterctl.operations import preparation
    from clusterctl_cli.render_diagnoses import show

    result = preparation.doctor(folder)
    show(result.found, as_json=as_json)
    return result.exit_code

"""`clusterctl burnin script`: the program that asks a node what the checks want to know, for other ways than SSH."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from clusterctl_cli.options import site_option, verbose_option


@click.command("script")
@click.option(
    "--output",
    "target",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file that is not there yet; without it, stdout.",
)
@site_option
@verbose_option
def script(target: Path | None, folder: Path) -> None:
    """Write the program that asks a node all that the checks of the site's suite want to know.

    Python 3.9 and root run it on a node, whatever way it comes there (Slurm, Ansible, a console); it changes nothing,
    and prints one JSON document. Kept as DIR/NODE.json, that is judged by burnin judge (docs/how-to/burnin-judge.md).
    """
    from clusterctl.edges.disk import disk_explained, write_whole
    from clusterctl.edges.site import contents, load_site
    from clusterctl.fleet.errors import UsageError
    from clusterctl_burnin.suites.suite import shipped_suite
    from clusterctl_burnin.sweep import sweep

    if (folder / "site.yml").exists():
        site = load_site(folder)
        program = sweep(contents.suite(site).checks, requirements=contents.host_requirements(site)).stdin
    else:
        program = sweep(shipped_suite().checks).stdin
    if target is None:
        sys.stdout.buffer.write(program)
        return
    if target.exists():
        raise UsageError("is there already", where=str(target), remedy="remove it or name another file")
    with disk_explained("the program cannot be written", target):
        write_whole(target, program, mode=0o644, over=False)

"""`clusterctl bootstrap --yes` with a seam around everything that it does, for the seams to be struck at.

    python -m tests.kills.controller SITE DIARY [BLOW …]

Composed of the same parts as the command itself; no switch in the product makes it behave otherwise.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from clusterctl.fleet.errors import ClusterctlError
from clusterctl.fleet.node import Step
from clusterctl.operations import bootstrap
from clusterctl.operations.bootstrap import RunRequest
from clusterctl.operations.context import open_site
from clusterctl.operations.operation import Control
from clusterctl.operations.site_adapters import SiteAdapters
from clusterctl_cli.progress import ProgressView
from clusterctl_cli.render import print_run
from clusterctl_cli.stopping import stoppable
from tests.kills.diary import Diary
from tests.kills.seams import Blow, Seams, strike
from tests.kills.struck_ports import StruckJournal, StruckOutside


def main(site: Path, diary_file: Path, blows: Sequence[Blow]) -> int:
    with Diary(diary_file) as diary:
        seams = Seams(diary, blows, strike)
        try:
            context = open_site(site)
            diary.write(began=context.run)
            context = replace(
                context,
                journal=StruckJournal(context.journal, seams),
                connect=lambda site, access: StruckOutside(SiteAdapters(site, access), seams),
            )
            with stoppable() as cancelled, ProgressView() as view:
                control = Control(None, view.on_event, cancelled)
                result = bootstrap.run(context, RunRequest(steps=tuple(Step)), control)
            print_run(context, result, as_json=False)
            code = result.exit_code
        except ClusterctlError as error:
            click.echo(f"error: {error}", err=True)
            return error.exit_code
        return code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), [Blow.parse(text) for text in sys.argv[3:]]))

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
from clusterctl.operations.adapters import Edges
from clusterctl.operations.bootstrap import Order, conduct
from clusterctl.operations.context import open_office
from clusterctl_cli.commands.steps import STEPS
from tests.kills.diary import Diary
from tests.kills.seams import Blow, Seams, strike
from tests.kills.struck_ports import StruckJournal, StruckOutside


def main(site: Path, diary_file: Path, blows: Sequence[Blow]) -> int:
    with Diary(diary_file) as diary:
        seams = Seams(diary, blows, strike)
        try:
            office = open_office(site)
            diary.write(began=office.run)
            office = replace(office, journal=StruckJournal(office.journal, seams))
            return conduct(office, StruckOutside(Edges(office.site), seams), Order(tuple(STEPS), yes=True))
        except ClusterctlError as error:
            click.echo(f"error: {error}", err=True)
            return error.exit_code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), [Blow.parse(text) for text in sys.argv[3:]]))

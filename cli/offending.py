"""Repeat offenders of the site, as its journal tells."""

from __future__ import annotations

from clusterctl.cli.office import CLOCK, Office
from clusterctl.fleet.offenders import KINDS, WINDOW, Offenders, offenders


def known_offenders(office: Office) -> Offenders:
    now = CLOCK.now()
    machines = {node.serial for node in office.journal.summaries() if node.serial}
    return offenders(office.journal.recent(KINDS, now - WINDOW), machines, now)

"""Repeat offenders of the site, as its journal tells."""

from __future__ import annotations

from clusterctl.fleet.hardware.parts import serials_in
from clusterctl.fleet.reporting.offenders import KINDS, WINDOW, Offenders, offenders
from clusterctl.fleet.state import NodeState
from clusterctl.operations.context import CLOCK, Office
from clusterctl_cli.render_offenders import offender_words, part_words


def known_offenders(office: Office) -> Offenders:
    now = CLOCK.now()
    machines = {node.serial for node in office.journal.summaries() if node.serial}
    return offenders(office.journal.recent(KINDS, now - WINDOW), machines, now)


def repeated(office: Office, node: NodeState) -> list[str]:
    """What the node did again and again, and what parts in it did, here or in other machines; none where nothing."""
    found = known_offenders(office)
    offender, parts = found.of(node.id), found.parts_in(node.id, serials_in(node))
    names = {one.id: one.name for one in office.journal.summaries()} if parts else {}
    machine = [f"quarantined {offender_words(offender)}"] if offender else []
    return machine + [part_words(part, names) for part in parts]

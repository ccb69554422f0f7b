"""WiringPlan → the text of a `wiring.csv`, which `wiring_csv` reads back as the same plan."""

from __future__ import annotations

import csv
import io

from clusterctl.fleet.node import Location
from clusterctl.fleet.wiring import WiringPlan
from clusterctl.formats.wiring_csv import REQUIRED

_COLUMNS = (
    *REQUIRED,
    *("source_rack", "source_unit", "destination_rack", "destination_unit", "cage", "rail", "cable_serial", "length_m"),
)


def wiring_csv(plan: WiringPlan) -> str:
    """One line for each cable, in the plan's order."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for cable in plan.cables:
        source, destination = cable.source, cable.destination
        writer.writerow(
            (
                *(source.device, source.port, destination.device, destination.port),
                *_cells(plan.locations.get(source.device)),
                *_cells(plan.locations.get(destination.device)),
                *(cable.cage, cable.rail, cable.serial),
                "" if cable.length_m is None else f"{cable.length_m:g}",
            )
        )
    return text.getvalue()


def _cells(location: Location | None) -> tuple[str, str]:
    if location is None or not location.rack:
        return ("", "")
    return (location.rack, "" if location.unit is None else str(location.unit))

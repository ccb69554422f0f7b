"""The dead man's alarm: did the nightly burn-in run?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from clusterctl.edges.night_record import read_record
from clusterctl.edges.site import Site
from clusterctl.fleet.diagnosis import Diagnosis, ok
from clusterctl.fleet.nightly.record import NAME, diagnose


def check(site: Site) -> Diagnosis:
    said = site.settings.nightly
    if said is None:
        return ok(NAME, "the site has no nightly burn-in")
    record = read_record(site.folder / "state")
    return diagnose(record, timedelta(hours=said.alarm_hours), datetime.now(UTC))

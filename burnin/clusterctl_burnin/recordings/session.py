"""A session with a node, apart from its probes' answers: kept as a piece of evidence of its own."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pydantic

from clusterctl.fleet.finding import Evidence
from clusterctl_burnin.probe import Readings
from clusterctl_burnin.suites.suite import Suite

SOURCE = "clusterctl burnin (session)"


class RecordedSession(pydantic.BaseModel):
    """`started`, `finished`: the node's clock; `sent`, `received`: the controller's. `driver_version`: the NVIDIA
    driver that was to be there; empty where none was named. `load`: of one node, which the session ran; empty for the
    checks' session. `commands`: its probes' command lines by their names, which depend on the method and the suite.
    `suite`: all that was asked for, also what the suite's file took over from another one (`Suite.as_dict`); empty
    where an older version wrote it.
    """

    model_config = pydantic.ConfigDict(frozen=True)

    boot_id: str
    started: pydantic.AwareDatetime
    finished: pydantic.AwareDatetime
    sent: pydantic.AwareDatetime
    received: pydantic.AwareDatetime
    driver_version: str = ""
    load: str = ""
    commands: Mapping[str, str] = {}
    suite: dict[str, Any] = {}


def session_evidence(
    readings: Readings, sent: datetime, received: datetime, driver_version: str, suite: Suite, *, load: str = ""
) -> Evidence:
    session = RecordedSession(
        boot_id=readings.boot_id,
        started=readings.started,
        finished=readings.finished,
        sent=sent,
        received=received,
        driver_version=driver_version,
        load=load,
        commands={name: result.command for name, result in readings.probes.items()} if load else {},
        suite=suite.as_dict(),
    )
    content = session.model_dump_json().encode()
    return Evidence(SOURCE, readings.host, readings.started, readings.origin, content)


def session_in(evidence: Evidence) -> RecordedSession | None:
    """Return the session; None where the evidence is another, or was not written by this version."""
    if evidence.source != SOURCE:
        return None
    try:
        return RecordedSession.model_validate_json(evidence.content)
    except pydantic.ValidationError:
        return None

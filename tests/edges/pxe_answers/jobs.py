"""Jobs that the tests render."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from clusterctl.edges.pxe.answers import AnswerJob, ReleaseSeries
from tests.edges.pxe_answers.service import TOKEN

SERVER = "http://10.9.0.1:8080"


def job(series: ReleaseSeries = ReleaseSeries.NOBLE, **changes: Any) -> AnswerJob:
    given: dict[str, Any] = {
        "name": "node001",
        "server": SERVER,
        "attempt": f"{SERVER}/t/{TOKEN}",
        "boot_mac": "52:54:00:00:00:01",
        "user": "ops",
        "authorized_key": "ssh-ed25519 AAAAC3Nza controller",
        "series": series,
        "time": datetime(2026, 1, 1, tzinfo=UTC),
        "iso": "noble/ubuntu.iso",
    }
    return AnswerJob(**(given | changes))

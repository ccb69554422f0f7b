"""The desk's records as the install step hears of them: states, addresses, evidence without secrets."""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict
from datetime import datetime
from typing import Any

from clusterctl.edges.pxe.attempt import Attempt, AttemptState
from clusterctl.edges.redaction import KNOWN
from clusterctl.fleet.finding import Evidence, Origin
from clusterctl.ports import InstallState, InstallStatus, InstallTarget

STATES = {
    AttemptState.READY: InstallState.READY,
    AttemptState.ARMED: InstallState.INSTALLING,
    AttemptState.SEEN: InstallState.INSTALLING,
    AttemptState.WRITING: InstallState.INSTALLING,
    AttemptState.DONE: InstallState.INSTALLED,
    AttemptState.FAILED: InstallState.FAILED,
    AttemptState.REFUSED: InstallState.FAILED,
}
ABSENT = InstallStatus(InstallState.ABSENT, "the machine is not on the desk")
MOST_LOG_BYTES = 16 << 20
_GZIP = b"\x1f\x8b"


def status_of(attempt: Attempt, target: InstallTarget) -> InstallStatus:
    """An attempt whose machine was not started yet is READY: it is to be started."""
    waiting = attempt.state is AttemptState.ARMED and not attempt.started
    state = InstallState.READY if waiting else STATES[attempt.state]
    last = attempt.milestones[-1].words if attempt.milestones else ""
    over = state in (InstallState.INSTALLED, InstallState.FAILED)
    return InstallStatus(
        state,
        attempt.reason or last or attempt.state.value,
        attempt.id,
        _addresses(attempt, target) if over else (),
        attempt.host_key,
        attempt.milestones,
        attempt.drives,
        makes_key=True,
    )


def record_evidence(attempt: Attempt, where: str, at: datetime, origin: Origin) -> Evidence:
    """The record as it lies on the desk, without what is secret or long."""
    record = asdict(attempt)
    for name in ("token", "boot", "documents"):
        del record[name]
    content = json.dumps(record, default=_plainly, indent=1)
    return Evidence(f"pxe desk {attempt.node}", where, at, origin, KNOWN(content).encode())


def log_evidence(attempt: Attempt, log: bytes, at: datetime, origin: Origin) -> Evidence:
    """The machine's own log, unpacked where it is gzip's."""
    return Evidence("the installer's log", attempt.node, at, origin, KNOWN.bytes(_unpacked(log)))


def _unpacked(log: bytes) -> bytes:
    """At most so much of it; what is no gzip, or broken in the middle, as far as it goes."""
    if not log.startswith(_GZIP):
        return log
    try:
        return zlib.decompressobj(wbits=31).decompress(log, MOST_LOG_BYTES)
    except zlib.error:
        return log


def _addresses(attempt: Attempt, target: InstallTarget) -> tuple[str, ...]:
    """Where the host will answer, the likeliest first: at what the site gives it, else from where it spoke."""
    given = target.network.answering(target.address) or (target.address, attempt.address)
    return tuple(dict.fromkeys(filter(None, given)))


def _plainly(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(getattr(value, "value", value))

"""What was read, as evidence: without secrets, bounded, marked where it comes from a rehearsal lab."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from clusterctl.fleet.finding import Origin
from clusterctl.formats.redfish.tree import ROOT, Answers, Unreadable

MAX_BYTES = 4 * 2**20
_SECRET = re.compile(r"passw|passphrase|secret|token|pwd$|privatekey|licensekey|community", re.IGNORECASE)


def origin(answers: Answers) -> Origin:
    """SIMULATED where the service root says that a rehearsal lab answers (`Oem.Clusterctl.Lab`)."""
    here: Any = answers.get(ROOT)
    for key in ("Oem", "Clusterctl", "Lab"):
        here = here.get(key) if isinstance(here, Mapping) else None
    return Origin.SIMULATED if here else Origin.REAL


def render(answers: Answers, problems: Sequence[str] = ()) -> bytes:
    """JSON with `read`, `unread` and `problems`; where it grows too long the longest resources go, by name."""
    read = {path: redact(body) for path, body in answers.items() if not isinstance(body, Unreadable)}
    unread = {path: body.reason for path, body in answers.items() if isinstance(body, Unreadable)}
    sizes = {path: len(_dump(body)) for path, body in read.items()}
    excess = sum(sizes.values()) - MAX_BYTES
    omitted: dict[str, int] = {}
    for path in sorted(sizes, key=lambda p: -sizes[p]):
        if excess <= 0:
            break
        excess -= sizes[path]
        omitted[path] = sizes[path]
        del read[path]
    return _dump({"problems": list(problems), "unread": unread, "omitted_bytes": omitted, "read": read}).encode()


def fits(answers: Answers) -> bool:
    """Whether `render` leaves nothing out."""
    return sum(len(_dump(redact(body))) for body in answers.values() if not isinstance(body, Unreadable)) <= MAX_BYTES


def redact(value: Any) -> Any:
    """The same JSON with what its name calls a secret blanked out."""
    if isinstance(value, Mapping):
        return {key: "<redacted>" if _blank(key, item) else redact(item) for key, item in value.items()}
    if isinstance(value, list):
        return [redact(item) for item in value]
    return value


def _blank(key: str, item: Any) -> bool:
    return isinstance(item, str) and bool(item) and bool(_SECRET.search(key))


def _dump(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)

"""What was read, as evidence: without secrets and bounded; and whether the BMC is marked as simulated."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from clusterctl.fleet.finding import SIMULATED_BMC
from clusterctl.formats.redfish.tree import Answers, Unreadable

MAX_BYTES = 4 * 2**20
_SECRET = re.compile(r"passw|passphrase|secret|token|pwd$|privatekey|licensekey|community", re.IGNORECASE)


def simulated(root: Any) -> bool:
    """Return whether the service root carries the marker of a simulated BMC."""
    for key in SIMULATED_BMC:
        root = root.get(key) if isinstance(root, Mapping) else None
    return bool(root)


def render(answers: Answers, problems: Sequence[str] = ()) -> bytes:
    """Return JSON with `read`, `unread` and `problems`; where it is too long the longest resources are left out."""
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
    whole = _dump({"problems": list(problems), "unread": unread, "omitted_bytes": omitted, "read": read})
    return whole.encode(errors="backslashreplace")


def fits(answers: Answers) -> bool:
    """Return whether `render` leaves nothing out."""
    return sum(len(_dump(redact(body))) for body in answers.values() if not isinstance(body, Unreadable)) <= MAX_BYTES


def redact(value: Any) -> Any:
    """Return the same JSON without the values that are secret by their names."""
    if isinstance(value, Mapping):
        return {key: "<redacted>" if _blank(key, item) else redact(item) for key, item in value.items()}
    if isinstance(value, list):
        return [redact(item) for item in value]
    return value


def _blank(key: str, item: Any) -> bool:
    return isinstance(item, str) and bool(item) and bool(_SECRET.search(key))


def _dump(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)

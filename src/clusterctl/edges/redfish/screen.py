"""The machine's screen or console through its BMC; it changes nothing on the machine.

A BMC that offers neither, refuses, is too slow or answers something else gives nothing: no step depends on it.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Mapping
from functools import partial

from clusterctl.edges.redfish.session import RedfishSession
from clusterctl.fleet.bmc.screen import MAX_PICTURE, Screen, console, picture
from clusterctl.fleet.errors import CancelledError, ClusterctlError
from clusterctl.formats.redfish.screen import PICTURE, read_screen_source
from clusterctl.formats.redfish.tree import Answer
from clusterctl.ports import Deadline

log = logging.getLogger(__name__)
_BODY = {"FileType": "ServerScreenShot"}
_DELL = "dell"


def read_screen(session: RedfishSession, deadline: Deadline) -> Screen | None:
    """Return what the machine shows now; None where the BMC does not give it."""
    try:
        ask = partial(read_screen_source, dell=session.quirks.vendor == _DELL)
        source, _ = session.walk(ask, deadline)
        if not source.target:
            return console(list(source.lines))
        reply = session.write(source.target, _BODY, deadline)
    except CancelledError:
        raise
    except ClusterctlError as error:
        log.info("the BMC gives no picture of the screen: %s", error.message)
        return None
    return _decoded(reply.answer) if reply.ok else None


def _decoded(answer: Answer) -> Screen | None:
    text = answer.get(PICTURE) if isinstance(answer, Mapping) else None
    if not isinstance(text, str) or len(text) > 2 * MAX_PICTURE:
        return None
    try:
        return picture(base64.b64decode(text, validate=False))
    except ValueError:  # no Base64, or no ASCII
        return None

"""Where a BMC shows the machine's screen or its serial console.

Dell     the action DellLCService.ExportServerScreenShot (iDRAC9 Redfish API guide; its service is recorded at
         Managers/iDRAC.Embedded.1/Oem/Dell/DellLCService): the answer holds a picture in Base64
OpenBMC  the log service HostLogger of the System (bmcweb, Redfish.md): one entry a line of the host's serial console
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from clusterctl.fleet.errors import EdgeError, ParseError
from clusterctl.formats.redfish.system import systems
from clusterctl.formats.redfish.tree import Answers, NotYetReadError, ReadRequest, RedfishTree, Resource, normal

PICTURE = "ServerScreenShotFile"
"""The property of Dell's answer."""
_ACTION = "#DellLCService.ExportServerScreenShot"
_SERVICE = "Oem/Dell/DellLCService"
_CONSOLE = "hostlogger"


@dataclass(frozen=True, slots=True)
class ScreenSource:
    """`target` of the action that takes a picture, and the console's lines; empty where the BMC offers neither."""

    target: str = ""
    lines: tuple[str, ...] = ()


def read_screen_source(answers: Answers, *, dell: bool) -> ScreenSource | ReadRequest:
    """Return what the BMC offers. A resource that it does not give offers nothing; only Dell is asked for Dell's."""
    tree = RedfishTree(answers)
    try:
        return _with_picture(tree) if dell else ScreenSource(lines=_console(tree))
    except NotYetReadError:
        return ReadRequest(tuple(tree.wanted))
    except (EdgeError, ParseError):
        return ScreenSource()


def _with_picture(tree: RedfishTree) -> ScreenSource:
    for manager in tree.members(tree.root, "Managers", whole=False):
        service = tree.attempt(partial(tree.get, f"{manager.path}/{_SERVICE}"))
        target = service.text("Actions", _ACTION, "target") if service else ""
        if target:
            return ScreenSource(normal(target, manager.where(_ACTION)))
    return ScreenSource()


def _console(tree: RedfishTree) -> tuple[str, ...]:
    for host in systems(tree):
        if not host.has("LogServices"):
            continue
        for service in tree.members(host, "LogServices", whole=False):
            if service.id.lower() == _CONSOLE and service.has("Entries"):
                return tuple(_lines(tree.follow(service, "Entries")))
    return ()


def _lines(entries: Resource | None) -> list[str]:
    """Return the lines of the page that the BMC gives first, in its order."""
    return [item.text("Message") for item in entries.each("Members")] if entries else []

"""Virtual media (DMTF VirtualMedia schema; recorded at Dell and Supermicro): images by HTTP or HTTPS."""

from __future__ import annotations

from functools import partial
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from clusterctl_lab.boot import Medium
from clusterctl_lab.emulators.redfish.context import BmcContext, Writes
from clusterctl_lab.emulators.redfish.exchange import Answer, Request, only, required
from clusterctl_lab.emulators.redfish.profile import Problem, RefusedError
from clusterctl_lab.emulators.redfish.resource import Resource, counted, head
from clusterctl_lab.emulators.redfish.traits import Traits
from clusterctl_lab.emulators.redfish.view import View

INSERT, EJECT = "Actions/VirtualMedia.InsertMedia", "Actions/VirtualMedia.EjectMedia"
_SCHEMES = ("http", "https")
_PARAMETERS = (
    "Image",
    "Inserted",
    "WriteProtected",
    "TransferMethod",
    "TransferProtocolType",
    "MediaType",
    "UserName",
    "Password",
)


class VirtualMedia:
    """Nothing is fetched when a medium goes in, as with TransferMethod Stream."""

    def __init__(self, context: BmcContext) -> None:
        self._context = context
        self.writes: Writes = {
            ("POST", f"{device}/{action}"): partial(work, device)
            for device in context.profile.paths.media
            for action, work in ((INSERT, self._insert), (EJECT, self._eject))
        }

    def _insert(self, device: str, request: Request, _: Traits) -> Answer:
        body = request.json()
        only(body, _PARAMETERS)
        image = str(required(body, "Image"))
        protected = required(body, "WriteProtected", kind=bool) if "WriteProtected" in body else True
        if urlsplit(image).scheme not in _SCHEMES or not urlsplit(image).hostname:
            raise RefusedError(Problem.VALUE_REFUSED, "Image")
        if device in self._context.state.media:
            raise RefusedError(Problem.MEDIA_IN_USE)
        self._context.state.media[device] = Medium(image, protected)
        return Answer(204)

    def _eject(self, device: str, request: Request, _: Traits) -> Answer:
        only(request.json(), ())
        if device not in self._context.state.media:
            raise RefusedError(Problem.NO_MEDIA)
        del self._context.state.media[device]
        return Answer(204)


def device_resource(path: str, view: View, types: tuple[str, ...], name: str) -> Resource:
    """One virtual drive; `types` as the schema has them: CD, DVD, USBStick, Floppy."""
    medium = dict(view.media).get(path)
    return {
        **head(path, "VirtualMedia.v1_4_0.VirtualMedia", name),
        "Actions": {
            "#VirtualMedia.EjectMedia": {"target": f"{path}/{EJECT}"},
            "#VirtualMedia.InsertMedia": {"target": f"{path}/{INSERT}"},
        },
        "ConnectedVia": "URI" if medium else "NotConnected",
        "Image": medium.image if medium else None,
        "ImageName": PurePosixPath(urlsplit(medium.image).path).name if medium else None,
        "Inserted": medium is not None,
        **counted("MediaTypes", list(types)),
        "Password": None,
        "TransferMethod": "Stream" if medium else None,
        "TransferProtocolType": urlsplit(medium.image).scheme.upper() if medium else None,
        "UserName": None,
        "WriteProtected": medium.write_protected if medium else None,
    }

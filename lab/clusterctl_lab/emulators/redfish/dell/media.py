"""Virtual drives; recorded at Managers/iDRAC.Embedded.1/VirtualMedia."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish.dell import paths
from clusterctl_lab.emulators.redfish.resource import Resource, collection
from clusterctl_lab.emulators.redfish.services.media import device_resource
from clusterctl_lab.emulators.redfish.view import View

_DRIVES = {paths.CD: (("CD", "DVD"), "Virtual CD"), paths.REMOVABLE_DISK: (("USBStick",), "Virtual Removable Disk")}


def resources(view: View) -> Iterator[Resource]:
    yield collection(paths.VIRTUAL_MEDIA, "VirtualMediaCollection", "Virtual Media Services", paths.MEDIA)
    for path, (types, name) in _DRIVES.items():
        yield device_resource(path, view, types, name)

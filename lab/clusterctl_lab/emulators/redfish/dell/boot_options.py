"""The entries of the boot order; recorded at Systems/System.Embedded.1/BootOptions."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.boot import options
from clusterctl_lab.emulators.redfish.dell import paths
from clusterctl_lab.emulators.redfish.resource import Resource, collection
from clusterctl_lab.emulators.redfish.services.boot import option_resource
from clusterctl_lab.emulators.redfish.view import View


def resources(view: View) -> Iterator[Resource]:
    entries = [option_resource(paths.BOOT_OPTIONS, option) for option in options(view.machine)]
    members = [entry["@odata.id"] for entry in entries]
    yield collection(paths.BOOT_OPTIONS, "BootOptionCollection", "Boot Options Collection", members)
    yield from entries

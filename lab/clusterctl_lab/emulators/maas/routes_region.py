"""What MAAS is made of: subnets and ranges, images, rack controllers, settings."""

from __future__ import annotations

from typing import Any

from clusterctl_lab.emulators.maas import region
from clusterctl_lab.emulators.maas import render_parts as parts
from clusterctl_lab.emulators.maas.call import Call, Routes, Text
from clusterctl_lab.emulators.maas.refusal import bad_form, no_such

routes = Routes()


@routes.on("/subnets/", "GET")
def subnets(call: Call) -> Any:
    return [_subnet(call)]


@routes.on("/ipranges/", "GET")
def ip_ranges(call: Call) -> Any:
    return [region.dynamic_range(_subnet(call), call.service.world.layout)]


def _subnet(call: Call) -> parts.Json:
    subnet = parts.subnet(call.service.world.layout)
    if call.service.faults.dhcp_off:
        subnet["vlan"] = {**subnet["vlan"], "dhcp_on": False, "primary_rack": None}
    return subnet


@routes.on("/boot-resources/", "GET", admin=True)
def boot_resources(call: Call) -> Any:
    return [shown for _, shown in region.boot_resources(call.service.images)]


@routes.on("/boot-resources/{resource}/", "GET", admin=True)
def boot_resource(call: Call) -> Any:
    for image, shown in region.boot_resources(call.service.images):
        if str(shown["id"]) == call.arg("resource"):
            return {**shown, "sets": region.boot_resource_sets(image, call.service.faults.unsynced)}
    raise no_such("BootResource")


@routes.on("/boot-resources/", "POST", "import", admin=True)
def import_boot_resources(call: Call) -> Any:
    del call
    return Text("Import of boot resources started")


@routes.on("/rackcontrollers/", "GET")
def rack_controllers(call: Call) -> Any:
    connected = call.service.faults.rack_reaches
    return [region.rack_controller(call.service.world.layout, connected=connected)]


@routes.on("/rackcontrollers/{system_id}/", "GET", "list_boot_images")
def rack_images(call: Call) -> Any:
    if call.arg("system_id") != region.RACK:
        raise no_such("RackController")
    faults = call.service.faults
    return region.rack_images(call.service.images, faults.unsynced | faults.rack_without, connected=faults.rack_reaches)


@routes.on("/maas/", "GET", "get_config")
def get_config(call: Call) -> Any:
    settings = call.service.settings
    name = call.query.get("name", "")
    if name not in settings:
        listed = ", ".join(settings)
        raise bad_form(**{name: f"{name} is not a valid config setting (valid settings are: {listed})."})
    return settings[name]

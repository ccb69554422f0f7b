"""The BIOS's attribute registry; recorded at Systems/System.Embedded.1/Bios/BiosRegistry, some fields of each entry.

Registries contains its location (DMTF MessageRegistryFile schema; Dell's ids are the registry's name).
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish.dell import paths
from clusterctl_lab.emulators.redfish.dell.bios import ATTRIBUTES, REGISTRY
from clusterctl_lab.emulators.redfish.profile import BiosAttribute
from clusterctl_lab.emulators.redfish.resource import Resource, collection, head
from clusterctl_lab.emulators.redfish.view import View


def resources(view: View) -> Iterator[Resource]:
    del view
    file = f"{paths.REGISTRIES}/{REGISTRY}"
    yield collection(paths.REGISTRIES, "MessageRegistryFileCollection", "Registry File Collection", [file])
    yield {
        **head(file, "MessageRegistryFile.v1_1_0.MessageRegistryFile", "BIOS Attribute Registry File"),
        "Languages": ["En"],
        "Location": [{"Language": "En", "Uri": paths.BIOS_REGISTRY}],
        "Registry": REGISTRY,
    }
    yield {
        **head(paths.BIOS_REGISTRY, "AttributeRegistry.v1_3_6.AttributeRegistry", "BIOS Attribute Registry"),
        "Id": REGISTRY,
        "Language": "en",
        "OwningEntity": "Dell",
        "RegistryEntries": {"Attributes": [_entry(name, one) for name, one in ATTRIBUTES.items()]},
    }


def _entry(name: str, attribute: BiosAttribute) -> Resource:
    kind = "Enumeration" if attribute.allowed else "Integer" if isinstance(attribute.default, int) else "String"
    values = {"Value": [{"ValueName": value} for value in attribute.allowed]} if attribute.allowed else {}
    return {
        "AttributeName": name,
        "CurrentValue": None,
        "Hidden": False,
        "Immutable": attribute.read_only,
        "ReadOnly": attribute.read_only,
        "ResetRequired": True,
        "Type": kind,
        **values,
    }

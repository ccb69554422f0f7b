"""What a BMC tells anybody who asks for `/redfish/v1/` (DMTF DSP0266, ServiceRoot).

`Oem.Dell.ServiceTag` and `.ManagerMACAddress` as recorded at an iDRAC9; the root of a Supermicro names no vendor, but
has an `Oem.Supermicro`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clusterctl.fleet.bmc import Greeting
from clusterctl.formats.redfish.evidence import simulated
from clusterctl.formats.redfish.lenient import mac, serial_like, uuid, words
from clusterctl.formats.redfish.tree import ROOT, Resource

_VENDORS = {
    "ami": "AMI",
    "asrockrack": "ASRockRack",
    "dell": "Dell",
    "gigabyte": "Gigabyte",
    "hp": "HPE",
    "hpe": "HPE",
    "lenovo": "Lenovo",
    "nvidia": "NVIDIA",
    "openbmc": "OpenBMC",
    "supermicro": "Supermicro",
}
"""The first word of what is told as vendor, or the name of an `Oem` object → the vendor as we write it."""


def is_service_root(root: Mapping[str, Any]) -> bool:
    """Whether JSON that came back for `/redfish/v1/` is a Redfish service's."""
    kind = root.get("@odata.type")
    return isinstance(root.get("RedfishVersion"), str) or (isinstance(kind, str) and kind.startswith("#ServiceRoot."))


def read_greeting(root: Mapping[str, Any]) -> Greeting:
    """A field of a wrong type counts as not told."""
    resource = Resource(ROOT, root)
    return Greeting(
        vendor=_vendor(resource),
        product=words(resource, "Product"),
        redfish_version=words(resource, "RedfishVersion"),
        uuid=uuid(resource),
        serial=serial_like(words(resource, "Oem", "Dell", "ServiceTag")),
        bmc_mac=mac(words(resource, "Oem", "Dell", "ManagerMACAddress")),
        simulated=simulated(root),
    )


def known_vendor(text: str) -> str:
    """`Dell Inc.` → `Dell`; empty where the vendor is not one that we know."""
    return _VENDORS.get(text.strip().split(" ", 1)[0].lower(), "")


def _vendor(root: Resource) -> str:
    """As told, in our spelling where we have one; else by the vendor's own part of the root."""
    said = words(root, "Vendor")
    oem = root.body.get("Oem")
    names = (said, *oem) if isinstance(oem, Mapping) else (said,)
    return next((known for name in names if (known := known_vendor(name))), said)

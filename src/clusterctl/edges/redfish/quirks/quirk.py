"""The type of a vendor's quirks: where its BMCs deviate from the standard."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from clusterctl.edges.redfish.connection import RefusalMessage
from clusterctl.fleet.bmc.boot import BootSource
from clusterctl.formats.redfish.tree import Resource

LATER = (
    "ResourceInUse",
    "ResourceInStandby",
    "ServiceInUnknownState",
    "ServiceShuttingDown",
    "ServiceTemporarilyUnavailable",
)
"""Keys of messages of the DMTF Base registry that refuse for now, not for good."""


@dataclass(frozen=True, slots=True)
class Quirks:
    """The defaults are the standard.

    signs                    beginnings of Vendor, Manufacturer, Product, Model or an Oem key of its service root or
                             Manager, in lower case
    keep_alive               its connections may be used again
    login_tries              tries of a login that is answered 401: more than one where the vendor is known for wrong
                             rejections, and always below the BMC's lock-out limit
    later                    keys of messages that refuse for now
    later_texts              parts of messages that refuse for now under a key without meaning
    remedies                 key of a message → remedy
    remedy_texts             part of a message, in lower case → remedy, where its key has no meaning
    whole_boot               a PATCH of `Boot` must repeat all its properties
    attributes_boot          the manager's attributes that choose a device for one boot, by source
    """

    vendor: str
    signs: tuple[str, ...] = ()
    keep_alive: bool = True
    login_tries: int = 1
    later: tuple[str, ...] = LATER
    later_texts: tuple[str, ...] = ()
    remedies: Mapping[str, str] = field(default_factory=dict)
    remedy_texts: Mapping[str, str] = field(default_factory=dict)
    whole_boot: bool = False
    attributes_boot: Mapping[BootSource, Mapping[str, str]] = field(default_factory=dict)

    def made(self, resource: Resource) -> bool:
        """Return whether a service root or Manager is this vendor's; `ParseError` where its names are no text."""
        names = [resource.text(key) for key in ("Vendor", "Manufacturer", "Product", "Model")]
        oem = resource.value("Oem")
        names += [str(key) for key in oem] if isinstance(oem, Mapping) else []
        return any(name.lower().startswith(sign) for name in names for sign in self.signs)

    def means_later(self, messages: Iterable[RefusalMessage]) -> bool:
        """Return whether the BMC refuses for now."""
        return any(
            message.key in self.later or any(text in message.text for text in self.later_texts) for message in messages
        )

    def remedy(self, messages: Iterable[RefusalMessage]) -> str:
        """Return the remedy for a refusal; empty where none is known."""
        for message in messages:
            if message.key in self.remedies:
                return self.remedies[message.key]
            for text, remedy in self.remedy_texts.items():
                if text in message.text.lower():
                    return remedy
        return ""

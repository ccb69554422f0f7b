"""What one vendor's BMCs do otherwise than the standard has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from clusterctl.fleet.bmc.boot import BootSource
from clusterctl.formats.redfish.tree import Resource

LATER = (
    "ResourceInUse",
    "ResourceInStandby",
    "ServiceInUnknownState",
    "ServiceShuttingDown",
    "ServiceTemporarilyUnavailable",
)
"""Messages of the DMTF Base registry that refuse for now, not for good."""


@dataclass(frozen=True, slots=True)
class Quirks:
    """The standard, where nothing else is said.

    signs                    what Vendor, Manufacturer, Product, Model or an Oem key of its service root or Manager
                             begins with, in lower case
    keep_alive               its connections may be used again
    login_tries              so often a log-in is tried that was answered 401: more than once where the vendor is known
                             for 401s that mean nothing, and always below the BMC's own lock-out limit
    later                    words of a refusal that means: not now
    remedies                 words of a refusal → what a person is to do
    whole_boot               a PATCH of `Boot` must repeat all that is in it
    attributes_boot          the manager's attributes that choose a device for one boot, by source
    """

    vendor: str
    signs: tuple[str, ...] = ()
    keep_alive: bool = True
    login_tries: int = 1
    later: tuple[str, ...] = LATER
    remedies: Mapping[str, str] = field(default_factory=dict)
    whole_boot: bool = False
    attributes_boot: Mapping[BootSource, Mapping[str, str]] = field(default_factory=dict)

    def made(self, resource: Resource) -> bool:
        """Whether a service root, or a Manager, is this vendor's; `ParseError` where its names are no text."""
        told = [resource.text(key) for key in ("Vendor", "Manufacturer", "Product", "Model")]
        oem = resource.value("Oem")
        told += [str(key) for key in oem] if isinstance(oem, Mapping) else []
        return any(text.lower().startswith(sign) for text in told for sign in self.signs)

    def means_later(self, words: str) -> bool:
        return any(sign in words for sign in self.later)

    def remedy(self, words: str) -> str:
        """What to do about a refusal in these words; empty where nobody knows."""
        return next((remedy for sign, remedy in self.remedies.items() if sign.lower() in words.lower()), "")

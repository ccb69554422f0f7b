"""Collections that come with their members in them: whether a BMC offers that, and how it is asked for."""

from __future__ import annotations

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.redfish.resource import ROOT, Answers, Resource, Unreadable

_ASKED = "?$expand="
_REFUSALS = 2


def expansion(answers: Answers, path: str) -> str:
    """The query that asks for a collection with its members in it; empty where the BMC does not offer that.

    Offers: ServiceRoot, `ProtocolFeaturesSupported.ExpandQuery` (DSP0266, "Expand"). A BMC that refused twice what it
    offers is not asked so again, but for what it gave already.
    """
    root = answers.get(ROOT)
    offer = Resource(ROOT, root) if root is not None and not isinstance(root, Unreadable) else None
    try:
        sign = "" if offer is None else _sign(offer)
    except ParseError:
        return ""
    query = f"{_ASKED}{sign}" if sign else ""
    refused = [asked for asked, answer in answers.items() if _ASKED in asked and isinstance(answer, Unreadable)]
    return "" if len(refused) >= _REFUSALS and path + query not in answers else query


def _sign(root: Resource) -> str:
    keys = ("ProtocolFeaturesSupported", "ExpandQuery")
    levels = "($levels=1)" if root.flag(*keys, "Levels") else ""
    if root.flag(*keys, "NoLinks"):
        return f".{levels}"
    return f"*{levels}" if root.flag(*keys, "ExpandAll") else ""

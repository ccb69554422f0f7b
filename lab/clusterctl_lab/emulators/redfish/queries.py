"""Query parameters of a GET (DSP0266, "Query parameters"): `$expand`, and the pages that `$skip` leads to.

`$expand` is served where the service root offers it, one level deep: links become the resources they lead to, those
below `Links` only where `*` or `~` asks for them. Other parameters are passed over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

from clusterctl_lab.emulators.redfish.profile import Problem, RefusedError
from clusterctl_lab.emulators.redfish.resource import Resource

_EXPAND, _SKIP = "$expand", "$skip"
_OFFERS = {".": "NoLinks", "*": "ExpandAll", "~": "Links"}


def read(tree: Mapping[str, Resource], path: str, query: str, root: str) -> Resource:
    """The resource as it is asked for. A page is served where the tree has it under its full address."""
    asked = parse_qs(query)
    if _SKIP in asked:
        page = f"{path}?{query}"
        if page not in tree:
            raise RefusedError(Problem.NOT_FOUND, page)
        return tree[page]
    sign = asked.get(_EXPAND, [""])[0][:1]
    if not _offered(tree, root, sign):
        return tree[path]
    return {key: _expanded(value, tree, key, sign) for key, value in tree[path].items()}


def _offered(tree: Mapping[str, Resource], root: str, sign: str) -> bool:
    features = tree.get(root, {}).get("ProtocolFeaturesSupported", {})
    return bool(sign in _OFFERS and features.get("ExpandQuery", {}).get(_OFFERS[sign]))


def _expanded(value: Any, tree: Mapping[str, Resource], key: str, sign: str) -> Any:
    """A value with the links in it followed; `key` is what it, or the object around it, stands under."""
    below_links = key == "Links"
    if (sign == "." and below_links) or (sign == "~" and not below_links and isinstance(value, dict)):
        return value
    if isinstance(value, list):
        return [_expanded(one, tree, key, sign) for one in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"@odata.id"}:
        return tree.get(str(value["@odata.id"]).rstrip("/"), value)
    return {name: _expanded(inner, tree, key if below_links else name, sign) for name, inner in value.items()}

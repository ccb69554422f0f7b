"""ETags and If-Match (RFC 9110, sections 8.8.3 and 13.1.1; DSP0266, "Protecting against the lost update problem")."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from clusterctl_lab.emulators.redfish.profile import Problem, RefusedError
from clusterctl_lab.emulators.redfish.resource import Resource
from clusterctl_lab.emulators.redfish.traits import Etag, IfMatch

_PROPERTY = "@odata.etag"


def tagged(resource: Resource, kind: Etag) -> tuple[Resource, Mapping[str, str]]:
    """Return the resource and its header, both with its ETag where this BMC has ETags."""
    if kind is Etag.NONE:
        return resource, {}
    tag = f"W/{_opaque(resource)}" if kind is Etag.WEAK else _opaque(resource)
    return {**resource, _PROPERTY: tag}, {"ETag": tag}


def check(if_match: str, resource: Resource | None, rule: IfMatch) -> None:
    """Refuse a change with an unmet precondition. `resource` is the current state, None for an action, which has no
    ETag to match. A weak ETag matches nothing (RFC 9110).
    """
    if rule is IfMatch.IGNORED:
        return
    if not if_match:
        if rule is IfMatch.REQUIRED and resource is not None:
            raise RefusedError(Problem.PRECONDITION_REQUIRED)
        return
    named = [tag.strip() for tag in if_match.split(",")]
    met = resource is not None and (named == ["*"] or _opaque(resource) in named)
    if rule is IfMatch.REFUSED or not met:
        raise RefusedError(Problem.PRECONDITION_FAILED)


def _opaque(resource: Resource) -> str:
    """The ETag without its weakness: the recorded one, else one that is made of the content."""
    given = resource.get(_PROPERTY)
    if isinstance(given, str):
        return given.removeprefix("W/")
    digest = hashlib.sha256(json.dumps(resource, sort_keys=True).encode()).hexdigest()
    return f'"{digest[:16]}"'

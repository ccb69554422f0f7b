"""What `docker info --format '{{json .}}'` says of the daemon."""

from __future__ import annotations

from dataclasses import dataclass

import pydantic

from clusterctl.fleet.errors import ParseError

_WHERE = "docker info"


@dataclass(frozen=True, slots=True)
class DockerInfo:
    """`version` of the daemon, empty where none answered; `errors`: why not, in the command's words."""

    version: str
    errors: tuple[str, ...]


class _Document(pydantic.BaseModel):
    ServerVersion: str = ""
    ServerErrors: tuple[str, ...] | None = None


def parse_docker_info(text: str) -> DockerInfo:
    """Read the JSON document; `ParseError` where it is none, or tells neither a version nor an error."""
    try:
        document = _Document.model_validate_json(text)
    except pydantic.ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise ParseError(f"not understood: {first['msg']}", where=_WHERE) from None
    errors = document.ServerErrors or ()
    if not document.ServerVersion and not errors:
        raise ParseError("neither a version of the daemon nor an error", where=_WHERE)
    return DockerInfo(document.ServerVersion, errors)

"""What `burnin/clusterctl_burnin/node/fingerprints.py` says of a host's drives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pydantic

from clusterctl.fleet.errors import ParseError


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """SHA-256 over parts of a drive, or why they could not be read."""

    digest: str
    error: str


class _Row(pydantic.BaseModel):
    fingerprint: str = ""
    error: str = ""


_DOCUMENT = pydantic.TypeAdapter(dict[str, _Row])


def parse_fingerprints(text: str) -> Mapping[str, Fingerprint]:
    """By the drive's path."""
    try:
        rows = _DOCUMENT.validate_json(text)
    except pydantic.ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise ParseError(f"not understood: {first['msg']}", where="fingerprints") from None
    return {path: Fingerprint(row.fingerprint, row.error) for path, row in rows.items()}

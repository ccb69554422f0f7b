"""The JSON document of the node's built-in `adapter-boards`: which board each adapter is."""

from __future__ import annotations

from collections.abc import Mapping

import pydantic

from clusterctl.fleet.errors import ParseError


class _Adapter(pydantic.BaseModel):
    name: str
    psid: str | None


class _Document(pydantic.BaseModel):
    adapters: tuple[_Adapter, ...]


def parse_adapter_boards(text: str) -> Mapping[str, str | None]:
    """PSID by adapter (`mlx5_0`); None where the driver does not tell it. `ParseError` where it is no such document."""
    try:
        document = _Document.model_validate_json(text)
    except pydantic.ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise ParseError(f"not understood: {first['msg']}", where=f"adapter-boards {field}".strip()) from None
    return {adapter.name: adapter.psid for adapter in document.adapters}

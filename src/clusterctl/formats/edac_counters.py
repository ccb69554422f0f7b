"""The JSON document of the node's built-in `edac-counters`: memory errors by module, as the kernel counted them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import pydantic

from clusterctl.fleet.errors import ParseError

_WHERE = "edac-counters"
Count = Annotated[int, pydantic.Field(ge=0)]


@dataclass(frozen=True, slots=True)
class MemoryErrors:
    """What was counted in `seconds`, since the driver was loaded or the counters were reset.

    `name`: the module by its EDAC label, or `mc0 dimm3` where it has none; a controller's errors that the hardware
    could not place have the controller's name, and `placed` is False.
    """

    name: str
    location: str
    corrected: int
    uncorrected: int
    seconds: int
    placed: bool = True


class _Module(pydantic.BaseModel):
    name: str
    label: str | None
    location: str | None
    corrected: Count
    uncorrected: Count


class _Controller(pydantic.BaseModel):
    name: str
    driver: str | None
    seconds: Count
    corrected_nowhere: Count
    uncorrected_nowhere: Count
    modules: tuple[_Module, ...]


class _Document(pydantic.BaseModel):
    controllers: tuple[_Controller, ...]


def parse_edac_counters(text: str) -> tuple[MemoryErrors, ...]:
    """Every module, and of each controller the errors of no known module; nothing where no EDAC driver is loaded.

    `ParseError` where it is no such document, or a count could not be read.
    """
    try:
        document = _Document.model_validate_json(text)
    except pydantic.ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise ParseError(f"not understood: {first['msg']}", where=f"{_WHERE} {field}".strip()) from None
    return tuple(found for controller in document.controllers for found in _errors(controller))


def _errors(mc: _Controller) -> Iterator[MemoryErrors]:
    for module in mc.modules:
        name = module.label or f"{mc.name} {module.name}"
        yield MemoryErrors(name, module.location or "", module.corrected, module.uncorrected, mc.seconds)
    yield MemoryErrors(mc.name, mc.driver or "", mc.corrected_nowhere, mc.uncorrected_nowhere, mc.seconds, placed=False)

"""Recorded evidence of one node's checks, as a file: what its probes answered, and what was expected of it then.

A file may also hold the bare answer, as the node printed it: then the caller knows the node and what is expected.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

import pydantic

from clusterctl.fleet.codec import inventory_from_data
from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.node import Inventory, Serial
from clusterctl.formats.site.yaml_problems import first_in_words
from clusterctl_burnin.probe import Readings, ReadingsDocument

Text = Annotated[str, pydantic.Field(min_length=1)]


class _File(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")

    version: Literal[1]
    node: Text
    serial: Text
    sku: Text
    population: str = ""
    driver_version: str = ""
    sent: pydantic.AwareDatetime | None = None
    received: pydantic.AwareDatetime | None = None
    inventory: dict[str, object] | None = None
    readings: ReadingsDocument


@dataclass(frozen=True, slots=True)
class Recording:
    """`sent` and `received` are the controller's clock around the session; None where that was not kept. `population`:
    the nodes that the figures are compared with, its SKU where the file names none.
    """

    node: str
    serial: Serial
    sku: str
    population: str
    driver_version: str
    sent: datetime | None
    received: datetime | None
    inventory: Inventory | None
    readings: Readings


Owner = Callable[[], Mapping[str, object]]
"""The fields of a recording but its readings, of the node that a bare answer is from."""


def parse_recording(text: bytes, *, where: str, owner: Owner | None = None) -> Recording:
    """Return the recording. Raise ParseError with the file and the field."""
    try:
        file = _file(text, owner)
        inventory = inventory_from_data(file.inventory) if file.inventory is not None else None
        readings = file.readings.readings()
    except ParseError as error:
        raise ParseError(error.message, where=where, remedy=error.remedy) from None
    except pydantic.ValidationError as error:
        field, message = first_in_words(error)
        remedy = "docs/how-to/burnin-judge.md shows the layout"
        raise ParseError(message, where=f"{where}: {field}" if field else where, remedy=remedy) from None
    return Recording(
        node=file.node,
        serial=Serial(file.serial),
        sku=file.sku,
        population=file.population or file.sku,
        driver_version=file.driver_version,
        sent=file.sent,
        received=file.received,
        inventory=inventory,
        readings=readings,
    )


def _file(text: bytes, owner: Owner | None) -> _File:
    try:
        return _File.model_validate_json(text)
    except pydantic.ValidationError as error:
        found = {(item["type"], item["loc"]) for item in error.errors(include_input=False, include_url=False)}
        if owner is None or not found >= _BARE:
            raise
    return _File.model_validate({**owner(), "readings": json.loads(text)})


_BARE = {("missing", ("readings",)), ("extra_forbidden", ("probes",))}
"""What is wrong with a bare answer, taken for a recording."""

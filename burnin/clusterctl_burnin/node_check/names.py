"""Names of Python 3.11 that the code uses and Python 3.10 lacks; imported first in the node's file."""

from __future__ import annotations

import datetime as dt
import enum
import typing

if not hasattr(enum, "StrEnum"):

    class StrEnum(str, enum.Enum):  # noqa: UP042 — this is the name's replacement
        """An enumeration of texts, as Python 3.11 has it."""

        def __str__(self) -> str:
            return str(self.value)

    vars(enum)["StrEnum"] = StrEnum
if not hasattr(dt, "UTC"):
    vars(dt)["UTC"] = dt.timezone.utc  # noqa: UP017 — this is the name's replacement
for _name in ("Self", "Never", "LiteralString", "Required", "NotRequired"):
    if not hasattr(typing, _name):
        vars(typing)[_name] = typing.Any
if not hasattr(typing, "assert_never"):

    def _assert_never(value: object) -> typing.NoReturn:
        raise AssertionError(f"unexpected: {value!r}")

    vars(typing)["assert_never"] = _assert_never

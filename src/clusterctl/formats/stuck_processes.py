"""The JSON document of the node's built-in `stuck-processes`: who slept in the kernel for as long as it was watched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pydantic

from clusterctl.fleet.errors import ParseError

_WHERE = "stuck-processes"


@dataclass(frozen=True, slots=True)
class StuckProcess:
    """`kernel`: a thread of the kernel's own; `waits_in`: its function in the kernel, empty where that is not told;
    `seconds`: for so long it was watched, and did not run once.
    """

    pid: int
    name: str
    kernel: bool
    waits_in: str
    seconds: float


class _Stuck(pydantic.BaseModel):
    pid: int
    name: str
    kernel: bool
    waits_in: str


class _Document(pydantic.BaseModel):
    seconds: float
    looked_at: Annotated[int, pydantic.Field(gt=0)]
    stuck: tuple[_Stuck, ...]


def parse_stuck_processes(text: str) -> tuple[StuckProcess, ...]:
    """Nothing where nobody is stuck; `ParseError` where it is no such document, or no process was looked at."""
    try:
        document = _Document.model_validate_json(text)
    except pydantic.ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise ParseError(f"not understood: {first['msg']}", where=f"{_WHERE} {field}".strip()) from None
    return tuple(StuckProcess(one.pid, one.name, one.kernel, one.waits_in, document.seconds) for one in document.stuck)

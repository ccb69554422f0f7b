"""What the node's built-in `cpu-share` measured: how much of a processor a fixed amount of work got, try after try."""

from __future__ import annotations

from dataclasses import dataclass

import pydantic

from clusterctl.fleet.errors import ParseError


@dataclass(frozen=True, slots=True)
class Try:
    """`share`: processor time by wall time (1: a whole processor); `runnable`: what the kernel had to run meanwhile,
    this work included; `cpus`: how many processors there are for it.
    """

    share: float
    runnable: int
    cpus: int


class _Try(pydantic.BaseModel):
    share: float
    runnable: int


class _Document(pydantic.BaseModel):
    cpus: int
    tries: tuple[_Try, ...]


def parse_cpu_share(text: str) -> tuple[Try, ...]:
    """Read its JSON document; `ParseError` where it is none, or without a try."""
    try:
        document = _Document.model_validate_json(text)
    except pydantic.ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise ParseError(f"not understood: {first['msg']}", where="cpu-share") from None
    if not document.tries:
        raise ParseError("it tells of no try", where="cpu-share")
    return tuple(Try(one.share, one.runnable, document.cpus) for one in document.tries)

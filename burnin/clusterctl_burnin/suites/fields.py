"""What a suite's figures may be; apart from the suites, so that a site file is read without every check and load."""

from __future__ import annotations

from typing import Annotated

import pydantic

Rounds = Annotated[int, pydantic.Field(ge=1, le=64, strict=True)]
PairSeconds = Annotated[int, pydantic.Field(ge=1, le=86_400, strict=True)]
GroupIterations = Annotated[int, pydantic.Field(ge=1, le=10_000_000, strict=True)]
NodeSeconds = Annotated[int, pydantic.Field(ge=1, le=86_400, strict=True)]

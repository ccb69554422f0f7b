"""Who is worked on when, and when it is better to stop: `waves` and `configure.waves` of a site file."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from clusterctl.edges.site.fields import Count, Positive, Strict


class WaveSettings(Strict):
    """Who is installed when, and when it is better to stop."""

    canary: Count = 1
    at_once: Annotated[
        Positive | None, Field(description="machines at a time; what batch says of the step where it is not said")
    ] = None
    per_rack: Annotated[Count, Field(description="0: no bound but at_once")] = 4
    stop_percent: Annotated[int, Field(ge=0, le=100, strict=True)] = 20
    of_at_least: Positive = 5
    patience_s: Annotated[Positive, Field(description="a canary that takes longer gets another one beside it")] = 1800


class ConfigureWaves(WaveSettings):
    """Who is configured when. Racks do not matter: nothing but the package mirror is shared."""

    per_rack: Annotated[Count, Field(description="0: no bound but at_once")] = 0

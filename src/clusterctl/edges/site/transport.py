"""`configure.transport`: who plays the roles."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

TransportName = Annotated[
    Literal["auto", "ssh", "host"],
    Field(description="auto: each host plays by itself where it can; ssh: never; host: a host that cannot has failed"),
]

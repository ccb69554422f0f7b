"""What `provisioning` says for MAAS alone."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from clusterctl.edges.site.fields import Positive, Strict

MaasTag = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,256}$", description="a tag's name as MAAS takes it")]


def _each_once(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise ValueError("names a tag twice")
    return names


MaasTags = Annotated[tuple[MaasTag, ...], AfterValidator(_each_once)]


class MaasDeadlines(Strict):
    """Seconds for which MAAS may leave a machine in one state; longer is stuck, and is aborted. `deadlines.install` is
    for the whole.
    """

    commissioning: Positive = 2700
    testing: Positive = 2700
    deploying: Positive = 3600
    releasing: Positive = 900
    erasing: Positive = 86400

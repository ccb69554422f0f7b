"""MAAS can be reached, proves who it is, and takes our key."""

from __future__ import annotations

from clusterctl.edges.doctor.patient import Answer
from clusterctl.fleet.diagnosis import Diagnosis, broken, ok

NAME = "maas"


def judge(url: str, answer: Answer) -> Diagnosis:
    """`url` is empty where the site has none."""
    if not url:
        return ok(NAME, "the site has none")
    if answer.error is not None:
        remedy = answer.error.remedy or "check provisioning.url, the network, and that MAAS runs"
        return broken(NAME, f"{url}: {answer.error.message}", remedy)
    return ok(NAME, f"{url} knows us as {answer.note}")

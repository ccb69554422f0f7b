"""A BMC that writes numbers as text, texts as lists and objects as null."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from clusterctl_lab.bmc_quirk import Manner
from clusterctl_lab.emulators.redfish.exchange import Answer, Request
from clusterctl_lab.emulators.redfish.manners.habit import Habit

ONE_IN = 4


class WrongTypes(Habit):
    manner = Manner.WRONG_TYPES
    does = "about one resource in four has one property of a type that its schema does not know, always the same one"
    source = "no recording of it: null and other types where the DMTF schemas demand one"

    def after(self, request: Request, answer: Answer) -> Answer:
        if request.writes or answer.body is None or answer.status != 200 or not self.struck(request, ONE_IN):
            return answer
        names = [name for name in answer.body if not name.startswith(("@", "Members")) and name != "Id"]
        if not names:
            return answer
        wrong = names[len(request.path) % len(names)]
        return replace(answer, body={**answer.body, wrong: _another(answer.body[wrong])})


def _another(value: Any) -> Any:
    """The same of another type."""
    if isinstance(value, (bool, int, float)):
        return str(value)
    return [value] if isinstance(value, str) else None

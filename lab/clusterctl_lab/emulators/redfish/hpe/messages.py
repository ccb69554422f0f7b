"""The refusals of an iLO 5: message ids and arguments, without their texts, which its registries contain.

Published by users of real ones: form, and a wrong power state, with HTTP 400 (goldyfruit/ansible-ilo#1); POST (sushy,
and users of Ironic: `UnableToModifyDuringSystemPOST`). The rest are messages of the DMTF Base registry.
"""

from __future__ import annotations

from clusterctl_lab.emulators.redfish.messages import Language, Message
from clusterctl_lab.emulators.redfish.profile import Problem, RefusedError
from clusterctl_lab.emulators.redfish.resource import Resource

_ILO = "iLO.2.14"
_WARNING = "Warning"
_LANGUAGE = Language(
    base="Base.1.4",
    own={
        Problem.ALREADY_ON: (400, (Message(f"{_ILO}.InvalidOperationForSystemState", "{}", _WARNING),)),
        Problem.ALREADY_OFF: (400, (Message(f"{_ILO}.InvalidOperationForSystemState", "{}", _WARNING),)),
        Problem.POST_BUSY: (400, (Message(f"{_ILO}.UnableToModifyDuringSystemPOST", "", _WARNING),)),
    },
)
_STATES = {Problem.ALREADY_ON: "Power is on", Problem.ALREADY_OFF: "Power is off"}


def refusal(refused: RefusedError) -> tuple[int, Resource]:
    """HTTP status and error body of a refusal."""
    status, standard = _LANGUAGE.refusal(refused)
    messages = standard["error"]["@Message.ExtendedInfo"]
    state = _STATES.get(refused.problem)
    return status, _error([_bare(message, [state] if state else message["MessageArgs"]) for message in messages])


def success() -> Resource:
    """Return the answer to a PATCH that was applied: an error body that contains Success, as iLO sends it."""
    return _error([{"MessageId": "Base.1.4.Success"}])


def _error(messages: list[Resource]) -> Resource:
    return {
        "error": {
            "code": "iLO.0.10.ExtendedInfo",
            "message": "See @Message.ExtendedInfo for more information.",
            "@Message.ExtendedInfo": messages,
        }
    }


def _bare(message: Resource, args: list[str]) -> Resource:
    return {**({"MessageArgs": args} if args else {}), "MessageId": message["MessageId"]}

"""How an iDRAC9 words refusals.

Recorded: not found (in the R750's tree, DellNIC/NIC.Slot.5-1). Published by users of real ones: unauthorized
(dell/iDRAC-Redfish-Scripting#126), method not allowed (#64, #223), already on (dellemc-openmanage-ansible-modules#132;
409 as well when already off, openstack-k8s-operators/infra-operator#434), too many sessions
(stmcginnis/gofish#75, HTTP 503). From the DMTF Base registry 1.12: malformed JSON and the three about properties.
"""

from __future__ import annotations

from dataclasses import dataclass

from clusterctl.lab.faces.redfish.profile import Problem, RefusedError
from clusterctl.lab.faces.redfish.resource import Resource, counted

_BASE = "Base.1.12"
_IDRAC = "IDRAC.2.7"
_CRITICAL, _WARNING, _INFORMATIONAL = "Critical", "Warning", "Informational"


@dataclass(frozen=True, slots=True)
class _Message:
    """`text` has one `{}` for each argument."""

    id: str
    text: str
    severity: str
    resolution: str


_SEE_GUIDE = "For information about valid values, see the Redfish Users Guide available on the support site."
_MESSAGES: dict[Problem, tuple[int, tuple[_Message, ...]]] = {
    Problem.UNAUTHORIZED: (
        401,
        (
            _Message(
                f"{_BASE}.AccessDenied",
                "The authentication credentials included with this request are missing or invalid.",
                _CRITICAL,
                "Attempt to ensure that the URI is correct and that the service has the appropriate credentials.",
            ),
        ),
    ),
    Problem.NOT_FOUND: (
        404,
        (
            _Message(
                f"{_IDRAC}.SYS403",
                "Unable to complete the operation because the resource {} entered is not found.",
                _CRITICAL,
                f"Enter the correct resource and retry the operation. {_SEE_GUIDE}",
            ),
            _Message(
                f"{_BASE}.ResourceMissingAtURI",
                "The resource at the URI '{}' was not found.",
                _CRITICAL,
                "Place a valid resource at the URI or correct the URI and resubmit the request.",
            ),
        ),
    ),
    Problem.METHOD_NOT_ALLOWED: (
        405,
        (
            _Message(
                f"{_IDRAC}.SYS402",
                "Unable to run the method because the requested HTTP method is not allowed.",
                _INFORMATIONAL,
                f"Enter a valid HTTP method and retry the operation. {_SEE_GUIDE}",
            ),
        ),
    ),
    Problem.MALFORMED_JSON: (
        400,
        (
            _Message(
                f"{_BASE}.MalformedJSON",
                "The request body submitted was malformed JSON and could not be parsed by the receiving service.",
                _CRITICAL,
                "Ensure that the request body is valid JSON and resubmit the request.",
            ),
        ),
    ),
    Problem.PROPERTY_UNKNOWN: (
        400,
        (
            _Message(
                f"{_BASE}.PropertyUnknown",
                "The property {} is not in the list of valid properties for the resource.",
                _WARNING,
                "Remove the unknown property from the request body and resubmit the request.",
            ),
        ),
    ),
    Problem.PROPERTY_MISSING: (
        400,
        (
            _Message(
                f"{_BASE}.PropertyMissing",
                "The property {} is a required property and must be included in the request.",
                _WARNING,
                "Ensure that the property is in the request body and has a valid value and resubmit the request.",
            ),
        ),
    ),
    Problem.VALUE_NOT_IN_LIST: (
        400,
        (
            _Message(
                f"{_BASE}.PropertyValueNotInList",
                "The value '{}' for the property {} is not in the list of acceptable values.",
                _WARNING,
                "Choose a value from the enumeration list that the implementation can support.",
            ),
        ),
    ),
    Problem.ALREADY_ON: (
        409,
        (
            _Message(
                f"{_IDRAC}.PSU501",
                "Server is already powered ON.",
                _INFORMATIONAL,
                "No response action is required.",
            ),
        ),
    ),
    Problem.ALREADY_OFF: (
        409,
        (
            _Message(
                f"{_IDRAC}.PSU502",
                "Server is already powered OFF.",
                _INFORMATIONAL,
                "No response action is required.",
            ),
        ),
    ),
    Problem.TOO_MANY_SESSIONS: (
        503,
        (
            _Message(
                f"{_IDRAC}.RAC0218",
                "The maximum number of user sessions is reached.",
                _INFORMATIONAL,
                "Close one or more sessions before opening another session.",
            ),
        ),
    ),
}
_SUCCESS = (
    _Message(f"{_BASE}.Success", "The request completed successfully.", "OK", "None."),
    _Message(
        f"{_IDRAC}.SYS413", "The operation successfully completed.", _INFORMATIONAL, "No response action is required."
    ),
)


def refusal(refused: RefusedError) -> tuple[int, Resource]:
    """HTTP status and error body of a refusal."""
    http_status, messages = _MESSAGES[refused.problem]
    error = {
        "@Message.ExtendedInfo": [_extended(message, refused.args_) for message in messages],
        "code": f"{_BASE}.GeneralError",
        "message": "A general error has occurred. See ExtendedInfo for more information",
    }
    return http_status, {"error": error}


def success() -> Resource:
    """What a PATCH that was applied answers (DSP0266, "PATCH (update)", with 200 and a message)."""
    return {"@Message.ExtendedInfo": [_extended(message, ()) for message in _SUCCESS]}


def _extended(message: _Message, args: tuple[str, ...]) -> Resource:
    return {
        "Message": message.text.format(*args),
        **counted("MessageArgs", list(args)),
        "MessageId": message.id,
        **counted("RelatedProperties", []),
        "Resolution": message.resolution,
        "Severity": message.severity,
    }

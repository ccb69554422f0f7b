"""How refusals read: the words of the DMTF Base message registry (DSP8011, 1.12 and later), and a vendor's own.

Where a vendor words something in its own way, its profile gives a `Wording` that goes before this one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from clusterctl_lab.emulators.redfish.profile import Problem, RefusedError
from clusterctl_lab.emulators.redfish.resource import Resource, counted

OK, WARNING, CRITICAL = "OK", "Warning", "Critical"


@dataclass(frozen=True, slots=True)
class Message:
    """`id` without a dot is one of the Base registry. `text` has one `{}` for each argument."""

    id: str
    text: str
    severity: str
    resolution: str = "None."


Wording = Mapping[Problem, tuple[int, Sequence[Message]]]
"""HTTP status and messages of each refusal."""


@dataclass(frozen=True, slots=True)
class Language:
    """`base` is the Base registry with its version, as `Base.1.12`; `own` are the vendor's own words."""

    base: str
    own: Wording = field(default_factory=dict)
    done: Sequence[Message] = (Message("Success", "The request completed successfully.", OK),)

    def refusal(self, refused: RefusedError) -> tuple[int, Resource]:
        """HTTP status and error body of a refusal."""
        status, messages = self.own.get(refused.problem) or STANDARD[refused.problem]
        error = {
            "@Message.ExtendedInfo": [self._extended(message, refused.args_) for message in messages],
            "code": f"{self.base}.GeneralError",
            "message": "A general error has occurred. See ExtendedInfo for more information",
        }
        return status, {"error": error}

    def success(self) -> Resource:
        """What a PATCH that was applied answers (DSP0266, "PATCH (update)", with 200 and a message)."""
        return {"@Message.ExtendedInfo": [self._extended(message, ()) for message in self.done]}

    def _extended(self, message: Message, args: Sequence[str]) -> Resource:
        return {
            "Message": message.text.format(*args),
            **counted("MessageArgs", list(args)),
            "MessageId": message.id if "." in message.id else f"{self.base}.{message.id}",
            **counted("RelatedProperties", []),
            "Resolution": message.resolution,
            "Severity": message.severity,
        }


def _one(status: int, name: str, text: str, severity: str = WARNING) -> tuple[int, Sequence[Message]]:
    return status, (Message(name, text, severity),)


_IN_USE = "The change to the requested resource failed because the resource is in use or in transition."
_STATE = "The parameter '{}' does not meet the constraints of the implementation in the present state."
STANDARD: Wording = {
    Problem.UNAUTHORIZED: _one(
        401, "NoValidSession", "There is no valid session established with the implementation.", CRITICAL
    ),
    Problem.PASSWORD_CHANGE_REQUIRED: _one(
        403,
        "PasswordChangeRequired",
        "The password provided for this account must be changed before access is granted. "
        "PATCH the Password property for this account located at the target URI '{}' to complete this process.",
        CRITICAL,
    ),
    Problem.NOT_FOUND: _one(404, "ResourceMissingAtURI", "The resource at the URI '{}' was not found.", CRITICAL),
    Problem.METHOD_NOT_ALLOWED: _one(
        405, "OperationNotAllowed", "The HTTP method is not allowed on this resource.", CRITICAL
    ),
    Problem.NOT_ACCEPTABLE: _one(406, "HeaderInvalid", "Header '{}' is invalid.", CRITICAL),
    Problem.PRECONDITION_FAILED: _one(
        412,
        "PreconditionFailed",
        "The ETag supplied did not match the ETag required to change this resource.",
        CRITICAL,
    ),
    Problem.PRECONDITION_REQUIRED: _one(
        428,
        "PreconditionRequired",
        "A precondition header or annotation is required to change this resource.",
        CRITICAL,
    ),
    Problem.MALFORMED_JSON: _one(
        400,
        "MalformedJSON",
        "The request body submitted was malformed JSON and could not be parsed by the receiving service.",
        CRITICAL,
    ),
    Problem.MALFORMED_PART: _one(
        400,
        "MissingOrMalformedPart",
        "The multipart request contains malformed parts or is missing required parts.",
        CRITICAL,
    ),
    Problem.PROPERTY_UNKNOWN: _one(
        400, "PropertyUnknown", "The property {} is not in the list of valid properties for the resource."
    ),
    Problem.PROPERTY_MISSING: _one(
        400, "PropertyMissing", "The property {} is a required property and must be included in the request."
    ),
    Problem.PROPERTY_READ_ONLY: _one(
        400, "PropertyNotWritable", "The property {} is a read only property and cannot be assigned a value."
    ),
    Problem.VALUE_NOT_IN_LIST: _one(
        400, "PropertyValueNotInList", "The value '{}' for the property {} is not in the list of acceptable values."
    ),
    Problem.VALUE_REFUSED: _one(400, "PropertyValueError", "The value provided for the property {} is not valid."),
    Problem.ALREADY_ON: _one(409, "ActionParameterValueConflict", _STATE),
    Problem.ALREADY_OFF: _one(409, "ActionParameterValueConflict", _STATE),
    Problem.POST_BUSY: _one(409, "ResourceInUse", _IN_USE),
    Problem.JOB_PENDING: _one(409, "ResourceInUse", _IN_USE),
    Problem.MEDIA_IN_USE: _one(409, "ResourceInUse", _IN_USE),
    Problem.NO_MEDIA: _one(
        400,
        "NoOperation",
        "The request body submitted contain no data to act upon and no changes to the resource took place.",
    ),
    Problem.TOO_MANY_SESSIONS: _one(
        503,
        "SessionLimitExceeded",
        "The session establishment failed due to the number of simultaneous sessions exceeding the limit of the "
        "implementation.",
        CRITICAL,
    ),
    Problem.UNAVAILABLE: _one(
        503, "ServiceTemporarilyUnavailable", "The service is temporarily unavailable. Retry in {} seconds.", CRITICAL
    ),
}

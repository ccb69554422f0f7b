"""MAAS's refusals as our errors. Texts of refusals are shown; those of 401 never: one of them prints the secret."""

from __future__ import annotations

from collections.abc import Mapping

from clusterctl.fleet.errors import AuthenticationError, ClusterctlError, EdgeError, OutcomeUnknownError
from clusterctl.formats.maas import machines as formats


class MaasRefusedError(EdgeError):
    """MAAS answered no. `status` is the HTTP one; `fields` those that a 400 complains of."""

    def __init__(
        self, message: str, *, where: str, remedy: str, status: int, fields: Mapping[str, tuple[str, ...]]
    ) -> None:
        super().__init__(message, where=where, remedy=remedy)
        self.status = status
        self.fields = fields


class MaasBusyError(EdgeError):
    """MAAS could not do it now (502, 503, 504) and has not done it: ask again, after `retry_after`
    seconds where MAAS named a time.
    """

    def __init__(self, message: str, *, where: str, remedy: str, retry_after: float | None) -> None:
        super().__init__(message, where=where, remedy=remedy)
        self.retry_after = retry_after


MAX_TEXT = 400
_REMEDIES = {
    400: "correct what MAAS names; for a series or kernel, import its image into MAAS",
    403: "use an administrator's API key, and see in MAAS whether the machine is locked or another user's",
    404: "check the url and that nobody deleted the machine from MAAS",
    409: "look at the machine's state in MAAS, then run the step again",
    410: "set the url to MAAS's API 2.0",
}
_BAD_KEYS = {  # what MAAS's 401 bodies begin with, after `Authorization Error:`
    "Invalid signature": ("the secret of the API key is wrong", "copy the whole key again from MAAS"),
    "Invalid access token": ("the API key was deleted in MAAS or belongs to another MAAS", "make a new key in MAAS"),
    "Invalid API key": ("the API key was deleted in MAAS or belongs to another MAAS", "make a new key in MAAS"),
    "Expired timestamp": ("the clocks of MAAS and of this controller differ by more than 5 minutes", "set the clocks"),
    "Nonce already used": ("the request reached MAAS twice", "take away the proxy that repeats requests"),
}


def refusal(status: int, headers: Mapping[str, str], text: str, *, where: str, writes: bool) -> ClusterctlError:
    """The error for an answer of 300 or more, secrets already taken out of `text`. `writes`: the request would have
    changed something, so that a gateway's time-out leaves open whether it did.
    """
    content_type = headers.get("content-type", "")
    said = formats.error_text(content_type, text)[:MAX_TEXT]
    if status == 401:
        return _unauthorised(text, where)
    if status in (502, 504) and writes:
        return OutcomeUnknownError(
            f"MAAS's proxy gave up waiting (HTTP {status})", where=where, remedy="look at the machine in MAAS"
        )
    if status in (502, 503, 504):
        return MaasBusyError(
            f"MAAS cannot do it now (HTTP {status}): {said or 'no reason given'}",
            where=where,
            remedy="check MAAS's rack controllers and the BMC, then run the step again",
            retry_after=_seconds(headers.get("retry-after", "")),
        )
    if status == 403 and not said:
        said = "not permitted"
    return MaasRefusedError(
        f"MAAS refuses (HTTP {status}): {said or 'no reason given'}",
        where=where,
        remedy=_REMEDIES.get(status, "see MAAS's regiond log"),
        status=status,
        fields=formats.error_fields(content_type, text),
    )


def _unauthorised(text: str, where: str) -> AuthenticationError:
    for sign, (cause, remedy) in _BAD_KEYS.items():
        if sign in text:
            return AuthenticationError(f"MAAS rejects the API key: {cause}", where=where, remedy=remedy)
    return AuthenticationError("MAAS rejects the API key", where=where, remedy="make a new key in MAAS")


def _seconds(retry_after: str) -> float | None:
    return float(retry_after) if retry_after.isdigit() else None

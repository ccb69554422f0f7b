"""What stands in a BMC's reply."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from clusterctl.edges.redfish.library import Reply
from clusterctl.formats.redfish.tree import Answer, Unreadable

_LONGEST = 300


def answer_of(reply: Reply) -> Answer:
    """The resource, or in words why there is none."""
    if reply.status != 200:
        return Unreadable(f"HTTP {reply.status} {explanation(reply)}".strip())
    try:
        told = json.loads(reply.content)
    except (ValueError, RecursionError):
        return Unreadable("the answer is no JSON")
    return told if isinstance(told, dict) else Unreadable("the answer is no JSON object")


def body_of(reply: Reply) -> Mapping[str, Any]:
    """The JSON object of any reply; empty where it has none."""
    answer = answer_of(Reply(200, reply.content, {}))
    return {} if isinstance(answer, Unreadable) else answer


def explanation(reply: Reply) -> str:
    """What a Redfish error says in its own words (`@Message.ExtendedInfo`), at most 300 characters."""
    try:
        told = json.loads(reply.told)["error"]
        infos = told.get("@Message.ExtendedInfo") or [{}]
        words = [f"{info.get('MessageId', '')} {info.get('Message', '')}".strip() for info in infos]
        return "; ".join(word for word in words if word)[:_LONGEST] or str(told.get("message", ""))[:_LONGEST]
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return ""  # not every error has a body; the status stands


def account_to_change(reply: Reply) -> str:
    """The account that a `PasswordChangeRequired` names (DSP0266, "Password change required handling"); empty where it
    names none.
    """
    for info in _infos(reply):
        arguments = info.get("MessageArgs")
        if str(info.get("MessageId", "")).endswith("PasswordChangeRequired") and isinstance(arguments, list):
            return next((item for item in arguments if isinstance(item, str)), "")
    return ""


def _infos(reply: Reply) -> list[Mapping[str, Any]]:
    try:
        told = json.loads(reply.told)["error"]["@Message.ExtendedInfo"]
    except (ValueError, RecursionError, KeyError, TypeError):
        return []
    return [info for info in told if isinstance(info, Mapping)] if isinstance(told, list) else []


def refusal(reply: Reply) -> str:
    """Status and words of a reply, for people."""
    return f"HTTP {reply.status} {explanation(reply)}".strip()

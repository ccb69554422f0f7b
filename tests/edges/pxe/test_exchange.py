"""The run's side of the channel: whatever a service sends, the exchange ends with its own error or answers a valid call."""

from __future__ import annotations

import json
import socket
import threading
from base64 import b64encode
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterctl.edges.pxe.channel import LENGTH, MAX_BYTES, NOT_NOW, OK, POST_BYTES, Call, ChannelReply, Setup
from clusterctl.edges.pxe.exchange import ENDED, Exchange, LostError
from clusterctl.fleet.errors import EnvironmentBrokenError

SETUP = Setup("http://192.0.2.1:8080", "/boot", "")
FIELDS = {"id": 7, "kind": "boot", "token": "", "mac": "", "serial": "", "name": "", "host": "", "body": ""}


def framed(content: bytes) -> bytes:
    return LENGTH.pack(len(content)) + content


def exchanged(sent: bytes, answer: object = OK) -> tuple[str, list[Call], list[dict[str, object]]]:
    """Why the exchange ended when the service had sent this, the calls that the run answered, and what it sent."""
    calls: list[Call] = []

    def answered(call: Call) -> ChannelReply:
        calls.append(call)
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, ChannelReply)
        return answer

    ours, theirs = socket.socketpair()
    with ours, theirs:
        sender = threading.Thread(target=lambda: _send(theirs, sent))
        sender.start()
        with pytest.raises(LostError) as lost:
            Exchange(ours, answered).run(SETUP, lambda: None)
        sender.join()
        ours.close()
        received = b"".join(iter(lambda: theirs.recv(1 << 16), b""))
    messages = []
    while received:
        (length,) = LENGTH.unpack_from(received)
        messages.append(json.loads(received[LENGTH.size : LENGTH.size + length]))
        received = received[LENGTH.size + length :]
    return str(lost.value), calls, messages


def _send(channel: socket.socket, content: bytes) -> None:
    with suppress(OSError):  # the run has ended the exchange before all was sent
        channel.sendall(content)
        channel.shutdown(socket.SHUT_WR)


@settings(deadline=None, max_examples=200)
@given(st.one_of(st.binary(max_size=200), st.binary(max_size=200).map(framed)))
def test_any_bytes_end_the_exchange_with_its_own_error(sent: bytes) -> None:
    _, calls, _ = exchanged(sent)
    assert calls == []


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=300)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(sorted(FIELDS)), inner)),
    max_leaves=5,
)


@settings(deadline=None, max_examples=200)
@given(st.sampled_from(sorted(FIELDS)), JSON)
def test_any_value_of_a_field_is_a_valid_call_or_the_end(field: str, value: object) -> None:
    """What reaches the handlers has the types and lengths that it promises."""
    _, calls, _ = exchanged(framed(json.dumps({**FIELDS, field: value}).encode()))
    for call in calls:
        texts = (call.kind, call.token, call.mac, call.serial, call.name, call.host)
        assert all(isinstance(text, str) and len(text) <= 256 for text in texts)
        assert isinstance(call.body, bytes)


def test_a_call_is_answered_by_its_number() -> None:
    reason, calls, (setup, ping, reply) = exchanged(framed(json.dumps(FIELDS).encode()), ChannelReply(200, b"x"))
    assert (reason, calls) == (ENDED, [Call("boot")])
    assert setup["base"] == SETUP.base
    assert ping == {"ping": True}
    assert reply == {"id": 7, "status": 200, "content": b64encode(b"x").decode()}


@pytest.mark.parametrize(
    "error", [EnvironmentBrokenError("full disk"), RecursionError(), UnicodeError("x"), KeyError(1)]
)
def test_an_error_of_ours_ends_nothing(error: Exception) -> None:
    """The machine is asked to come again and sees nothing of it; the next call is answered."""
    twice = framed(json.dumps(FIELDS).encode()) * 2
    reason, calls, (_, _, first, second) = exchanged(twice, error)
    assert (reason, len(calls)) == (ENDED, 2)
    assert first == second == {"id": 7, "status": NOT_NOW.status, "content": b64encode(NOT_NOW.content).decode()}


def test_the_largest_post_fits() -> None:
    """A machine's log of 8 MiB."""
    body = bytes(POST_BYTES["log"])
    sent = framed(json.dumps({**FIELDS, "kind": "post", "body": b64encode(body).decode()}).encode())
    assert len(sent) <= LENGTH.size + MAX_BYTES
    _, calls, _ = exchanged(sent)
    assert [len(call.body) for call in calls] == [len(body)]


def test_a_reply_that_is_too_long_is_not_now() -> None:
    _, _, (_, _, reply) = exchanged(framed(json.dumps(FIELDS).encode()), ChannelReply(200, bytes(MAX_BYTES)))
    assert reply["status"] == NOT_NOW.status

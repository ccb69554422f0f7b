"""The run's side of the channel to its installer service. What the service sends is hostile: bounded, checked, answered
one message at a time; what is no valid message ends the exchange.
"""

from __future__ import annotations

import logging
import select
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Annotated, Literal

from pydantic import Base64Bytes, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from clusterctl.edges.pxe.channel import LENGTH, MAX_BYTES, NOT_NOW, PING, Call, ChannelReply, Setup, frame, reply_frame
from clusterctl.fleet.errors import ClusterctlError

ENDED = "it has ended"
PAUSE_S = 0.05
"""After each reply the run rests for as long as it took, at most so long: a flood of calls takes half of its thread."""
_CHUNK = 1 << 16
_LOG = logging.getLogger(__name__)


class LostError(Exception):
    """The service has ended, hangs, or sent what is no message. The text is ours; none of it is the service's."""


@dataclass(frozen=True, slots=True)
class ChannelTimeouts:
    """Seconds.

    ping_s    between two pings
    hang_s    in which the service must answer a ping, or read
    start_s   in which it must answer the first one: its process starts meanwhile
    """

    ping_s: float = 5.0
    hang_s: float = 60.0
    start_s: float = 60.0


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Pong(_Message):
    pong: Literal[True]


_Short = Annotated[str, Field(max_length=256)]


class _Call(_Message):
    id: Annotated[int, Field(ge=0, lt=1 << 53)]
    kind: Literal["boot", "start", "efi", "image", "probe", "document", "may_post", "post"]
    token: _Short
    mac: _Short
    serial: _Short
    name: _Short
    host: _Short
    body: Base64Bytes

    @property
    def call(self) -> Call:
        return Call(self.kind, self.token, self.mac, self.serial, self.name, self.body, self.host)


_MESSAGE: TypeAdapter[_Pong | _Call] = TypeAdapter(_Pong | _Call)


class Exchange:
    """Answers the calls of one service process until the channel ends."""

    def __init__(
        self,
        channel: socket.socket,
        answer: Callable[[Call], ChannelReply],
        timeouts: ChannelTimeouts = ChannelTimeouts(),
    ) -> None:
        channel.settimeout(timeouts.hang_s)
        self._channel = channel
        self._answer = answer
        self._timeouts = timeouts
        self._unread = bytearray()
        self._limit_s = timeouts.start_s
        self._pinged: float | None = None
        self._received_at = time.monotonic()

    def run(self, setup: Setup, on_ready: Callable[[], None]) -> None:
        """Set the service up and answer it; `on_ready` is called at its first sign of life. Raises `LostError`."""
        self._send(frame(asdict(setup)))
        self._ping()
        while True:
            if select.select([self._channel], [], [], self._timeouts.ping_s)[0]:
                for content in self._received():
                    self._handle(content, on_ready)
            self._judge()

    def _judge(self) -> None:
        """Ping where it is time. Raises `LostError` where the last ping was not answered in time."""
        now = time.monotonic()
        if self._pinged is None:
            if now - self._received_at >= self._timeouts.ping_s:
                self._ping()
        elif now - self._pinged > self._limit_s:
            raise LostError(f"it has not answered for {self._limit_s:g} s")

    def _ping(self) -> None:
        self._send(frame({PING: True}))
        self._pinged = time.monotonic()

    def _received(self) -> Iterator[bytes]:
        """Yield the messages that are complete."""
        try:
            chunk = self._channel.recv(_CHUNK)
        except ConnectionError:
            chunk = b""
        if not chunk:
            raise LostError(ENDED)
        self._unread += chunk
        while len(self._unread) >= LENGTH.size:
            (length,) = LENGTH.unpack_from(self._unread)
            if length > MAX_BYTES:
                raise LostError(f"it announced a message of {length} bytes, more than {MAX_BYTES}")
            end = LENGTH.size + length
            if len(self._unread) < end:
                return
            content = bytes(self._unread[LENGTH.size : end])
            del self._unread[:end]
            yield content

    def _handle(self, content: bytes, on_ready: Callable[[], None]) -> None:
        try:
            message = _MESSAGE.validate_json(content)
        except ValidationError:
            raise LostError("it sent what is no message of an installer service") from None
        if isinstance(message, _Pong):
            self._pinged, self._received_at = None, time.monotonic()
            self._limit_s = self._timeouts.hang_s
            on_ready()
            return
        begun = time.monotonic()
        self._send(reply_frame(message.id, self._reply(message.call)))
        time.sleep(min(time.monotonic() - begun, PAUSE_S))

    def _reply(self, call: Call) -> ChannelReply:
        """Return the answer. Whatever one machine's request causes here concerns that request alone."""
        try:
            return self._answer(call)
        except ClusterctlError as error:
            _LOG.warning("PXE: a request could not be answered: %s", error)
        except Exception:  # noqa: BLE001 - whatever one machine sends concerns that machine alone
            _LOG.exception("PXE: a request could not be answered")
        return NOT_NOW

    def _send(self, content: bytes) -> None:
        try:
            self._channel.sendall(content)
        except TimeoutError:
            raise LostError(f"it has not read for {self._timeouts.hang_s:g} s") from None
        except ConnectionError:
            raise LostError(ENDED) from None

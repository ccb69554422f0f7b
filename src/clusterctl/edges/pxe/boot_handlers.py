"""Handlers of the installer service's calls: what a machine asks for and posts, and the change that each post makes.

They run in the run's process. The service that calls is not trusted: each call is checked here once more.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from ipaddress import ip_address
from threading import Lock

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_ssh_public_key

from clusterctl.edges.pxe import scripts
from clusterctl.edges.pxe.answers import message_of
from clusterctl.edges.pxe.attempt import (
    AttemptState,
    InstallAttempt,
    finished,
    plain,
    with_boot,
    with_host_key,
    with_https_boot,
    with_milestone,
    with_report,
)
from clusterctl.edges.pxe.attempt_store import AttemptStore, for_card, start_ticket
from clusterctl.edges.pxe.channel import NOT_FOUND, OK, POST_BYTES, Call, ChannelReply, text
from clusterctl.edges.pxe.report import parse
from clusterctl.fleet.errors import ConflictError, ParseError
from clusterctl.fleet.hardware.disk_contract import same_identity
from clusterctl.fleet.node import Mac
from clusterctl.formats.identifiers import read_mac
from clusterctl.ports import Clock

SIGN_OF_LIFE = timedelta(minutes=1)
"""A sign of life is recorded at most this often."""
NOTE = timedelta(seconds=10)
"""So often is an unproven request noted: any machine can send thousands, and each note is written to the disk."""


class BootHandlers:
    """Handles the requests of one site's machines. `base` is the service's URL. Thread-safe."""

    def __init__(self, base: str, attempts: AttemptStore, clock: Clock) -> None:
        self._base = base
        self._attempts = attempts
        self._clock = clock
        self._noted: dict[str, datetime] = {}
        self._guard = Lock()
        self._calls: Mapping[str, Callable[[Call], ChannelReply]] = {
            "boot": self._boot,
            "start": self._start,
            "efi": self._efi,
            "image": lambda call: OK if self.image_requested(call.token) else NOT_FOUND,
            "probe": lambda call: OK if self.is_running(call.token) else NOT_FOUND,
            "document": self._document,
            "may_post": lambda call: OK if self.may_post(call.token) else NOT_FOUND,
            "post": lambda call: self.post(call.token, call.name, call.body, _address(call.host)),
        }
        self._posts: Mapping[str, Callable[[InstallAttempt, bytes, str], ChannelReply]] = {
            "report": self._report,
            "progress": self._progress,
            "webhook": self._webhook,
            "host-key": self._host_key,
            "log": self._log,
            "failed": self._failed,
            "done": self._done,
        }

    def answer(self, call: Call) -> ChannelReply:
        """Return the reply to a call of the service; what is unknown, or comes from elsewhere, is not found."""
        answer = self._calls.get(call.kind)
        return answer(call) if answer is not None and not self._is_from_elsewhere(call) else NOT_FOUND

    def boot(self, mac: Mac, serial: str) -> str:
        """Return the iPXE script that leads the machine with this card to the one of its attempt.

        Any machine can ask, so the attempt does not change. Only the machine's serial gets the ticket, which leads to
        the token. Another serial, or none, is noted with the attempt.
        """
        attempt = self._attempts.by_mac(mac)
        if attempt is None:
            return scripts.nothing("this machine is unknown here")
        if not attempt.running:
            return scripts.nothing(_unarmed(attempt))
        if _by_https(attempt):
            return scripts.nothing(f"{attempt.node} boots over HTTPS, by its firmware")
        if not serial.strip():
            self._note(attempt, f"a machine with {mac} asked for its boot script and reported no serial")
            return scripts.nothing(f"this card belongs to {attempt.node}, and the request has no serial of SMBIOS")
        if not same_identity(serial, attempt.serial):
            self._note(attempt, f"a machine with {mac} asked for its boot script and reported serial {serial}")
            return scripts.nothing(f"this card belongs to {attempt.node}, whose serial is another one")
        return scripts.onward(self._base, start_ticket(attempt.token), mac, serial)

    def start_script(self, ticket: str, mac: Mac, serial: str) -> str | None:
        """Return the iPXE script that starts the installer of this attempt; None for an unknown ticket.

        It holds the token: a request without the machine's serial does not get it.
        """
        attempt = self._attempts.by_ticket(ticket)
        if attempt is None or _by_https(attempt):
            return None
        if not serial.strip():
            return scripts.nothing("the request has no serial of SMBIOS")
        after = self._move(attempt, lambda now: with_boot(now, mac, serial, self._now())) or attempt
        if after.running and after.boot is not None and after.state is not AttemptState.WRITING:
            return scripts.installer(self._base, after.node, after.boot, mac)
        return scripts.nothing(_unarmed(after))

    def image_requested(self, token: str) -> bool:
        """Record that the machine asks for an image: it may wait in a queue and send nothing else. Return whether the
        token belongs to a running attempt.
        """
        attempt = self._attempts.by_token(token)
        if attempt is None or not attempt.running:
            return False
        now, last = self._now(), attempt.last_contact
        if last is None or now - last > SIGN_OF_LIFE:
            self._move(attempt, lambda found: replace(found, asked=now))
        return True

    def is_running(self, token: str) -> bool:
        """Return whether the token belongs to a running attempt."""
        attempt = self._attempts.by_token(token)
        return attempt is not None and attempt.running

    def may_post(self, token: str) -> bool:
        """Return whether a post with this token is read. An ended attempt may repeat its result and send its log."""
        return self._attempts.by_token(token) is not None

    def document(self, token: str, name: str) -> bytes | None:
        """Return the document prepared for the card by which the machine booted, else the one for any of its cards."""
        attempt = self._attempts.by_token(token)
        if attempt is None or not attempt.running:
            return None
        own = self._attempts.document(attempt, for_card(name, attempt.card)) if attempt.card is not None else None
        return own if own is not None else self._attempts.document(attempt, name)

    def post(self, token: str, name: str, body: bytes, host: str) -> ChannelReply:
        attempt = self._attempts.by_token(token)
        if attempt is None or not (attempt.running or name in _FINAL_POSTS) or len(body) > POST_BYTES.get(name, -1):
            return NOT_FOUND
        return self._posts[name](attempt, body, host)

    # --- calls ------------------------------------------------------------------------------------------------------

    def _boot(self, call: Call) -> ChannelReply:
        mac = _mac(call.mac)
        return text(200, self.boot(mac, call.serial)) if mac is not None else NOT_FOUND

    def _start(self, call: Call) -> ChannelReply:
        mac = _mac(call.mac)
        script = self.start_script(call.token, mac, call.serial) if mac is not None else None
        return text(200, script) if script is not None else NOT_FOUND

    def _efi(self, call: Call) -> ChannelReply:
        """Return the parts of the EFI program of the running attempt with this ticket; the command line has its token.

        Firmware asks by HEAD for its size first; that changes nothing.
        """
        attempt = self._attempts.by_ticket(call.token)
        if attempt is None or not _by_https(attempt):
            return NOT_FOUND
        if call.name != "HEAD":
            attempt = self._move(attempt, lambda now: with_https_boot(now, self._now())) or attempt
        boot = attempt.boot
        if boot is None or not attempt.running or attempt.state is AttemptState.WRITING:
            return NOT_FOUND
        parts = {"stub": boot.stub, "arguments": boot.arguments, "kernel": boot.kernel, "initrd": boot.initrd}
        return text(200, json.dumps(parts))

    def _document(self, call: Call) -> ChannelReply:
        content = self.document(call.token, call.name)
        return ChannelReply(200, content) if content is not None else NOT_FOUND

    # --- posts --------------------------------------------------------------------------------------------------------

    def _report(self, attempt: InstallAttempt, body: bytes, host: str) -> ChannelReply:
        try:
            report = parse(_text(body))
        except ParseError as error:
            why = plain(error.message)
            self._move(attempt, lambda now: with_milestone(now, f"its report is invalid: {why}", self._now()))
            return text(409, f"{why}\n")
        after = self._move(attempt, lambda now: with_report(now, report, host, self._now()))
        if after is None:
            return NOT_FOUND
        if after.state is not AttemptState.WRITING:
            return text(409, f"{after.reason}\n")
        return text(200, self._lines(after))

    def _progress(self, attempt: InstallAttempt, body: bytes, host: str) -> ChannelReply:
        return self._add_milestone(attempt, _text(body), host)

    def _webhook(self, attempt: InstallAttempt, body: bytes, host: str) -> ChannelReply:
        """Handle a report in an installer's own format. A report that cannot be parsed is ignored."""
        return self._add_milestone(attempt, message_of(body), host)

    def _add_milestone(self, attempt: InstallAttempt, words: str, host: str) -> ChannelReply:
        if not plain(words):
            return OK
        return OK if self._move(attempt, lambda now: with_milestone(now, words, self._now(), host)) else NOT_FOUND

    def _host_key(self, attempt: InstallAttempt, body: bytes, host: str) -> ChannelReply:
        del host
        key = host_key(_text(body))
        if key is None:
            return text(409, "no public ed25519 key in one line\n")
        if attempt.state is not AttemptState.WRITING:
            return text(409, "the report comes first\n")
        try:
            return OK if self._move(attempt, lambda now: with_host_key(now, key, self._now())) else NOT_FOUND
        except ConflictError as error:
            return text(409, f"{error.message}\n")

    def _log(self, attempt: InstallAttempt, body: bytes, host: str) -> ChannelReply:
        del host
        self._attempts.keep_log(attempt, body)
        return OK

    def _failed(self, attempt: InstallAttempt, body: bytes, host: str) -> ChannelReply:
        del host
        why = plain(_text(body)) or "the machine gave no reason"
        over = partial(finished, state=AttemptState.FAILED, reason=why)
        return OK if self._move(attempt, lambda now: over(now, now=self._now())) else NOT_FOUND

    def _done(self, attempt: InstallAttempt, body: bytes, host: str) -> ChannelReply:
        """End the attempt of a machine that was permitted to write. A repeated message after a lost answer is fine."""
        del body
        if attempt.state is AttemptState.DONE:
            return OK
        if attempt.state is not AttemptState.WRITING:
            return text(409, "the report comes first\n") if attempt.running else NOT_FOUND
        done = partial(finished, state=AttemptState.DONE, reason="")
        moved = self._move(attempt, lambda now: replace(done(now, now=self._now()), address=host))
        return OK if moved is not None and moved.state is AttemptState.DONE else NOT_FOUND

    def _is_from_elsewhere(self, call: Call) -> bool:
        """Return whether our DHCP reserves another address for the machine than the one that asks; note the attempt."""
        if call.kind == "boot":
            return False  # it gets no secret
        start = call.kind in ("start", "efi")
        attempt = self._attempts.by_ticket(call.token) if start else self._attempts.by_token(call.token)
        if attempt is None or (attempt.is_allowed if start else attempt.may_use_token)(call.host):
            return False
        what = "asked for its installer" if start else f"used its token ({call.name or call.kind})"
        where = _address(call.host) or "an unknown address"
        self._note(attempt, f"{where} {what} and got no answer: {attempt.only_from} is reserved for it")
        return True

    # --- helpers ------------------------------------------------------------------------------------------------------

    def _move(self, attempt: InstallAttempt, move: Callable[[InstallAttempt], InstallAttempt]) -> InstallAttempt | None:
        """Change the record as it is now. An attempt that has ended meanwhile stays as it is."""
        return self._attempts.change(attempt.node, lambda now: move(now) if now.running else now, of=attempt.id)

    def _note(self, attempt: InstallAttempt, words: str) -> None:
        """Keep an unproven line with the attempt, where the last one is old enough."""
        now = self._now()
        with self._guard:
            last = self._noted.get(attempt.node)
            if last is not None and timedelta() <= now - last < NOTE:
                return
            self._noted[attempt.node] = now
        self._attempts.note(attempt, words)

    def _now(self) -> datetime:
        return self._clock.now()

    def _lines(self, attempt: InstallAttempt) -> str:
        time = f"time={int(self._now().timestamp())}"
        if attempt.erase:
            return "\n".join([time, *(f"erase={drive.path}" for drive in attempt.drives or ())]) + "\n"
        lines = [f"root={attempt.root}", time]
        if attempt.payload.path:
            payload = attempt.payload
            lines += [
                f"image=/t/{attempt.token}/files/{payload.path}",
                f"sha256={payload.sha256}",
                f"size={payload.size}",
            ]
        return "\n".join([*lines, f"hostname={attempt.node}"]) + "\n"


_FINAL_POSTS = frozenset({"log", "done", "failed"})


def host_key(text: str) -> str | None:
    """Return `ssh-ed25519 AAAA…` without its comment; None where the text is no ed25519 public key."""
    parts = text.split()
    if text.strip().count("\n") or len(parts) < 2 or parts[0] != "ssh-ed25519":
        return None
    bare = f"{parts[0]} {parts[1]}"
    try:
        key = load_ssh_public_key(bare.encode())
    except ValueError:
        return None
    return bare if isinstance(key, Ed25519PublicKey) else None


def _by_https(attempt: InstallAttempt) -> bool:
    return attempt.boot is not None and bool(attempt.boot.stub)


def _unarmed(attempt: InstallAttempt) -> str:
    if attempt.state is AttemptState.DONE:
        return f"{attempt.node} is {'erased' if attempt.erase else 'installed'}"
    if attempt.state is AttemptState.READY:
        return f"{attempt.node} is not to be installed now"
    return f"{attempt.node} is not installed: {attempt.reason}"


def _mac(value: str) -> Mac | None:
    try:
        return read_mac(value)
    except ValueError:
        return None


def _address(value: str) -> str:
    """Return the address, or nothing where it is none."""
    try:
        return str(ip_address(value))
    except ValueError:
        return ""


def _text(body: bytes) -> str:
    return body.decode("utf-8", "replace")

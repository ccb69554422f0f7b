"""The result of a play for each host: turns the supervisor's messages into outcomes and evidence. Pure.

A host is done when it fails or becomes unreachable (reported at once), or when the statistics list it as processed. A
failure that a `rescue` would catch counts as a failure: the playbooks have none, and a false alarm is better than a
missed failure. A host that the statistics do not list did nothing, which is a failure too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from clusterctl.edges.redaction import Redaction
from clusterctl.fleet.peer_text import visible
from clusterctl.ports import PlayOutcome
from clusterctl.ports.isolation import peer_error

SECRET_NAME = re.compile(r"pass(word|phrase|wd)|secret|token|credential|private|api_?key", re.IGNORECASE)


def redaction(variables: Mapping[str, Any], secrets: Mapping[str, str]) -> Redaction:
    """Return a redaction of all `secrets`, and of variables with a name, or a parent's name, that marks a secret."""
    return Redaction([*secrets.values(), *_secrets(variables, secret=False)])


def _secrets(value: Any, *, secret: bool) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _secrets(inner, secret=secret or bool(SECRET_NAME.search(str(name))))
    elif isinstance(value, str | int | float):
        if secret:
            yield str(value)
    elif isinstance(value, Sequence):
        for inner in value:
            yield from _secrets(inner, secret=secret)


MESSAGE_LIMIT = 1000
KEPT = 4096  # characters of each text of a task
REBOOT_REQUEST = "reboot_required_by"
"""The key of a playbook's message with the roles that need a reboot; `boot_id` is in the same message."""
NO_LOG = "the task's output is hidden (no_log)"

Message = Mapping[str, Any]


@dataclass(slots=True)
class _HostLog:
    """What is known of one host. `item_message` is the message of the last failed item of the running loop."""

    tasks: list[dict[str, Any]] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)
    reboot_for: tuple[str, ...] = ()
    boot_id: str = ""
    running: str = ""
    item_message: str = ""
    done: bool = False


@dataclass(frozen=True, slots=True)
class HostResult:
    """The outcome of a host, and its tasks as JSON lines without secrets."""

    outcome: PlayOutcome
    tasks: bytes


class Transcript:
    """The messages of one run. `add` yields the result of each host once."""

    def __init__(self, hosts: Sequence[str], redact: Callable[[str], str]) -> None:
        self._logs = {host: _HostLog() for host in hosts}
        self.redact = redact

    @property
    def unfinished(self) -> tuple[str, ...]:
        """Return the hosts without a result."""
        return tuple(host for host, log in self._logs.items() if not log.done)

    def add(self, message: Message) -> Iterator[HostResult]:
        """Take one message, and yield the results that it decides. One that cannot be processed fails its own host."""
        try:
            yield from self._add(message)
        except Exception as error:  # noqa: BLE001 — peer_error raises what is not the peer's
            host = str(message.get("host", ""))
            why = peer_error(error, host).message
            if host in self._logs and not self._logs[host].done:
                self._logs[host].tasks = []
                yield self._failed(host, self._logs[host].running, why)

    def _add(self, message: Message) -> Iterator[HostResult]:
        kind = message["event"]
        if kind == "playbook_on_stats":
            yield from self._close(message)
            return
        message = self._redacted(message)
        log = self._logs.get(message.get("host", ""))
        if log is None or log.done:
            return
        if kind == "runner_on_start":
            log.running, log.item_message = _title(message), ""
        elif kind == "runner_item_on_failed":
            log.item_message = self._reason(message)
        elif kind in _STATUS:
            yield from self._task_done(message["host"], log, kind, message)

    def _redacted(self, message: Message) -> Message:
        """Return the message without secrets, and then clipped: half a secret could not be recognised."""
        result = message.get("result", {})
        kept = {
            name: visible(self.redact(text), KEPT) if isinstance(text, str) else text for name, text in result.items()
        }
        return {**message, "result": kept}

    def out_of_time(self) -> Iterator[HostResult]:
        """Yield a failure for every unfinished host at the deadline."""
        for host in self.unfinished:
            running = self._logs[host].running
            yield self._failed(
                host,
                running,
                "not finished at the deadline" if running else "still waiting at the deadline",
            )

    def lost(self, reason: str, *, unreachable: bool) -> Iterator[HostResult]:
        """Yield a failure of the running task for every unfinished host, when no more messages will come."""
        for host in self.unfinished:
            log = self._logs[host]
            text = self.redact(reason)[:MESSAGE_LIMIT]
            status = "unreachable" if unreachable else "failed"
            log.tasks.append({"task": log.running, "action": "", "status": status, "seconds": 0.0, "msg": text})
            yield self._failed(host, log.running, text, unreachable=unreachable)

    def _task_done(self, host: str, log: _HostLog, kind: str, message: Message) -> Iterator[HostResult]:
        title, log.running = _title(message), ""
        status = _status(kind, message)
        if status == "changed":
            log.changes.append(title)
        if status == "ok":
            log.reboot_for, log.boot_id = _reboot_request(message) or (log.reboot_for, log.boot_id)
        self._record(log, title, status, message)
        if status == "failed":
            reason = log.item_message or self._reason(message)
            yield self._failed(host, title, reason)
        elif status == "unreachable":
            yield self._failed(host, title, self._reason(message), unreachable=True)

    def _record(self, log: _HostLog, title: str, status: str, message: Message) -> None:
        result = message["result"]
        kept = {"task": title, "action": message["action"], "status": status, "seconds": message["seconds"]}
        if "censored" in result:
            kept["msg"] = NO_LOG
        else:
            names = ("rc", "msg", "stdout", "stderr")
            kept |= {name: result[name] for name in names if result.get(name) not in (None, "")}
            if log.item_message:
                kept["msg"] = log.item_message
        log.tasks.append(kept)

    def _close(self, stats: Message) -> Iterator[HostResult]:
        for host in self.unfinished:
            log = self._logs[host]
            if host in stats["dark"]:
                yield self._failed(host, log.running, "unreachable in the statistics of the play", unreachable=True)
            elif host in stats["failures"] or host not in stats["processed"]:
                failed = host in stats["failures"]
                yield self._failed(
                    host,
                    log.running,
                    "failed in the statistics of the play" if failed else "the play did nothing on this host",
                )
            else:
                log.done = True
                yield HostResult(self._outcome(host), self._tasks(log))

    def _failed(self, host: str, task: str, reason: str, *, unreachable: bool = False) -> HostResult:
        log = self._logs[host]
        log.done = True
        outcome = replace(self._outcome(host), ok=False, failed_task=task, message=reason, unreachable=unreachable)
        return HostResult(outcome, self._tasks(log))

    def _outcome(self, host: str) -> PlayOutcome:
        """Return the outcome of a host without a failure."""
        log = self._logs[host]
        return PlayOutcome(
            host,
            ok=True,
            changed=len(log.changes),
            changes=tuple(log.changes),
            reboot_for=log.reboot_for,
            boot_id=log.boot_id,
        )

    def _tasks(self, log: _HostLog) -> bytes:
        return self.redact("".join(json.dumps(task, ensure_ascii=False) + "\n" for task in log.tasks)).encode()

    def _reason(self, message: Message) -> str:
        """Return the reason of a failure: the message, and the command's output where there is no other."""
        result = message["result"]
        if "censored" in result:
            return NO_LOG
        parts = [str(result[name]).strip() for name in ("msg", "stderr", "module_stderr", "stdout") if result.get(name)]
        distinct = list(dict.fromkeys(part for part in parts if part))
        return self.redact(": ".join(distinct[:2]) or "no reason given")[:MESSAGE_LIMIT]


_STATUS = {
    "runner_on_ok": "ok",
    "runner_on_failed": "failed",
    "runner_on_skipped": "skipped",
    "runner_on_unreachable": "unreachable",
}


def _reboot_request(message: Message) -> tuple[tuple[str, ...], str] | None:
    """Return roles and boot id if the message is a playbook's request for a reboot, else None.

    Only a task of the playbook itself counts: a role may print anything.
    """
    content = message["result"].get("msg")
    if message["role"] or not isinstance(content, Mapping) or REBOOT_REQUEST not in content:
        return None
    return tuple(str(role) for role in content[REBOOT_REQUEST]), str(content.get("boot_id", ""))


def _status(kind: str, message: Message) -> str:
    """Return how a task ended: ok, changed, skipped, failed, unreachable, or the last two followed by ", ignored"."""
    status, result = _STATUS[kind], message["result"]
    if status == "ok" and result.get("changed"):
        return "changed"
    ignored = message["ignored"] or "skip_reason" in result
    return f"{status}, ignored" if ignored and status in ("failed", "unreachable") else status


def _title(message: Message) -> str:
    return f"{message['role']} : {message['task']}" if message["role"] else str(message["task"])

"""What a play did, host by host: turns the supervisor's messages into outcomes and evidence. Pure.

A host is over when it failed or became unreachable (told at once), or when the statistics say that it was processed
without either. A failure that a `rescue` would have caught counts as a failure: our playbooks have none, and a failure
told too often is better than one told too seldom. A host that no statistics name did nothing: that is a failure too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from clusterctl.ports import PlayOutcome

MESSAGE_LIMIT = 1000
KEPT = 4096  # characters of each text that a task says
REBOOT_ASKED = "reboot_required_by"
"""The key by which a playbook's message says which roles need a reboot; `boot_id` stands beside it."""
NO_LOG = "the task's output is hidden (no_log)"

Message = Mapping[str, Any]


@dataclass(slots=True)
class _HostLog:
    """What is known of one host so far. `item_message` is what the last failed item of the running loop said."""

    tasks: list[dict[str, Any]] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)
    reboot_for: tuple[str, ...] = ()
    boot_id: str = ""
    running: str = ""
    item_message: str = ""
    over: bool = False


@dataclass(frozen=True, slots=True)
class HostResult:
    """A host's outcome, and its task list as JSON lines, secrets taken out."""

    outcome: PlayOutcome
    tasks: bytes


class Transcript:
    """Follows one run. `hear` yields each host's result once."""

    def __init__(self, hosts: Sequence[str], redact: Callable[[str], str]) -> None:
        self._logs = {host: _HostLog() for host in hosts}
        self._redact = redact

    @property
    def unfinished(self) -> tuple[str, ...]:
        return tuple(host for host, log in self._logs.items() if not log.over)

    def hear(self, message: Message) -> Iterator[HostResult]:
        kind = message["event"]
        if kind == "playbook_on_stats":
            yield from self._close(message)
            return
        message = self._discreet(message)
        log = self._logs.get(message.get("host", ""))
        if log is None or log.over:
            return
        if kind == "runner_on_start":
            log.running, log.item_message = _title(message), ""
        elif kind == "runner_item_on_failed":
            log.item_message = self._reason(message)
        elif kind in _STATUS:
            yield from self._task_over(message["host"], log, kind, message)

    def _discreet(self, message: Message) -> Message:
        """Its texts without secrets, and only then cut: half a secret would not be known as one."""
        result = message.get("result", {})
        kept = {name: self._redact(said)[:KEPT] if isinstance(said, str) else said for name, said in result.items()}
        return {**message, "result": kept}

    def out_of_time(self) -> Iterator[HostResult]:
        """Every host that is not over, at the deadline: those with a running task hang, the others were held up."""
        for host in self.unfinished:
            running = self._logs[host].running
            yield self._failed(
                host,
                running,
                "not finished at the deadline" if running else "still waiting for its turn at the deadline",
            )

    def lost(self, reason: str, *, unreachable: bool) -> Iterator[HostResult]:
        """Every host that is not over, when nothing more will be heard of it: its running task failed."""
        for host in self.unfinished:
            log = self._logs[host]
            said = self._redact(reason)[:MESSAGE_LIMIT]
            status = "unreachable" if unreachable else "failed"
            log.tasks.append({"task": log.running, "action": "", "status": status, "seconds": 0.0, "msg": said})
            yield self._failed(host, log.running, said, unreachable=unreachable)

    def _task_over(self, host: str, log: _HostLog, kind: str, message: Message) -> Iterator[HostResult]:
        result = message["result"]
        title, log.running = _title(message), ""
        status = _STATUS[kind]
        if message["ignored"] or "skip_reason" in result:
            status = f"{status}, ignored" if status in ("failed", "unreachable") else status
        if status == "ok" and result.get("changed"):
            status = "changed"
            log.changes.append(title)
        if status == "ok":
            log.reboot_for, log.boot_id = _reboot_asked(message) or (log.reboot_for, log.boot_id)
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
                yield self._failed(host, log.running, "unreachable, says the summary of the play", unreachable=True)
            elif host in stats["failures"] or host not in stats["processed"]:
                failed = host in stats["failures"]
                yield self._failed(
                    host, log.running, "failed, says the summary of the play" if failed else "nothing was done"
                )
            else:
                log.over = True
                yield HostResult(self._outcome(host), self._tasks(log))

    def _failed(self, host: str, task: str, reason: str, *, unreachable: bool = False) -> HostResult:
        log = self._logs[host]
        log.over = True
        outcome = replace(self._outcome(host), ok=False, failed_task=task, message=reason, unreachable=unreachable)
        return HostResult(outcome, self._tasks(log))

    def _outcome(self, host: str) -> PlayOutcome:
        """That of a host on which all went well."""
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
        return self._redact("".join(json.dumps(task, ensure_ascii=False) + "\n" for task in log.tasks)).encode()

    def _reason(self, message: Message) -> str:
        """Why it failed, in its own words: the message, and what the command said where that is all there is."""
        result = message["result"]
        if "censored" in result:
            return NO_LOG
        parts = [str(result[name]).strip() for name in ("msg", "stderr", "module_stderr", "stdout") if result.get(name)]
        distinct = list(dict.fromkeys(part for part in parts if part))
        return self._redact(": ".join(distinct[:2]) or "it gave no reason")[:MESSAGE_LIMIT]


_STATUS = {
    "runner_on_ok": "ok",
    "runner_on_failed": "failed",
    "runner_on_skipped": "skipped",
    "runner_on_unreachable": "unreachable",
}


def _reboot_asked(message: Message) -> tuple[tuple[str, ...], str] | None:
    """Roles and boot id, where the message is a playbook's word that a reboot is needed; None where it is not.

    Only a playbook's own task is believed: what a role prints may be anything.
    """
    said = message["result"].get("msg")
    if message["role"] or not isinstance(said, Mapping) or REBOOT_ASKED not in said:
        return None
    return tuple(str(role) for role in said[REBOOT_ASKED]), str(said.get("boot_id", ""))


def _title(message: Message) -> str:
    return f"{message['role']} : {message['task']}" if message["role"] else str(message["task"])

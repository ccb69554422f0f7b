"""Incidents of a site and the messages about them: by its commands, at the end of runs, and after a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from clusterctl.edges.clock import CLOCK
from clusterctl.fleet.errors import EdgeError, UsageError
from clusterctl.fleet.event import Kind, NewEvent, Stream
from clusterctl.fleet.incidents.message import IncidentMessage
from clusterctl.fleet.payloads.hardware import BadLinks, FabricLinksJudged
from clusterctl.operations import incidents, notify
from clusterctl.operations.context import current_user, open_site
from clusterctl.ports import Deadline
from clusterctl_cli.main import run
from tests.cli.site_of_three import append, write
from tests.edges.notify.receivers import Receiver, http_receiver
from tests.events import new_event
from tests.fake_timer import FakeTimer
from tests.paths import ROOT

ROUTES = """
notify:
  channels:
    chat: {url: {file: secrets/chat-url}}
  routes:
    - {to: [chat]}
  attempts: 2
"""
TOKEN = "tok3n-of-the-chat-5b4a39"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """n2 is in quarantine; no command has looked at incidents yet."""
    return write(tmp_path)


def with_channel(site: Path, url: str) -> Path:
    (site / "secrets/chat-url").write_text(url)
    (site / "secrets/chat-url").chmod(0o600)
    with (site / "site.yml").open("a") as file:
        file.write(ROUTES)
    return site


@dataclass
class FakeNotifier:
    """Meets `Notifier`. `fails`: so many messages it does not take first."""

    fails: int = 0
    sent: list[IncidentMessage] = field(default_factory=list)

    def send(self, channel: str, message: IncidentMessage) -> None:
        if self.fails:
            self.fails -= 1
            raise EdgeError("it is down", where=channel)
        self.sent.append(message)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with http_receiver() as found:
        yield found


def printed(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, object]:
    capsys.readouterr()
    assert run([*argv, "--json"]) in (0, 1)
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_a_site_without_channels_has_incidents(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`notify send` opens them; `incident list` and `show` print them; nothing is sent."""
    assert run(["notify", "send", "--site", str(site)]) == 0
    assert "1 open (1 opened)" in capsys.readouterr().out
    (found,) = printed(capsys, "incident", "list", "--site", str(site))["incidents"]
    assert isinstance(found, dict)
    assert (found["code"], found["place"], found["state"]) == ("gpu_ecc_uncorrectable", "A01", "open")
    name = str(found["name"])
    shown = printed(capsys, "incident", "show", name[4:8], "--site", str(site))
    assert shown["members"][0]["serial"] == "S2"
    assert [event["kind"] for event in shown["history"]] == ["incident.opened"]
    assert run(["incident", "show", name, "--site", str(site)]) == 0
    assert "n2: 2 uncorrectable errors" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["inc-ffffffffff", "", "x\x1b[31m"])
def test_an_unknown_incident_is_exit_code_2(site: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["incident", "show", name, "--site", str(site)]) == 2
    assert "incident list --all" in capsys.readouterr().err


def test_a_decision_opens_and_resolves_an_incident(
    site: Path, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each at its end, with one message to the channel; the exit code is the decision's own."""
    with_channel(site, receiver.url(TOKEN))
    assert run(["quarantine", "n1", "--reason", "smoke", "--yes", "--site", str(site)]) == 0
    titles = [str(posted["title"]) for _, posted in receiver.posts]
    assert len(titles) == 2  # of n2, which was in quarantine before, and of n1
    assert run(["release", "n1", "n2", "--reason", "repaired", "--yes", "--site", str(site)]) == 0
    titles = [str(posted["title"]) for _, posted in receiver.posts][2:]
    assert all("resolved" in title for title in titles)
    assert len(titles) == 2
    listed = printed(capsys, "incident", "list", "--all", "--site", str(site))["incidents"]
    assert isinstance(listed, list)
    assert {one["state"] for one in listed} == {"resolved"}
    assert run(["notify", "send", "--site", str(site)]) == 0
    assert len(receiver.posts) == 4


def test_an_operator_ends_an_incident_by_hand(
    site: Path, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    """Previewed, with a reason; the channel gets one message that it is resolved, with name and reason; the node stays in
    quarantine, and opens no other incident until it is released and quarantined again.
    """
    with_channel(site, receiver.url(TOKEN))
    assert run(["notify", "send", "--site", str(site)]) == 0
    (found,) = printed(capsys, "incident", "list", "--site", str(site))["incidents"]
    name, at = str(found["name"]), ["--site", str(site)]
    resolve = ["incident", "resolve", name[4:8], "--reason", "accepted until the part is there"]
    assert run([*resolve, "--dry-run", *at]) == 0
    assert len(receiver.posts) == 1
    assert run([*resolve, "--yes", *at]) == 0
    (_, posted), *more = receiver.posts[1:]
    assert (more, posted["type"]) == ([], "success")
    assert "resolved" in str(posted["title"])
    assert f"by {current_user()}: accepted until the part is there" in str(posted["message"])
    assert run(["notify", "send", *at]) == 0
    assert "0 open" in capsys.readouterr().out
    shown = printed(capsys, "incident", "show", name, *at)
    assert (shown["state"], shown["resolved_by"], shown["still_seen"]) == ("resolved", current_user(), True)
    assert [event["actor"] for event in shown["history"] if event["kind"] == "incident.resolved"] == [current_user()]
    assert printed(capsys, "nodes", "n2", *at)["nodes"][0]["stage"] == "quarantined"
    assert run([*resolve, "--yes", *at]) == 2, "it is resolved already"
    assert "incident show" in capsys.readouterr().err
    assert run(["release", "n2", "--reason", "repaired", "--yes", *at]) == 0
    assert printed(capsys, "incident", "show", name, *at)["still_seen"] is False
    assert len(receiver.posts) == 2
    assert run(["quarantine", "n2", "--reason", "smoke", "--yes", *at]) == 0
    assert len(receiver.posts) == 3
    assert run(["journal", "verify", *at]) == 0


@pytest.mark.parametrize("reason", ["", "  ", "done: …"])
def test_an_incident_is_resolved_for_a_reason(site: Path, reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["notify", "send", "--site", str(site)]) == 0
    assert run(["incident", "resolve", "inc-", "--reason", reason, "--yes", "--site", str(site)]) == 2
    assert "--reason" in capsys.readouterr().err


def test_a_dead_channel_changes_no_outcome(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The decision is carried out; the message waits, and its URL is nowhere in the output or the log."""
    with http_receiver() as gone:
        url = gone.url(TOKEN)
    with_channel(site, url)
    assert run(["quarantine", "n1", "--reason", "smoke", "--yes", "--site", str(site)]) == 0
    assert run(["notify", "send", "--site", str(site)]) == 0  # not due yet
    text = capsys.readouterr()
    assert "2 messages wait" in text.out
    logs = "".join(file.read_text() for file in (site / "state/logs").glob("*"))
    assert TOKEN not in f"{text.out}{text.err}{logs}"
    assert "messag" in logs


def test_a_missing_secret_changes_no_outcome(site: Path) -> None:
    with_channel(site, "x")
    (site / "secrets/chat-url").unlink()
    assert run(["quarantine", "n1", "--reason", "smoke", "--yes", "--site", str(site)]) == 0


def test_a_message_that_is_not_taken_is_tried_again_later(site: Path) -> None:
    """Not before its time."""
    context = open_site(with_channel(site, "json://127.0.0.1:1/x"))
    notifier = FakeNotifier(fails=2)
    first = notify.run(context, notifier)
    assert (first.exit_code, first.pending) == (1, 1)
    (waiting,) = context.journal.incidents()
    delivery = waiting.delivery("chat")
    assert delivery.retry_at is not None
    assert not delivery.due(CLOCK.now())
    assert delivery.due(CLOCK.now() + timedelta(minutes=1))
    assert notify.run(context, notifier).messages == ()
    context.journal.close()


def test_the_last_attempt_gives_a_message_up(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What changes afterwards is sent again."""
    with_channel(site, "json://127.0.0.1:1/x")
    file = site / "site.yml"
    file.write_text(file.read_text().replace("attempts: 2", "attempts: 1"))
    context, notifier = open_site(site), FakeNotifier(fails=1)
    assert notify.run(context, notifier).given_up == 1
    (state,) = context.journal.incidents()
    assert run(["incident", "show", state.id, "--site", str(site)]) == 0
    assert "given up after 1 attempts: chat: it is down" in capsys.readouterr().out
    append(site, [new_event("node", "id-n2", Kind.NODE_RELEASED, {"to": "cabled", "reason": "repaired"})])
    assert notify.run(context, notifier).exit_code == 0
    assert [message.phase.value for message in notifier.sent] == ["resolved"]
    context.journal.close()


def test_a_secret_that_is_put_right_lets_messages_go(site: Path, receiver: Receiver) -> None:
    """`notify test` sends to one channel, or all; nothing of it is in the journal."""
    with_channel(site, receiver.url(TOKEN))
    assert run(["notify", "test", "--site", str(site)]) == 0
    assert run(["notify", "test", "chat", "--site", str(site)]) == 0
    assert len(receiver.posts) == 2
    assert run(["notify", "test", "chta", "--site", str(site)]) == 2
    receiver.answers.append(500)
    assert run(["notify", "test", "--site", str(site)]) == 1
    context = open_site(site)
    assert not context.journal.incidents()
    context.journal.close()


def test_a_site_without_channels_tests_none(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["notify", "test", "--site", str(site)]) == 2
    assert "docs/how-to/notifications.md" in capsys.readouterr().err


KILLED = """
import os, signal, sys
from pathlib import Path
from clusterctl.operations import notify
from clusterctl.operations.context import open_site

class Killer:
    def send(self, channel, message):
        print(message.incident, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

notify.run(open_site(Path(sys.argv[1])), Killer())
"""


def test_a_kill_between_intent_and_result_repeats_the_message_with_the_same_incident(site: Path) -> None:
    """At least once: the incident is not opened again, and the repeat has its id."""
    with_channel(site, "json://127.0.0.1:1/x")
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(site)], check=False, cwd=ROOT, capture_output=True, text=True, env=os.environ
    )
    assert killed.returncode == -signal.SIGKILL
    context, notifier = open_site(site), FakeNotifier()
    result = notify.run(context, notifier)
    assert [one.incident for one in notifier.sent] == killed.stdout.split()
    assert result.incidents.opened == ()
    (state,) = context.journal.incidents()
    assert (state.delivery("chat").sent, state.delivery("chat").attempts) == (1, 2)
    assert notify.run(context, notifier).messages == ()
    context.journal.close()


def test_bad_links_of_the_journal_are_an_incident(site: Path) -> None:
    """A judgement that measured nothing leaves it open; a clean one resolves it."""
    bad = BadLinks(kind="flapping", verdict="fail", cause="it flaps", action="reseat", rack="A01", ends=("n1 mlx5_0",))
    context = open_site(site)

    def judge(payload: FabricLinksJudged) -> list[str]:
        append(site, [NewEvent(Stream.FABRIC, "links", payload)])
        incidents.update(context)
        return [one.facts.code for one in incidents.listed(context) if one.facts.what.value == "links"]

    assert judge(FabricLinksJudged(verdict="fail", links=64, bad=1, found=(bad,))) == ["flapping"]
    assert judge(FabricLinksJudged(verdict="inconclusive", reason="no port")) == ["flapping"]
    assert judge(FabricLinksJudged(verdict="pass", links=64, proven=64)) == []
    context.journal.close()


def test_stored_incidents_are_the_fold_of_their_events(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`journal verify` compares them; `journal compact` computes them again."""
    assert run(["notify", "send", "--site", str(site)]) == 0
    assert run(["journal", "verify", "--site", str(site)]) == 0
    context = open_site(site)
    before = context.journal.incidents()
    context.journal.close()
    assert run(["journal", "compact", "--yes", "--site", str(site)]) == 0
    context = open_site(site)
    assert context.journal.incidents() == before
    assert [event.kind for event in context.journal.history(Stream.INCIDENT, before[0].id)] == [Kind.INCIDENT_OPENED]
    context.journal.close()


def test_the_end_of_a_run_has_one_limit_for_incidents_and_messages(site: Path) -> None:
    """Where the incidents are claimed, it waits no longer than that; what it waited, messages do not have."""
    first, second = (open_site(with_channel(site, "json://127.0.0.1:1/x")), open_site(site))
    claims = first.journal.claim([incidents.CLAIM], first.run)
    timer, notifier = FakeTimer(), FakeNotifier()
    with pytest.raises(UsageError, match="another run acts on it"):
        notify.run(second, notifier, notify.AFTER_A_RUN_S, timer)
    assert timer.now() == notify.AFTER_A_RUN_S

    def released_late() -> None:
        first.journal.release(claims.granted.values())
        timer.advance(notify.AFTER_A_RUN_S)

    late = notify.run(second, notifier, notify.AFTER_A_RUN_S, timer.act_when_waited(released_late))
    assert (len(late.incidents.opened), late.messages, late.pending) == (1, (), 1)
    assert len(notify.run(second, notifier).messages) == 1
    first.journal.close()
    second.journal.close()


def test_two_processes_do_not_derive_at_once(site: Path) -> None:
    """The second waits for the first, and gives up at its deadline; without any time it asks once."""
    first, second = open_site(site), open_site(site)
    claims = first.journal.claim([incidents.CLAIM], first.run)
    for seconds in (incidents.PATIENCE_S, 0.0):
        timer = FakeTimer()
        with pytest.raises(UsageError, match="another run acts on it"):
            incidents.update(second, Deadline.after(seconds, timer=timer))
        assert timer.now() == seconds
    first.journal.release(claims.granted.values())
    assert incidents.update(second).open == 1
    for context in (first, second):
        context.journal.close()

"""From events to outcomes: who is over, when, and why."""

from __future__ import annotations

import json
from typing import Any

from clusterctl.edges.ansible.transcript import KEPT, Transcript, redaction
from clusterctl.ports import PlayOutcome


def event(kind: str, host: str = "a", *, task: str = "Do", ignored: bool = False, **result: Any) -> dict[str, Any]:
    return {
        "event": kind,
        "host": host,
        "role": "base",
        "task": task,
        "action": "ansible.builtin.command",
        "ignored": ignored,
        "seconds": 0.1,
        "result": result,
    }


def stats(**hosts: str) -> dict[str, Any]:
    """`stats(a="ok", b="failures", c="dark")`."""
    kinds: dict[str, dict[str, int]] = {name: {} for name in ("changed", "dark", "failures", "ok", "processed")}
    for host, kind in hosts.items():
        kinds[kind][host] = 1
        kinds["processed"][host] = 1
    return {"event": "playbook_on_stats", **kinds}


def outcomes(*events: dict[str, Any], hosts: tuple[str, ...] = ("a",), secrets: dict[str, str] | None = None) -> Any:
    transcript = Transcript(hosts, redaction(secrets or {}, {}))
    return [result for each in events for result in transcript.add(each)], transcript


def test_a_host_is_good_only_once_the_statistics_confirm_it() -> None:
    """Tasks that went well prove nothing until the play is over for the host."""
    found, transcript = outcomes(event("runner_on_ok", changed=True))
    assert found == []
    assert [result.outcome for result in transcript.add(stats(a="ok"))] == [
        PlayOutcome("a", ok=True, changed=1, changes=("base : Do",))
    ]


def test_a_host_that_nothing_was_done_on_is_not_good() -> None:
    """A play that matches no host ends without a failure; that is no success."""
    found, _ = outcomes(stats(b="ok"))

    assert found[0].outcome == PlayOutcome("a", ok=False, changed=0, message="the play did nothing on this host")


def test_a_forgiven_failure_goes_on() -> None:
    """`ignore_errors` and `ignore_unreachable` are honoured, and stand in the evidence."""
    found, _ = outcomes(
        event("runner_on_failed", ignored=True, msg="no"),
        event("runner_on_unreachable", msg="gone", skip_reason="Host a is unreachable"),
        stats(a="ok"),
    )

    assert found[0].outcome.ok
    assert [json.loads(line)["status"] for line in found[0].tasks.splitlines()] == [
        "failed, ignored",
        "unreachable, ignored",
    ]


def test_a_host_is_reported_once() -> None:
    """What comes after a host's end changes nothing about it."""
    found, transcript = outcomes(event("runner_on_failed", msg="no"), event("runner_on_ok"), stats(a="failures"))

    assert [result.outcome.message for result in found] == ["no"]
    assert transcript.unfinished == ()


def test_secrets_and_hidden_output_never_reach_outcome_or_evidence() -> None:
    """A secret variable's value is masked wherever it turns up; no_log hides the whole result."""
    found, _ = outcomes(
        event("runner_on_ok", censored="hidden", stdout="not for you"),
        event("runner_on_failed", msg="login with hunter2hunter2 failed"),
        secrets={"maas_api_key": "hunter2hunter2"},
    )

    assert found[0].outcome.message == "login with (secret) failed"
    assert b"hunter2" not in found[0].tasks
    assert b"not for you" not in found[0].tasks


def test_at_the_deadline_the_hanging_host_is_separated_from_the_waiting_one() -> None:
    """Both are failures; the message names the host that hangs, and its task."""
    _, transcript = outcomes(event("runner_on_start", "a", task="Hang"), hosts=("a", "b"))
    late = {result.outcome.host: result.outcome for result in transcript.out_of_time()}

    assert late["a"].failed_task == "base : Hang"
    assert late["a"].message == "not finished at the deadline"
    assert "waiting" in late["b"].message


def test_a_secret_on_the_edge_of_what_is_kept() -> None:
    """Texts are cut after secrets are masked, so that no first half of one is kept."""
    secret = "sesame-" * 20
    found, _ = outcomes(
        event("runner_on_ok", stdout="x" * (KEPT - 30) + secret), stats(a="ok"), secrets={"password": secret}
    )
    assert b"sesame" not in found[0].tasks


def test_a_playbook_reports_the_roles_that_need_a_reboot() -> None:
    """Its own task is believed; the same words from a role's task are not."""
    asks = event("runner_on_ok", msg={"reboot_required_by": ["ofed", "base"], "boot_id": "b1"})
    found, _ = outcomes({**asks, "role": ""}, {**asks, "host": "b"}, stats(a="ok", b="ok"), hosts=("a", "b"))
    assert [(each.outcome.reboot_for, each.outcome.boot_id) for each in found] == [(("ofed", "base"), "b1"), ((), "")]

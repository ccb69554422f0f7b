"""Runs that their users order through the API: whose they are, what the service does for them, and what it refuses."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx
import pytest

from clusterctl.edges.site import Site
from clusterctl.edges.web.accounts import AccountFile
from clusterctl.fleet.access import ApiToken, UserRole
from clusterctl.fleet.event import Kind, NewEvent, Stream
from clusterctl.fleet.finding import Observed
from clusterctl.fleet.payloads.jobs import JobRunEnded
from clusterctl.fleet.scheduled_job import ScheduledJob
from clusterctl.operations.adapters import Access
from clusterctl.operations.job_inputs import JobRunRequest
from clusterctl.operations.job_runs import listed
from clusterctl.operations.serial import to_data
from clusterctl.ports import Deadline
from clusterctl.ports.jobs import Submission
from clusterctl.ports.scheduler import Occupancy, Use
from clusterctl_web.openapi import BASE
from tests.edges.slurm.job_site import JobSite, LocalAdapters, LocalHosts, job_site
from tests.operations.written_orders import WrittenOrders
from tests.web.browser import MADE, Browser, access

USER, OTHER = "ada", "bob"
ORDER = JobRunRequest(script="/home/ada/train.sh", folder="/home/ada/logs", nodes=2, part={"seed": "7"})


@dataclass
class FakeJobs:
    """Meets `ports.jobs.Jobs`: nothing may be submitted by the service."""

    reserved: list[tuple[str, ...]] = field(default_factory=list)

    def job(self, job: str, deadline: Deadline) -> ScheduledJob:
        raise AssertionError(job)

    def names(self, node_list: str, deadline: Deadline) -> Sequence[str]:
        return (node_list,)

    def marked(self, comment: str, deadline: Deadline, user: str = "") -> str:
        return ""

    def assign(self, job: str, nodes: Sequence[str], deadline: Deadline) -> None:
        raise AssertionError(job)

    def submit(self, submission: Submission, deadline: Deadline) -> str:
        raise AssertionError("the service submits nothing of a user")

    def reserve(self, name: str, nodes: Sequence[str], deadline: Deadline) -> None:
        self.reserved.append(tuple(nodes))

    def unreserve(self, name: str, deadline: Deadline) -> None:
        pass

    def cancel(self, job: str, deadline: Deadline) -> None:
        raise AssertionError(job)


class FakeScheduler:
    """Meets the part of `ports.scheduler.Scheduler` that placement asks: every node is idle."""

    def look(self, deadline: Deadline) -> Observed[dict[str, Occupancy]]:
        return Observed({name: Occupancy(use=Use.IDLE, state="idle") for name in ("c1", "c2", "c3")})


class FakeAdapters(LocalAdapters):
    @cached_property
    def jobs(self) -> FakeJobs:  # type: ignore[override]
        return FakeJobs()

    @cached_property
    def scheduler(self) -> FakeScheduler:  # type: ignore[override]
        return FakeScheduler()


@dataclass
class Bench:
    site: JobSite
    watched: list[str]
    clients: dict[str, Browser]

    def post(self, reader: str, path: str = "/jobs", **body: Any) -> httpx.Response:
        text = json.dumps(body)
        headers = {"Content-Type": "application/json"}
        return self.clients[reader].send("POST", BASE + path, content=text, headers=headers)

    def order(self, reader: str, wanted: JobRunRequest = ORDER) -> dict[str, Any]:
        asked = self.post(reader, request=to_data(wanted))
        assert asked.status_code == 200, asked.text
        answer = self.post(reader, request=to_data(wanted), approved=asked.json()["digest"])
        assert answer.status_code == 200, answer.text
        run: dict[str, Any] = answer.json()["run"]
        return run


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with job_site(tmp_path / "made") as site:
        hosts: LocalHosts = site.hosts

        def connect(settings: Site, rights: Access) -> FakeAdapters:
            return FakeAdapters(settings, rights, hosts)

        site.context = replace(site.context, connect=connect)
        watchers = WrittenOrders()
        allowed = access(tmp_path)
        file = allowed.accounts
        assert isinstance(file, AccountFile)
        until = datetime.now(UTC) + timedelta(days=1)
        clients = {}
        for user in (USER, OTHER, ""):
            token = ApiToken(
                name=user or "none", role=UserRole.VIEWER, digest="", made_at=MADE, made_by="root", expires_at=until,
                jobs_of=user,
            )  # fmt: skip
            headers = {"Authorization": f"Bearer {file.add(token)}"}
            clients[user or "none"] = Browser(site.context, allowed, headers=headers, start=watchers)
        yield Bench(site, watchers.runs, clients)


def test_a_user_orders_and_the_service_submits_nothing(bench: Bench) -> None:
    """The run is the user's, its nodes are chosen, its watcher is started once; the journal has the token's name."""
    run = bench.order(USER)
    assert (run["owner"], run["actor"], run["hidden"]) == (USER, f"token:{USER}", False)
    (attempt,) = run["attempts"]
    assert (len(attempt["nodes"]), attempt["job"]) == (2, "")
    assert bench.watched == [run["name"]]


def test_nodes_that_are_promised_are_chosen_once(bench: Bench) -> None:
    """Before the first user's job is in the scheduler, a second order gets no node of it."""
    bench.order(USER)
    refused = bench.post(OTHER, request=to_data(ORDER))
    assert (refused.status_code, "1 are idle" in refused.text) == (400, True)
    assert bench.order(OTHER, replace(ORDER, nodes=1))["attempts"][0]["nodes"] == ["c3"]


def test_what_was_approved_is_what_is_ordered(bench: Bench) -> None:
    asked = bench.post(USER, request=to_data(ORDER)).json()["digest"]
    other = bench.post(USER, request=to_data(replace(ORDER, script="/home/ada/other.sh")), approved=asked)
    assert (other.status_code, listed(bench.site.context)) == (409, ())


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"script": "train.sh"}, "script"),
        ({"folder": "logs"}, "folder"),
        ({"nodes": 0}, "nodes"),
        ({"spares": 50}, "spares"),
        ({"readers": ("regex:(a+)+$",)}, "readers"),
        ({"readers": ("nothing",)}, "--reader"),
        ({"policy": replace(ORDER.policy, quarantine=True)}, "policy.quarantine"),
        ({"policy": replace(ORDER.policy, retries=1000)}, "nodes"),
        ({"arguments": ("x" * 5000,)}, "arguments"),
    ],
)
def test_wrong_orders_are_refused(bench: Bench, changes: dict[str, Any], where: str) -> None:
    answer = bench.post(USER, request=to_data(replace(ORDER, **changes)))
    assert (answer.status_code, answer.json()["error"]["where"]) == (400, where)
    assert listed(bench.site.context) == ()


@pytest.mark.parametrize("body", [{}, {"request": 7}, {"request": {"script": "/x"}}, {"request": {}, "more": ""}])
def test_what_is_no_order_is_refused(bench: Bench, body: dict[str, Any]) -> None:
    assert bench.post(USER, **body).status_code == 400


def test_a_token_of_no_user_orders_nothing(bench: Bench) -> None:
    assert bench.post("none", request=to_data(ORDER)).json()["error"]["where"] == "token"


def test_open_runs_of_a_user_are_limited(bench: Bench) -> None:
    """The fifth is refused; once one is over, the next is taken, and other users are not concerned."""
    own = [bench.order(USER, replace(ORDER, nodes=1)) for _ in range(3)]
    with (bench.site.context.site.folder / "site.yml").open("a") as file:
        file.write("\njobs: {user_runs: 3}\n")
    site = replace(bench.site.context.site.settings, jobs=replace(bench.site.context.site.settings.jobs, user_runs=3))
    assert site.jobs.user_runs == 3
    for client in bench.clients.values():
        context = replace(bench.site.context, site=replace(bench.site.context.site, settings=site))
        client.context = context
        client.__post_init__()
    refused = bench.post(USER, request=to_data(replace(ORDER, nodes=1)))
    assert (refused.status_code, refused.json()["error"]["where"]) == (409, "jobs.user_runs")
    ended = JobRunEnded(outcome="stopped", reason="x")
    bench.site.context.journal.append([NewEvent(Stream.JOB, own[0]["name"], ended)])
    assert bench.post(USER, request=to_data(replace(ORDER, nodes=1))).status_code == 200


def test_only_the_owner_has_a_run_watched(bench: Bench) -> None:
    run = bench.order(USER)["name"]
    assert bench.post(OTHER, f"/jobs/{run}/watch").status_code == 403
    assert bench.watched == [run]
    assert bench.post(USER, f"/jobs/{run}/watch").status_code == 200
    assert bench.watched == [run], "its watcher has begun already"


def test_events_end_with_the_run(bench: Bench) -> None:
    """The stream has the run as it is, then its end; another user reads no script of it."""
    run = bench.order(USER)["name"]
    ended = NewEvent(Stream.JOB, run, JobRunEnded(outcome="stopped", reason="by its user"))
    threading.Timer(0.5, lambda: bench.site.context.journal.append([ended])).start()
    seen = [json.loads(line.removeprefix("data: ")) for line in stream(bench, USER, run)]
    assert [one["run"]["state"] for one in seen] == ["running", "stopped"]
    (hidden,) = [json.loads(line.removeprefix("data: ")) for line in stream(bench, OTHER, run)]
    assert (hidden["run"]["script"], hidden["run"]["hidden"]) == ("", True)
    assert [one.kind for one in bench.site.context.journal.history(Stream.JOB, run)][-1] is Kind.JOB_RUN_ENDED


def stream(bench: Bench, reader: str, run: str) -> list[str]:
    answer = bench.clients[reader].get(f"{BASE}/jobs/{run}/events")
    assert answer.headers["content-type"].startswith("text/event-stream")
    return [line for line in answer.text.splitlines() if line.startswith("data: ")]

"""Jobs for users without rights on the controller: an owner sees and asks everything of an own job, others a part."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker

from clusterctl.edges.site import Site
from clusterctl.edges.web.accounts import AccountFile
from clusterctl.fleet.access import ApiToken, UserRole
from clusterctl.fleet.blame import Certainty, Failure, Layer, Persistence
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import Kind, NewEvent, Stream
from clusterctl.fleet.finding import Digest, Evidence, Origin
from clusterctl.fleet.payloads.jobs import JobAttributed, JobRunEnded, JobSubmitIntended, JobSubmitted
from clusterctl.fleet.scheduled_job import ScheduledJob
from clusterctl.operations.adapters import Access
from clusterctl.operations.context import Invocation, open_site
from clusterctl.ports import Deadline
from clusterctl.ports.jobs import Submission
from clusterctl_web.openapi import BASE, document
from tests.edges.slurm.job_site import LOST_GPU, JobSite, LocalAdapters, LocalHosts, job_site
from tests.events import data_of
from tests.jobs.test_supervision import LOST, ORDERED
from tests.web.browser import MADE, Browser, access

NOW = datetime.now(UTC).replace(microsecond=0)
OWNER, OTHER = "viewer", "bob"
EVIL = "<script>alert(1)</script>"
RUN = "run-20261101T120000-aaaa"
MANIFEST = {"version": 1, "nodes": ["c1", "c2"], "seed": "7"}
JOBS = {
    "7": ScheduledJob(
        job="7", state="FAILED", node_list="c[1-2]", user=OWNER, started=NOW - timedelta(minutes=9), ended=NOW
    ),
    "8": ScheduledJob(job="8", state="RUNNING", node_list="c1", user="", started=NOW),
    "11": ScheduledJob(job="11", state="RUNNING", node_list="c1", user=OTHER, started=NOW),
}
ATTRIBUTED = JobAttributed(
    failure=Failure.CRASH, layer=Layer.APPLICATION, certainty=Certainty.PROVEN, persistence=Persistence.PERSISTENT,
    rule="exception", error="python", cause=f"raises {EVIL}", action="stop and ask the user", hosts=("c1",),
)  # fmt: skip


CANCELLED: list[str] = []
RUNNING, BARE = "run-20261101T130000-bbbb", "run-20261101T140000-cccc"


class FakeJobs:
    """Meets `ports.jobs.Jobs`: knows three jobs."""

    def job(self, job: str, deadline: Deadline) -> ScheduledJob:
        if job not in JOBS:
            raise UsageError("Slurm does not know it", where=f"job {job}")
        return JOBS[job]

    def names(self, node_list: str, deadline: Deadline) -> tuple[str, ...]:
        return ("c1", "c2") if node_list == "c[1-2]" else (node_list,)

    def reserve(self, name: str, nodes: Sequence[str], deadline: Deadline) -> None:
        pass

    def unreserve(self, name: str, deadline: Deadline) -> None:
        pass

    def marked(self, comment: str, deadline: Deadline, user: str = "") -> str:
        return ""

    def submit(self, submission: Submission, deadline: Deadline) -> str:
        raise AssertionError("nothing is submitted")

    def cancel(self, job: str, deadline: Deadline) -> None:
        CANCELLED.append(job)


class FakeAdapters(LocalAdapters):
    @cached_property
    def jobs(self) -> FakeJobs:  # type: ignore[override]
        return FakeJobs()


@dataclass(frozen=True, slots=True)
class Readers:
    """Clients with tokens: of the owner, of another user, of no user's jobs, of an administrator."""

    owner: Browser
    other: Browser
    neither: Browser
    admin: Browser


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JobSite]:
    """A supervised run of the owner that asks, with two jobs and manifests; a recorded job of another user."""
    with job_site(tmp_path_factory.mktemp("jobs")) as site:
        hosts: LocalHosts = site.hosts

        def connect(settings: Site, rights: Access) -> FakeAdapters:
            return FakeAdapters(settings, rights, hosts)

        hosts.kernel_log("c2").write_text(
            f"{NOW - timedelta(minutes=1):%Y-%m-%dT%H:%M:%S}+00:00 c2 kernel: {LOST_GPU}\n"
        )
        site.context = replace(site.context, connect=connect)
        _write_run(site.context.site.folder)
        yield site


def _write_run(folder: Path) -> None:
    context = open_site(folder, Invocation(actor=OWNER, command="job run"))
    digests: list[Digest] = []
    for seed in ("7", "8"):
        content = json.dumps({**MANIFEST, "seed": seed}).encode()
        evidence = Evidence("job run", "controller", NOW, Origin.REAL, content)
        context.journal.store([evidence])
        digests.append(evidence.digest)
    second = replace(LOST, attempt=2, job="12")
    context.journal.append(
        [
            NewEvent(Stream.JOB, RUN, ORDERED),
            NewEvent(
                Stream.JOB, RUN, JobSubmitIntended(attempt=1, nodes=("c1", "c2"), avoided=(), comment="a"), (digests[0],)
            ),
            NewEvent(Stream.JOB, RUN, JobSubmitted(attempt=1, job="11")),
            NewEvent(Stream.JOB, RUN, LOST),
            NewEvent(
                Stream.JOB, RUN, JobSubmitIntended(attempt=2, nodes=("c1", "c3"), avoided=("c2",), comment="b"),
                (digests[1],),
            ),
            NewEvent(Stream.JOB, RUN, JobSubmitted(attempt=2, job="12")),
            NewEvent(Stream.JOB, RUN, second),
            NewEvent(Stream.JOB, RUN, JobRunEnded(outcome="asks", reason=EVIL)),
            NewEvent(Stream.JOB, "5", replace(ATTRIBUTED, user=OTHER)),
            NewEvent(Stream.JOB, RUNNING, ORDERED),
            NewEvent(Stream.JOB, RUNNING, JobSubmitIntended(attempt=1, nodes=("c1",), avoided=(), comment="c"), (digests[0],)),
            NewEvent(Stream.JOB, RUNNING, JobSubmitted(attempt=1, job="21")),
        ]
    )  # fmt: skip
    context.journal.close()


@pytest.fixture
def readers(made: JobSite, tmp_path: Path) -> Readers:
    allowed = access(tmp_path)
    file = allowed.accounts
    assert isinstance(file, AccountFile)

    def client(name: str, role: UserRole, user: str) -> Browser:
        until = datetime.now(UTC) + timedelta(days=1)
        token = ApiToken(
            name=name, role=role, digest="", made_at=MADE, made_by="root", expires_at=until, jobs_of=user
        )  # fmt: skip
        return Browser(made.context, allowed, headers={"Authorization": f"Bearer {file.add(token)}"})

    return Readers(
        owner=client("own", UserRole.VIEWER, OWNER),
        other=client("other", UserRole.VIEWER, OTHER),
        neither=client("neither", UserRole.OPERATOR, ""),
        admin=client("root", UserRole.ADMIN, ""),
    )


def answered(client: Browser, path: str, method: str = "GET") -> dict[str, Any]:
    """The answer, which fits its description."""
    answer = client.send(method, BASE + path)
    assert answer.status_code == 200, answer.text
    template = "/".join("{job}" if at == 2 else part for at, part in enumerate(path.partition("?")[0].split("/")))
    described = document()["paths"][template][method.lower()]["responses"]["200"]["content"]["application/json"]
    schema = {**described["schema"], "components": document()["components"]}
    Draft202012Validator(schema, format_checker=FormatChecker()).validate(answer.json())
    found: dict[str, Any] = answer.json()
    return found


def test_each_reader_sees_class_layer_and_hosts_and_the_owner_the_texts(readers: Readers) -> None:
    """Of a run its script, folder and reasons, of a recorded failure its cause: for owner and administrator alone."""
    for client, whole in (
        (readers.owner, True),
        (readers.admin, True),
        (readers.other, False),
        (readers.neither, False),
    ):
        (run,) = [one for one in answered(client, "/jobs")["runs"] if one["name"] == RUN]
        first = run["attempts"][0]
        assert (first["layer"], first["certainty"], first["hosts"]) == ("hardware", "proven", ["n2"])
        assert (bool(run["script"]), bool(run["reason"]), bool(first["cause"])) == (whole, whole, whole)
        assert run["hidden"] is not whole
    for client, cause in ((readers.other, f"raises {EVIL}"), (readers.admin, f"raises {EVIL}"), (readers.owner, "")):
        failures = {one["job"]: one for one in answered(client, "/jobs")["failures"]}
        assert (failures["5"]["cause"], failures["5"]["layer"], failures["5"]["user"]) == (cause, "application", OTHER)
        why = answered(client, "/jobs/5/why")
        assert (why["cause"]["cause"], why["cause"]["suspects"]) == (cause, [{"host": "c1", "part": "", "rank": None}])


def test_a_job_has_its_run_and_where_the_time_went(readers: Readers) -> None:
    for name in ("12", RUN):
        found = answered(readers.neither, f"/jobs/{name}")
        assert (found["job"], found["user"], found["run"]["name"]) == ("12", OWNER, RUN)
        assert found["downtime"]["attempts"][0]["lost"] > 0


def test_the_downtime_of_all_runs(readers: Readers) -> None:
    """That of a run is the same as on its own page; no text of a job is shown; `since` is one of what the page offers."""
    (run,) = answered(readers.neither, "/downtime")["runs"]
    assert run == answered(readers.neither, f"/jobs/{RUN}")["downtime"]
    page = readers.neither.get("/downtime").text
    assert f'href="/jobs/{RUN}"' in page
    assert EVIL not in page
    assert "&lt;script" not in page
    assert answered(readers.neither, "/downtime?since=7d")["plans"]
    assert readers.neither.get(f"{BASE}/downtime?since=soon").status_code == 404


@pytest.mark.parametrize("path", ["/jobs/11/checklist", "/jobs/11/diff?with=12"])
def test_manifests_are_for_their_owner(readers: Readers, path: str) -> None:
    """A job of one's own does not open that of another."""
    assert answered(readers.owner, path)
    assert answered(readers.admin, path)
    for client in (readers.other, readers.neither):
        answer = client.get(BASE + path)
        assert (answer.status_code, answer.json()["error"]["kind"]) == (403, "privilege")


@pytest.mark.parametrize("path", ["/jobs/99/checklist", "/jobs/11/diff?with=99"])
def test_a_job_of_no_run_has_no_manifest(readers: Readers, path: str) -> None:
    """It is not called another user's: the name is wrong."""
    answer = readers.owner.get(BASE + path)
    assert (answer.status_code, answer.json()["error"]["kind"]) == (404, "usage")
    assert "'99'" in answer.json()["error"]["message"]


def test_what_differs(readers: Readers) -> None:
    found = answered(readers.owner, "/jobs/11/diff?with=12")["differences"]
    assert found == [{"field": "seed", "first": "7", "second": "8"}]
    assert readers.owner.get(f"{BASE}/jobs/11/diff").status_code == 404


def test_an_owner_has_the_nodes_read(readers: Readers, made: JobSite) -> None:
    """Before, nothing is known; after, the owner reads the line, and others class and suspects without it."""
    assert readers.owner.get(f"{BASE}/jobs/7/why").status_code == 404
    found = answered(readers.owner, "/jobs/7/why", "POST")
    assert (found["cause"]["layer"], found["cause"]["suspects"][0]["host"]) == ("hardware", "c2")
    assert LOST_GPU in found["cause"]["line"]
    again = answered(readers.owner, "/jobs/7/why")
    assert again["cause"] == found["cause"]
    part = answered(readers.other, "/jobs/7/why")
    assert (part["cause"]["line"], part["cause"]["suspects"][0]["host"], part["hidden"]) == ("", "c2", True)
    recorded = [one.payload for one in made.context.journal.history(Stream.JOB, "7") if one.kind is Kind.JOB_ATTRIBUTED]
    assert [one.user for one in recorded if isinstance(one, JobAttributed)] == [OWNER]
    page = readers.owner.get("/jobs/7").text
    assert "GPU has fallen off the bus" in page
    assert "GPU has fallen off the bus" not in readers.other.get("/jobs/7").text


def test_an_owner_stops_an_own_run(readers: Readers, made: JobSite) -> None:
    """Another user may not, and cancels nothing; the order is in the journal with the owner's name, before the cancel."""
    assert readers.other.send("POST", f"{BASE}/jobs/21/stop").status_code == 403
    assert readers.neither.send("POST", f"{BASE}/jobs/21/stop").status_code == 403
    assert CANCELLED == []
    assert "Stop the run" in readers.owner.get("/jobs/21").text
    assert "Stop the run" not in readers.other.get("/jobs/21").text
    assert answered(readers.owner, "/jobs/21/stop", "POST")["run"]["name"] == RUNNING
    assert CANCELLED == ["21"]
    *_, order = made.context.journal.history(Stream.JOB, RUNNING)
    assert (order.actor, data_of(order)["failure"], data_of(order)["job"]) == ("token:own", "ended", "21")


def test_the_page_of_a_run_without_a_manifest(readers: Readers, made: JobSite) -> None:
    """Its evidence is not kept any more: there is nothing to compare it with, and all else is shown."""
    context = open_site(made.context.site.folder, Invocation(actor=OWNER, command="job run"))
    intent = JobSubmitIntended(attempt=1, nodes=("c1",), avoided=(), comment="d")
    submitted = JobSubmitted(attempt=1, job="22")
    context.journal.append([NewEvent(Stream.JOB, BARE, payload) for payload in (ORDERED, intent, submitted)])
    context.journal.close()
    page = readers.owner.get("/jobs/22")
    assert (page.status_code, BARE in page.text) == (200, True)


def test_what_is_over_or_not_supervised_is_not_stopped(readers: Readers) -> None:
    """The answer to the owner has what to do instead."""
    over = readers.owner.send("POST", f"{BASE}/jobs/12/stop")
    assert over.status_code == 400, over.text
    assert "scancel" in readers.owner.send("POST", f"{BASE}/jobs/7/stop").text


@pytest.mark.parametrize("name", ["why", "stacks"])
@pytest.mark.parametrize(("job", "status"), [("7", 403), ("8", 403), ("99", 400), ("x", 400)])
def test_only_an_owner_has_nodes_read(readers: Readers, name: str, job: str, status: int) -> None:
    """Of a job without a known user it is an administrator alone; of one that does not exist, no user."""
    assert readers.other.send("POST", f"{BASE}/jobs/{job}/{name}").status_code == status


def test_a_number_that_came_again_opens_no_logs_of_another(readers: Readers) -> None:
    """The journal has job 11 as the owner's; the job 11 that Slurm has now is another user's, and so is its evidence."""
    assert readers.other.send("POST", f"{BASE}/jobs/11/why").status_code == 200
    assert readers.owner.send("POST", f"{BASE}/jobs/11/why").status_code == 403
    assert readers.owner.get(f"{BASE}/jobs/11/why").status_code == 404
    assert answered(readers.admin, "/jobs/11/why")["hidden"] is False


@pytest.mark.parametrize("name", ["..", "%2e%2e", "run-1", "7;x", EVIL])
def test_a_name_is_no_path(readers: Readers, name: str) -> None:
    assert readers.admin.get(f"{BASE}/jobs/{name}/why").status_code == 404


def test_the_pages_show_text_as_text(readers: Readers) -> None:
    """Reasons and causes may hold what a job has printed."""
    for path in ("/jobs", f"/jobs/{RUN}", "/jobs/11", "/jobs/5"):
        page = readers.admin.get(path)
        assert page.status_code == 200, path
        assert "<script>" not in page.text
    assert "&lt;script&gt;" in readers.admin.get("/jobs").text
    assert "&lt;script&gt;" not in readers.owner.get("/jobs/5").text


def test_a_signed_in_user_owns_the_jobs_of_the_same_name(made: JobSite, tmp_path: Path) -> None:
    """A viewer's form has the nodes of an own job read; without the form's token nothing is read."""
    browser = Browser(made.context, access(tmp_path))
    browser.sign_in(OWNER)
    assert browser.post("/jobs/7/why").status_code == 403
    answer = browser.post("/jobs/7/why", {"csrf": browser.csrf("/jobs/7")})
    assert (answer.status_code, answer.headers["location"]) == (303, "/jobs/7#why")
    refused = browser.post("/jobs/11/why", {"csrf": browser.csrf("/jobs")})
    assert refused.status_code == 403

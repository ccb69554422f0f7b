"""Jobs of UFM: as it writes them, by the REST API of the emulator, and followed to their end."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from clusterctl.edges.clock import CLOCK
from clusterctl.edges.ufm import UfmApi, UfmConnection
from clusterctl.fleet.errors import EdgeError, ParseError, UsageError
from clusterctl.fleet.fabric.manager_jobs import JobStatus
from clusterctl.formats.ufm.rest import read_job, read_jobs
from clusterctl.operations.operation import Control
from clusterctl.operations.ufm_jobs import JobsRequest, JobsResult, run
from clusterctl_cli.main import run as command
from tests.fake_timer import FakeTimer
from tests.ufm.emulator import TOKEN, Ufm, served
from tests.ufm.test_api import site

RECORDED = """{
    "ID": "1", "Status": "Completed", "Progress": 100, "Description": "Create opensm topoconfig file",
    "Created": "2024-10-27 08:09:16", "LastUpdated": "2024-10-27 08:09:17",
    "Summary": "/tmp/ibdiagnet_out/generated_topoconfig.conf", "RelatedObjects": "", "CreatedBy": "admin",
    "Operation": "opensm topoconfig file management", "Foreground": true, "SiteName": null
}"""
"""An answer of a real UFM 6.19, from NVIDIA's public manual of NICo (InfiniBand setup)."""


def job(status: str, progress: int = 0, number: str = "41", summary: str = "") -> dict[str, Any]:
    return {**json.loads(RECORDED), "ID": number, "Status": status, "Progress": progress, "Summary": summary}


def followed(ufm: Ufm, *ids: str, wait_s: float = 0.0) -> tuple[JobsResult, list[str]]:
    events: list[str] = []
    control = Control(None, lambda event: events.append(event.text))
    with served(ufm) as url, closing(UfmApi(UfmConnection(url=url, token=TOKEN), CLOCK)) as api:
        return run(api, JobsRequest(ids=ids, wait_s=wait_s), control, FakeTimer()), events


def test_a_recorded_job() -> None:
    """All of it is read; a status that is not known is no success, and no end."""
    found = read_job(json.loads(RECORDED), "ufm")
    assert (found.id, found.status, found.progress) == ("1", JobStatus.COMPLETED, 100)
    assert (found.operation, found.created) == ("opensm topoconfig file management", "2024-10-27 08:09:16")
    (other,) = read_jobs([{"ID": 7, "Status": "Aborted", "Progress": "half"}], "ufm")
    assert (other.id, other.status, other.status_text, other.progress) == ("7", JobStatus.UNKNOWN, "Aborted", None)
    assert not other.status.is_over


@pytest.mark.parametrize("answer", [{}, [], None, {"ID": "../x"}, {"ID": True, "Status": 1}])
def test_what_is_no_job(answer: object) -> None:
    """It is an error with the address."""
    with pytest.raises(ParseError) as error:
        read_job(answer, "https://ufm/ufmRest/jobs/1")
    assert error.value.where == "https://ufm/ufmRest/jobs/1"


def test_a_job_is_followed_to_its_end() -> None:
    """Each change is printed once."""
    ufm = Ufm(jobs={"41": [job("Running", 10), job("Running", 10), job("Running", 60), job("Completed", 100)]})
    result, events = followed(ufm, "41", wait_s=3600)
    assert (result.exit_code, [one.status for one in result.jobs]) == (0, [JobStatus.COMPLETED])
    assert events == ["job 41: Running, 10 %", "job 41: Running, 60 %"]


def test_a_job_with_errors_names_its_parts() -> None:
    """The switch that failed is named, and not those that are done; exit code 1."""
    parts = [job("Completed", 100, "42"), job("Completed With Errors", 100, "43", "leaf-2: no space left")]
    ufm = Ufm(jobs={"41": [job("Completed With Errors", 100)]}, parts={"41": parts})
    result, _ = followed(ufm, "41", wait_s=60)
    assert result.exit_code == 1
    assert [part.summary for part in result.parts["41"]] == ["leaf-2: no space left"]


def test_a_job_that_does_not_end() -> None:
    """The time is over: it is printed as it is, with exit code 1; so is a status that is not known."""
    for status in ("Running", "Aborted"):
        result, _ = followed(Ufm(jobs={"41": [job(status, 10)]}), "41", wait_s=600)
        assert (result.exit_code, result.jobs[0].status_text) == (1, status)


def test_ufm_is_away_for_a_while() -> None:
    """A look that fails is made again."""
    ufm = Ufm(jobs={"41": [job("Running", 10), job("Completed", 100)]})
    away = iter([None, 503, 503])

    class Away(Ufm):
        def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
            status = next(away, None)
            return (status, "busy") if status else super().answer(method, path, body)

    result, _ = followed(Away(jobs=ufm.jobs), "41", wait_s=600)
    assert (result.exit_code, result.unread) == (0, "")


def test_other_numbers() -> None:
    """A job that UFM does not have is an error; a text that is no number is never sent."""
    ufm = Ufm()
    with pytest.raises(EdgeError, match="404"):
        followed(ufm, "41")
    asked = len(ufm.asked)
    with pytest.raises(UsageError, match="has a number"):
        followed(ufm, "41/../../app/tokens")
    assert len(ufm.asked) == asked


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All jobs of the site's UFM, as text and as JSON."""
    ufm = Ufm(jobs={"41": [job("Completed", 100)], "42": [job("Running", 5, "42")]})
    with served(ufm) as url:
        folder = str(site(tmp_path, url))
        assert command(["fabric", "jobs", "--site", folder]) == 1
        assert "42: Running 5 %; Create opensm topoconfig file" in capsys.readouterr().out
        assert command(["fabric", "jobs", "41", "--wait", "1min", "--json", "--site", folder]) == 0
    (found,) = json.loads(capsys.readouterr().out)["jobs"]["jobs"]
    assert (found["id"], found["progress"]) == ("41", 100)

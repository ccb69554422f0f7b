"""A role that repeats its secrets, printed, encoded and in its failure, does not get them into outcome or evidence."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusterctl.edges.ansible.controller_transport.playbooks import ControllerPlaybooks
from clusterctl.edges.ansible.workspace import PlayLimits, RunSettings
from clusterctl.fleet.finding import Origin
from clusterctl.ports import Deadline
from tests.e2e.leaks import Search, Watch
from tests.edges.ansible.support import host
from tests.secrets.kit import UtcClock

DATA = Path(__file__).parent / "data"
CODE = 'open "sesame" & more, 42'


@pytest.fixture
def work_dir() -> Iterator[Path]:
    """A short path, as ssh's control sockets need it."""
    path = Path(tempfile.mkdtemp(prefix="pl", dir="/tmp"))
    yield path
    shutil.rmtree(path)


def test_a_play_that_repeats_a_secret(work_dir: Path, tmp_path: Path) -> None:
    """Neither outcome nor evidence has it; no process's arguments have it; files of the run are private while they last."""
    file = tmp_path / "code"
    file.write_text(CODE)
    runner = ControllerPlaybooks(
        RunSettings(
            work_dir=work_dir,
            playbooks_dir=DATA,
            roles_dir=DATA,
            limits=PlayLimits(1),
            origin=Origin.SIMULATED,
            clock=UtcClock(),
            secrets={"door_code": CODE},
        ),
    )
    with Watch(work_dir) as watch:
        (seen,) = runner.run("leaky.yml", [host("n1")], {"code_file": str(file)}, Deadline.after(60))
    content = seen.evidence[0].content
    assert seen.value.failed_task == "Fail with it"
    assert seen.value.message == "rejected: (secret)"
    assert content.count(b"(secret)") >= 6
    search = Search({"door code": CODE})
    assert not search(content + seen.value.message.encode(), "the evidence")
    assert not [leak for command in watch.commands for leak in search(command.encode(), command)]
    assert [path.name for path in watch.files if path.name == "extravars"]
    assert not [path for path, mode in watch.modes.items() if mode & 0o077 and path != work_dir]
    assert list(work_dir.iterdir()) == []

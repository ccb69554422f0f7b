"""Modules in forks of one process: as if Python had been started for each, shown by real sockets and processes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import ansible
import pytest

from clusterctl.edges.ansible.host_transport.programs import module_server
from clusterctl.edges.ansible.host_transport.programs.local_connection import run_in_server
from lab.tests.lab_kit import eventually

STARTER = """
import os, sys
from pathlib import Path
from clusterctl.edges.ansible.host_transport.programs.module_server import start
alive = start(Path(sys.argv[1]), sys.argv[2])
print("served", flush=True)
sys.stdin.read()
"""


class Served:
    """A server, and the process that started it."""

    def __init__(self, folder: Path, environment: dict[str, str] | None = None) -> None:
        (folder / "lib").mkdir()
        (folder / "lib" / "ansible").symlink_to(Path(str(ansible.__file__)).parent)
        self.address = str(folder / "s")
        self.starter = subprocess.Popen(
            [sys.executable, "-c", STARTER, str(folder), self.address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **(environment or {})},
        )
        assert self.starter.stdout is not None
        assert self.starter.stdout.readline() == b"served\n"

    def run(self, module: str) -> tuple[int, bytes, bytes]:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
            server.connect(self.address)
            return run_in_server(server, module.encode())

    def serves(self) -> bool:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
            return server.connect_ex(self.address) == 0


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    one = Served(tmp_path)
    with one.starter:
        yield one


def test_a_module_finds_what_its_caller_has(served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Environment, folder, umask and streams are those of the task, not of the server."""
    monkeypatch.setenv("OF_THE_TASK", "here")
    monkeypatch.chdir(tmp_path)
    before = os.umask(0o027)
    try:
        code, out, error = served.run(
            "import json, os, sys\n"
            "mask = os.umask(0)\n"
            "sys.stderr.write('aside')\n"
            "print(json.dumps([os.getcwd(), oct(mask), os.environ['OF_THE_TASK'], sys.argv, sys.stdin.read(), __name__]))\n"
            "sys.exit(3)\n"
        )
    finally:
        os.umask(before)

    assert (code, error) == (3, b"aside")
    assert json.loads(out) == [str(tmp_path), "0o27", "here", [""], "", "__main__"]


def test_modules_do_not_see_ansibles_own_side(served: Served) -> None:
    """With it, module_utils would take the host for the controller and answer otherwise."""
    code, out, _ = served.run(
        "from ansible.module_utils import _internal\n"
        "try:\n    import ansible.constants\n"
        "except ImportError:\n    print('none', _internal.is_controller)\n"
    )

    assert (code, out) == (0, b"none False\n")


def test_nothing_is_left_of_one_module_for_the_next(served: Served) -> None:
    """Each has a fork of its own."""
    served.run("import os, sys, base64\nsys.modules['base64'] = None\nos.environ['LEFT'] = '1'\nos.chdir('/proc')\n")

    assert served.run("import base64, os\nprint('LEFT' in os.environ, os.getcwd() == '/proc')\n")[1] == b"False False\n"


@pytest.mark.parametrize(
    ("module", "code", "word"),
    [
        ("raise ValueError('spoilt')", 1, b"ValueError: spoilt"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -9, b""),
        ("import sys; sys.exit('in words')", 1, b"in words"),
        ("this is no Python", 1, b"SyntaxError"),
    ],
)
def test_an_end_is_reported_as_it_was(served: Served, module: str, code: int, word: bytes) -> None:
    """As a Python of its own would end."""
    found, _, error = served.run(module)

    assert found == code
    assert word in error


def test_many_megabytes_come_through(served: Served) -> None:
    """No pipe fills up, whatever a module prints."""
    code, out, error = served.run("import sys; sys.stdout.write('x' * 5_000_000); sys.stderr.write('y' * 5_000_000)")

    assert (code, len(out), len(error)) == (0, 5_000_000, 5_000_000)


def test_the_server_ends_with_the_play(served: Served) -> None:
    """Also when that was killed."""
    served.run("pass")
    served.starter.kill()

    assert eventually(lambda: not served.serves())


def test_where_ansible_cannot_be_loaded_no_process_serves(tmp_path: Path) -> None:
    """So that Python is started for the module, as ever."""
    (tmp_path / "lib" / "ansible").mkdir(parents=True)
    with pytest.raises(ImportError, match=r"ansible\.module_utils is not in"):
        module_server.load(tmp_path)

"""On a host: Ansible's modules run in forks of one process that has what all of them need loaded already.

A module is a small program that starts a Python and compiles some 20 files of Ansible's, each time anew: most of a
play's time on the host. `bin/ansible-playbook` starts this server before anything else, and the connection plug-in
(`here.py`) hands modules over to it. Where that cannot be, Python itself is started, as ever.
How modules are packed: https://docs.ansible.com/ansible/latest/dev_guide/developing_program_flow_modules.html#ansiballz
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.machinery
import importlib.util
import io
import json
import os
import selectors
import signal
import socket
import sys
import traceback
import types
from pathlib import Path
from typing import Any, NoReturn

NEEDED = (
    "ansible.module_utils.basic",
    "ansible.module_utils._internal._ansiballz._loader",
    "ansible.module_utils.facts.ansible_collector",
    "ansible.module_utils.urls",
    "base64",
    "runpy",
    "shutil",
    "tempfile",
    "zipfile",
)
MESSAGE_BYTES = 1 << 18
STREAMS = ("stdin", "stdout", "stderr")


def start(home: Path, address: str) -> int:
    """Serve modules at `address` (a socket's path) until every process that has the returned descriptor has ended.

    `home` is the bundle. Nothing of Ansible may be loaded yet: a fork of this process becomes the server.
    """
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.bind(address)
    listening.listen(64)
    ended, alive = os.pipe()
    if os.fork() == 0:
        os.close(alive)
        _serve(home, listening, ended)
    os.close(ended)
    listening.close()
    return alive


def _serve(home: Path, listening: socket.socket, ended: int) -> NoReturn:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        load(home)
        Server(listening, ended).run()
    except Exception:  # noqa: BLE001 — another Ansible may need what this one does not
        traceback.print_exc()
    finally:
        os._exit(1)  # whoever asks finds nobody, and starts Python itself


def load(home: Path) -> None:
    """Import what modules need, as on a host: without Ansible's own side, which would make other answers of them.

    `ansible` holds nothing but `modules` and `module_utils`, as in the archive that comes with each module.
    """
    parts = [_part(home / "lib" / "ansible", name) for name in ("ansible.module_utils", "ansible.modules")]
    package = types.ModuleType("ansible")
    package.__path__ = []
    package.__file__ = str(home / "lib" / "ansible" / "__init__.py")
    sys.modules["ansible"] = package
    for part in parts:
        sys.modules[part.name] = module = importlib.util.module_from_spec(part)
        setattr(package, part.name.rpartition(".")[2], module)
    for name in NEEDED:
        importlib.import_module(name)


def _part(folder: Path, name: str) -> importlib.machinery.ModuleSpec:
    """Of a package whose `__init__` is empty."""
    spec = importlib.machinery.PathFinder.find_spec(name, [str(folder)])
    if spec is None:
        raise ImportError(f"{name} is not in {folder}")
    return spec


class Server:
    """Forks one process for each module, and tells who asked for it how it ended."""

    def __init__(self, listening: socket.socket, ended: int) -> None:
        self._listening = listening
        self._ended = ended
        self._waiting = selectors.DefaultSelector()

    def run(self) -> None:
        """Until nobody is left who could ask."""
        self._waiting.register(self._listening, selectors.EVENT_READ)
        self._waiting.register(self._ended, selectors.EVENT_READ)
        while True:
            for key, _ in self._waiting.select():
                if key.fd == self._ended:
                    return
                if key.fd == self._listening.fileno():
                    self._begin()
                else:
                    self._finish(key.fd, *key.data)

    def _begin(self) -> None:
        caller, _ = self._listening.accept()
        message, streams, _, _ = socket.recv_fds(caller, MESSAGE_BYTES, len(STREAMS))
        if len(streams) == len(STREAMS):
            pid = os.fork()
            if pid == 0:
                run_module(json.loads(message), streams)
            self._waiting.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, caller))
        else:
            caller.close()
        for stream in streams:
            os.close(stream)

    def _finish(self, watch: int, pid: int, caller: socket.socket) -> None:
        self._waiting.unregister(watch)
        os.close(watch)
        _, status = os.waitpid(pid, 0)
        with caller, contextlib.suppress(OSError):  # who was killed does not want to know any more
            caller.send(b"%d" % os.waitstatus_to_exitcode(status))


def run_module(told: dict[str, Any], streams: list[int]) -> NoReturn:
    """In the fork: be the Python that the caller would have started, with the module on its stdin."""
    status = 1
    try:
        take_over(told, streams)
        main = types.ModuleType("__main__")
        sys.modules["__main__"] = main
        exec(compile(sys.stdin.buffer.read(), "<stdin>", "exec", dont_inherit=True), main.__dict__)  # noqa: S102
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            sys.stderr.write(end.code)
    except BaseException:  # noqa: BLE001 — a Python that was started for it would say the same and end
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(status)


def take_over(told: dict[str, Any], streams: list[int]) -> None:
    """The caller's environment, folder, umask and streams."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(len(streams), max(streams) + 64)
    os.environ.clear()
    os.environ.update(told["environment"])
    os.umask(told["umask"])
    os.chdir(told["folder"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, name in enumerate(STREAMS):
        raw = io.FileIO(number, "r" if number == 0 else "w", closefd=False)
        buffer = io.BufferedReader(raw) if number == 0 else io.BufferedWriter(raw)
        setattr(sys, name, io.TextIOWrapper(buffer, encoding="utf-8", errors="surrogateescape"))
    sys.argv = [""]

"""What a node finds of its MAAS: the program against servers of the loopback, as a machine would ask them."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from clusterctl.formats.maas.node_view import parse_node_view
from clusterctl_burnin.node.programs import maas_view

SECRET = "the-machines-own-secret"


class Web(BaseHTTPRequestHandler):
    """A proxy that serves the archive's index, and a metadata service that wants the machine's key."""

    asked: list[tuple[str, str]]
    location = ""

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers.get("Authorization", "")))
        if self.location:
            self.send_response(302)
            self.send_header("Location", self.location)
            self.end_headers()
            return
        key = self.headers.get("Authorization", "")
        metadata = "meta-data" in self.path
        self.send_response(401 if metadata and f'oauth_signature="%26{SECRET}"' not in key else 200)
        self.end_headers()
        self.wfile.write(b"node-1 \xff" if metadata else b"Origin: Ubuntu")

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def web() -> Iterator[ThreadingHTTPServer]:
    handler = type("Own", (Web,), {"asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join(60)


def asked(web: ThreadingHTTPServer) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = vars(web.RequestHandlerClass)["asked"]
    return found


def machine(root: Path, url: str, secret: str = SECRET) -> Path:
    """A root folder as MAAS leaves it: a package source in one line, and cloud-init's data source."""
    (root / "etc/apt/sources.list.d").mkdir(parents=True)
    (root / "etc/apt/sources.list").write_text(
        "# deb http://no.example/ x main\ndeb [arch=amd64] http://archive.example/ubuntu jammy main\n"
    )
    (root / "etc/cloud/cloud.cfg.d").mkdir(parents=True)
    (root / "etc/cloud/cloud.cfg.d/90_dpkg_maas.cfg").write_text(
        f"datasource:\n  MAAS:\n    consumer_key: ckey\n    metadata_url: {url}/MAAS/metadata/\n"
        f"    token_key: tkey\n    token_secret: {secret}\n"
    )
    return root


def test_a_machine_asks_with_its_own_source_proxy_and_key(tmp_path: Path, web: ThreadingHTTPServer) -> None:
    """The index comes through the proxy; the metadata service accepts the key, which is not in the answer."""
    url = f"http://127.0.0.1:{web.server_port}"
    answer = maas_view.view(
        {"names": ["localhost"], "proxy": f"http://user:hidden@127.0.0.1:{web.server_port}/", "ntp": []},
        machine(tmp_path, url),
    )

    printed = json.dumps(answer)
    assert SECRET not in printed
    assert "hidden" not in printed
    view = parse_node_view(printed)
    assert view.names["localhost"].addresses
    assert (view.packages.status, view.packages.url) == (
        200,
        "http://archive.example/ubuntu/dists/jammy/InRelease",
    )
    assert ("http://archive.example/ubuntu/dists/jammy/InRelease", "") in asked(web)
    assert (view.metadata.status, view.metadata.named) == (200, True)


def test_a_wrong_key_is_rejected_and_a_lost_service_is_reported(tmp_path: Path, web: ThreadingHTTPServer) -> None:
    """A 401 is an answer; a refused connection is the system's reason, without the URL."""
    url = f"http://127.0.0.1:{web.server_port}"
    assert maas_view.ask_metadata(machine(tmp_path / "a", url, "another"))["status"] == 401
    lost = maas_view.ask_metadata(machine(tmp_path / "b", "http://127.0.0.1:1"))
    assert lost["error"] == "Connection refused"
    assert "status" not in lost


def test_the_key_follows_no_redirect(tmp_path: Path, web: ThreadingHTTPServer) -> None:
    """A service that sends the machine elsewhere gets its key once, and no other service does."""
    url = f"http://127.0.0.1:{web.server_port}"
    vars(web.RequestHandlerClass)["asked"].clear()
    web.RequestHandlerClass.location = f"{url}/elsewhere"  # type: ignore[attr-defined]
    assert maas_view.ask_metadata(machine(tmp_path, url))["status"] == 302
    assert len(asked(web)) == 1


def test_a_file_is_no_metadata_service(tmp_path: Path) -> None:
    """Only HTTP is asked."""
    assert maas_view.ask_metadata(machine(tmp_path, "file:///etc"))["error"] == "no URL of HTTP"


def test_without_maas_nothing_is_asked(tmp_path: Path) -> None:
    """A node that MAAS did not install has no key, and one without a source fetches nothing."""
    view = maas_view.view({"names": [], "proxy": "", "ntp": []}, tmp_path)
    assert view["metadata"] == {"url": "", "configured": False}
    assert view["packages"]["url"] == ""


def test_deb822_sources_are_read(tmp_path: Path) -> None:
    """Ubuntu 24.04 has its source in another form; a flat repository has no dists."""
    (tmp_path / "etc/apt/sources.list.d").mkdir(parents=True)
    file = tmp_path / "etc/apt/sources.list.d/ubuntu.sources"
    file.write_text("Types: deb\nURIs: https://a.example/ubuntu/\nSuites: noble noble-updates\nComponents: main\n")
    assert maas_view.index_of(tmp_path) == "https://a.example/ubuntu/dists/noble/InRelease"
    file.write_text("Types: deb\nURIs: http://b.example/repo\nSuites: ./\n")
    assert maas_view.index_of(tmp_path) == "http://b.example/repo/./InRelease"


@pytest.fixture
def clock(request: pytest.FixtureRequest) -> Iterator[int]:
    """An SNTP server on a port; its clock is ahead by the parameter's seconds, its stratum 2."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.bind(("127.0.0.1", 0))
        own.settimeout(0.2)
        done = threading.Event()

        def serve() -> None:
            while not done.is_set():
                try:
                    question, peer = own.recvfrom(512)
                except TimeoutError:
                    continue
                now = time.time() + request.param + maas_view.EPOCH_1900
                stamp = (int(now), int(now % 1 * 2**32))
                mark = struct.unpack("!2I", question[40:48])
                strayed = (1, 2)
                for origin in (strayed, mark):  # an answer to another question comes first
                    own.sendto(maas_view.SNTP.pack(0x24, 2, 0, 0, *([0] * 5), *origin, *stamp, *stamp), peer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield own.getsockname()[1]
        done.set()
        thread.join(60)


@pytest.mark.parametrize("clock", [0.0, 400.0], indirect=True)
def test_a_time_server_is_compared(clock: int, request: pytest.FixtureRequest) -> None:
    """Offset and stratum of the answer to our own question; a stray answer does not count."""
    ahead = request.node.callspec.params["clock"]
    answer = maas_view.ask_time("127.0.0.1", clock)
    assert answer["stratum"] == 2
    assert abs(answer["offset"] - ahead) < 5


def test_a_silent_time_server_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing listens there."""
    monkeypatch.setattr(maas_view, "SECONDS", 0.3)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.bind(("127.0.0.1", 0))
        assert maas_view.ask_time("127.0.0.1", own.getsockname()[1]) == {"error": "no answer in time"}


def test_a_resolver_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other answers come nevertheless."""
    monkeypatch.setattr(maas_view, "SECONDS", 0.1)
    stop = threading.Event()
    assert "no answer within" in maas_view.bounded(lambda: {"done": stop.wait(60)})["error"]
    stop.set()

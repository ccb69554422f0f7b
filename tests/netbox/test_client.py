"""The client's bounds: pages, tries, bytes, time, trust; and what a hostile NetBox can send."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from clusterctl.edges.netbox import NetboxApi, NetboxConnection, NetboxListing, NetboxRefusedError
from clusterctl.edges.netbox import session as session_module
from clusterctl.edges.tls import Trust
from clusterctl.fleet.errors import (
    AuthenticationError,
    CancelledError,
    ClusterctlError,
    ConflictError,
    EdgeError,
    ParseError,
    UnreachableError,
    UntrustedError,
)
from clusterctl.ports import Deadline
from tests.edges.maas.testca import Ca
from tests.netbox.emulator import TOKEN, Answer, World, served
from tests.netbox.worlds import device

DEVICES = NetboxListing(page="dcim/devices", filters={"role": ["gpu"]}, fields="id,name")


@contextmanager
def asking(url: str, trust: Trust | None = None, token: str = TOKEN, seconds: float = 600) -> Iterator[NetboxApi]:
    with NetboxApi(NetboxConnection(url, token, trust or Trust()), Deadline.after(seconds)) as api:
        yield api


def many(count: int, max_page: int = 100) -> World:
    world = World(max_page=max_page)
    world.add("dcim/devices", *(device(id_, f"n{id_}") for id_ in range(1, count + 1)))
    return world


def test_all_pages_in_the_order_of_ids() -> None:
    """A server that gives smaller pages than asked for is read to its end, each object once."""
    world = many(950)
    with served(world) as url, asking(url) as api:
        found = api.read_all(DEVICES)
    assert [item["id"] for item in found] == list(range(1, 951))
    assert len(world.asked) == 10


def test_a_list_by_many_ids_is_asked_in_batches() -> None:
    """250 values are three requests; a batch with several pages is read to its end."""
    world = many(250, max_page=60)
    with served(world) as url, asking(url) as api:
        found = api.read_by(NetboxListing(page="dcim/devices", filters={}, fields="id"), "id", range(1, 251))
    assert sorted(item["id"] for item in found) == list(range(1, 251))


def test_the_next_link_is_not_followed() -> None:
    """A `next` that names another host sends no token there: pages are asked for by offset."""
    world = many(150)
    world.base = "http://192.0.2.1"
    with served(world) as url, asking(url) as api:
        assert len(api.read_all(DEVICES)) == 150


def test_a_list_that_changes_once_is_read_again() -> None:
    """Objects that come while a list is read are in the second reading."""
    world = many(150)
    added: list[bool] = []

    def grow(world: World, _method: str, target: str) -> None:
        if "offset=100" in target and not added:
            added.append(True)
            world.add("dcim/devices", device(999, "n999"))

    world.on_request = grow
    with served(world) as url, asking(url) as api:
        assert len(api.read_all(DEVICES)) == 151


def test_a_list_that_never_stands_still_is_refused() -> None:
    """A list that is another one at each reading is no basis for an import."""
    world = many(150)

    def grow(world: World, _method: str, target: str) -> None:
        if "offset=100" in target:
            next_id = 1000 + len(world.pages["dcim/devices"])
            world.add("dcim/devices", device(next_id, f"n{next_id}"))

    world.on_request = grow
    with served(world) as url, asking(url) as api, pytest.raises(ConflictError):
        api.read_all(DEVICES)


@pytest.mark.parametrize("status", [429, 502, 503])
def test_a_busy_netbox_is_asked_again(status: int) -> None:
    """A read is tried again while NetBox is busy."""
    world = many(1)
    refusals = [Answer(status), Answer(status)]
    world.on_request = lambda *_: refusals.pop() if refusals else None
    with served(world) as url, asking(url) as api:
        assert len(api.read_all(DEVICES)) == 1


def test_tries_end() -> None:
    """After four answers of 503 the error is there; nothing is tried for ever."""
    world = many(1)
    world.on_request = lambda *_: Answer(503)
    with served(world) as url, asking(url) as api, pytest.raises(EdgeError):
        api.read_all(DEVICES)
    assert len(world.asked) == 4


def test_a_refused_token_is_not_tried_again_and_not_shown() -> None:
    """403 is final; the error names the setting, and holds no part of the token."""
    world = many(1)
    with served(world) as url, asking(url, token="a-wrong-token") as api, pytest.raises(AuthenticationError) as caught:
        api.read_all(DEVICES)
    assert len(world.asked) == 1
    assert "netbox.token" in caught.value.remedy or "token" in caught.value.remedy
    assert "a-wrong-token" not in str(caught.value)


def test_a_refusal_repeats_no_token() -> None:
    """A NetBox that sends the token back in its answer does not get it into the error."""
    world = many(1)
    world.on_request = lambda *_: Answer(400, {"detail": f"bad {TOKEN}"})
    with served(world) as url, asking(url) as api, pytest.raises(NetboxRefusedError) as caught:
        api.read_all(DEVICES)
    assert TOKEN not in str(caught.value)


def test_a_redirect_is_not_followed() -> None:
    """The token goes to no other address; the error names where NetBox wants to be called."""
    world = many(1)
    world.on_request = lambda *_: Answer(301, None, {"Location": "https://elsewhere.example/"})
    with served(world) as url, asking(url) as api, pytest.raises(EdgeError, match=r"elsewhere\.example"):
        api.read_all(DEVICES)


def test_no_server() -> None:
    """An address where nothing listens is unreachable, within the deadline."""
    with asking("http://127.0.0.1:9", seconds=0.5) as api, pytest.raises(UnreachableError):
        api.version()


def test_a_cancelled_run_asks_nothing() -> None:
    """After Ctrl-C no request is sent."""
    world, stopped = many(1), threading.Event()
    stopped.set()
    connection = NetboxConnection("http://127.0.0.1:9", TOKEN)
    with NetboxApi(connection, Deadline.after(60, stopped)) as api, pytest.raises(CancelledError):
        api.version()
    assert not world.asked


def test_a_large_answer_is_cut_off() -> None:
    """An answer beyond the limit of bytes is refused, not held."""
    world = many(1)
    world.on_request = lambda *_: Answer(200, b"[" + b" " * (session_module.MAX_ANSWER + 1), {})
    with served(world) as url, asking(url) as api, pytest.raises(ParseError, match="larger than"):
        api.read_all(DEVICES)


HOSTILE: tuple[Any, ...] = (
    b"<html>no NetBox</html>",
    b"\xff\xfe\x00",
    b"[" * 5000,
    {"count": "many", "results": []},
    {"count": 10**12, "results": [{"id": 1}]},
    {"count": 5, "results": []},
    {"results": []},
    {"count": None, "results": []},
    [1, 2, 3],
    "text",
    None,
)


@pytest.mark.parametrize("body", HOSTILE, ids=range(len(HOSTILE)))
def test_what_is_no_list_is_an_error_of_ours(body: Any) -> None:
    """Whatever a server sends in place of a list ends in an error that names NetBox."""
    world = many(1)
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    world.on_request = lambda *_: Answer(200, content)
    with served(world) as url, asking(url) as api, pytest.raises(ClusterctlError) as caught:
        api.read_all(DEVICES)
    assert url in str(caught.value)


def test_what_is_no_netbox() -> None:
    """Another service at the address is named as such."""
    world = many(1)
    world.on_request = lambda *_: Answer(200, {"status": "up"})
    with served(world) as url, asking(url) as api, pytest.raises(ParseError, match="no NetBox"):
        api.version()


def test_tls_is_verified(tmp_path: Path) -> None:
    """A certificate of the site's authority is accepted; without the authority no token is sent."""
    world = many(1)
    ca = Ca(tmp_path)
    context = ca.server_context("127.0.0.1")

    def wrap(server: Any) -> None:
        server.socket = context.wrap_socket(server.socket, server_side=True)

    with served(world, wrap) as url:
        secure = url.replace("http://", "https://")
        with asking(secure, Trust(str(ca.file))) as api:
            assert api.version() == "4.6.8"
        asked = len(world.asked)
        with asking(secure) as api, pytest.raises(UntrustedError):
            api.version()
        assert len(world.asked) == asked

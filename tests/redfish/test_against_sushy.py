"""The client against sushy-tools' emulator, which neither of us wrote: it knows no sessions, and tells no serial.

Its machine gets a serial here, for without one nothing is switched. What it does not do as the standard has it must be
found out: it reports each boot override as continuous.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from clusterctl.edges.redfish import RedfishBmcs
from clusterctl.fleet.boot import BootOnce, BootSource
from clusterctl.fleet.errors import AuthenticationError, ClusterctlError, EdgeError, ParseError
from clusterctl.fleet.node import Serial
from clusterctl.ports import BmcAddress, Deadline, Power
from tests.redfish.replay import PASSWORD, certificate

bcrypt = pytest.importorskip("bcrypt")
emulator = pytest.importorskip("sushy_tools.emulator.main")
serving = pytest.importorskip("werkzeug.serving")

UUID = "27946b59-9e44-4fa7-8e91-f3527a1ef094"
SERIAL = Serial("SUSHY1")
MACHINE = {"uuid": UUID, "name": "n1", "power_state": "Off", "external_notifier": False, "nics": []}


class WithSerial:
    """WSGI: the emulator, its System with a serial; `asked` are the requests."""

    def __init__(self, inner: Callable[..., Iterable[bytes]]) -> None:
        self.inner = inner
        self.asked: list[str] = []
        self.serial = SERIAL

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        self.asked.append(f"{environ['REQUEST_METHOD']} {path}")
        if environ["REQUEST_METHOD"] != "GET" or path != f"/redfish/v1/Systems/{UUID}" or not self.serial:
            return self.inner(environ, start)
        told: list[Any] = []
        body = b"".join(self.inner(environ, lambda *head: told.extend(head)))
        if told[0].startswith("200"):
            body = json.dumps({**json.loads(body), "SerialNumber": self.serial}).encode()
        start(told[0], [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
        return [body]


@pytest.fixture(scope="module")
def sushy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[WithSerial, BmcAddress]]:
    folder: Path = tmp_path_factory.mktemp("sushy")
    hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
    (folder / "htpasswd").write_text(f"root:{hashed}\n")
    app = emulator.app
    app.configure(
        extra_config={
            "SUSHY_EMULATOR_FAKE_DRIVER": True,
            "SUSHY_EMULATOR_FAKE_SYSTEMS": [MACHINE],
            "SUSHY_EMULATOR_STATE_DIR": str(folder),
            "SUSHY_EMULATOR_AUTH_FILE": str(folder / "htpasswd"),
        }
    )
    shown = WithSerial(app.wsgi_app)
    pem = certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    server = serving.make_server("127.0.0.1", 0, shown, ssl_context=context)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield shown, BmcAddress("127.0.0.1", "root", PASSWORD, server.server_port, str(pem))
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def soon() -> Deadline:
    return Deadline.after(20)


def test_power(bmcs: RedfishBmcs, sushy: tuple[WithSerial, BmcAddress]) -> None:
    """On, cycled, off, each seen; another serial is refused."""
    with bmcs.open(sushy[1], soon()) as bmc:
        assert bmc.power(soon()).value is Power.OFF
        bmc.set_power(Power.ON, SERIAL, soon())
        bmc.cycle_power(SERIAL, soon())
        bmc.set_power(Power.OFF, SERIAL, soon())
        assert bmc.power(soon()).value is Power.OFF
        with pytest.raises(EdgeError, match="belongs to machine SUSHY1"):
            bmc.set_power(Power.ON, Serial("X"), soon())


def test_a_boot_override_that_stays(bmcs: RedfishBmcs, sushy: tuple[WithSerial, BmcAddress]) -> None:
    """Asked for once, it shows it for ever: not what was asked for, which would install a machine at each boot."""
    with bmcs.open(sushy[1], soon()) as bmc, pytest.raises(EdgeError, match="enabled Continuous"):
        bmc.boot_once(BootOnce(BootSource.PXE), SERIAL, soon())


def test_without_a_serial(bmcs: RedfishBmcs, sushy: tuple[WithSerial, BmcAddress]) -> None:
    """Nothing is switched, and what is missing is named."""
    sushy[0].serial = Serial("")
    try:
        with bmcs.open(sushy[1], soon()) as bmc:
            for call in (bmc.inventory, lambda deadline: bmc.set_power(Power.ON, SERIAL, deadline)):
                with pytest.raises(ParseError) as caught:
                    call(soon())
                assert "SerialNumber" in caught.value.where
    finally:
        sushy[0].serial = SERIAL
    assert not [asked for asked in sushy[0].asked[-8:] if asked.startswith("POST") and "Actions" in asked]


def test_a_wrong_password_is_sent_once(bmcs: RedfishBmcs, sushy: tuple[WithSerial, BmcAddress]) -> None:
    """Without sessions each request carries it: the first rejection is the last, for the whole run."""
    sushy[0].asked.clear()
    wrong = BmcAddress("127.0.0.1", "root", "wrong-one", sushy[1].port, sushy[1].ca_file)
    for _ in range(2):
        with pytest.raises(ClusterctlError) as caught, bmcs.open(wrong, soon()) as bmc:
            bmc.power(soon())
        assert isinstance(caught.value, AuthenticationError)
    assert len([asked for asked in sushy[0].asked if "Systems" in asked]) <= 1

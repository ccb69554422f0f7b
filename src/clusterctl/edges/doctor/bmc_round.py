"""Asks every BMC for its Redfish root at once: route, TCP, TLS to whom the site trusts, and its clock. Nobody logs in.

Not through the library of the Redfish edge, which makes and fills a trust store for each connection: for 511 BMCs that
takes longer than they do.
"""

from __future__ import annotations

import contextlib
import hashlib
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection

from clusterctl.edges.doctor.patient import Answer, offset
from clusterctl.edges.fingerprints import shown
from clusterctl.edges.redfish.failures import translated
from clusterctl.edges.tls import Trust
from clusterctl.fleet.errors import ClusterctlError, EdgeError, UnreachableError, UntrustedError
from clusterctl.ports import BmcAddress, Deadline

BMC_SECONDS = 3.0
ROUND_SECONDS = 9.0
AT_ONCE = 256
"""Of 511 BMCs of which none answers, all are asked in two rounds of `BMC_SECONDS`."""
DOING = "asking for its Redfish service"
PATH = "/redfish/v1/"


def ask_bmcs(
    addresses: Sequence[BmcAddress], *, learning: bool, within_s: float = ROUND_SECONDS
) -> Mapping[str, Answer]:
    """The answers that came in time, by address. `learning`: strangers are believed on first use."""
    deadline = Deadline.after(within_s)
    trusts = {Trust(address.ca_file, address.fingerprint) for address in addresses if not address.plain_http}
    contexts = {trust: trust.client() for trust in trusts}
    asking = _Asking(contexts, deadline, learning=learning)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        asked = {pool.submit(asking, address): address.host for address in addresses}
        done, _ = wait(asked, timeout=deadline.remaining)
        pool.shutdown(wait=False, cancel_futures=True)
        asking.hang_up()
        return {asked[future]: future.result() for future in done}


class _Asking:
    """Asks one BMC at each call; callable from many threads."""

    def __init__(self, contexts: Mapping[Trust, ssl.SSLContext], deadline: Deadline, *, learning: bool) -> None:
        self._contexts = contexts
        self._deadline = deadline
        self._learning = learning
        self._connections: list[HTTPConnection] = []

    def hang_up(self) -> None:
        """End what still waits: a BMC that sends a byte now and then keeps nobody here."""
        for connection in list(self._connections):
            with contextlib.suppress(OSError, AttributeError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    def __call__(self, address: BmcAddress) -> Answer:
        try:
            return self._asked(address)
        except UntrustedError as error:
            unknown = self._learning and not (address.fingerprint or address.ca_file)
            return Answer(note="not pinned yet") if unknown else Answer(error)
        except ClusterctlError as error:
            return Answer(error)

    def _asked(self, address: BmcAddress) -> Answer:
        self._deadline.check(DOING)
        connection = self._connection(address)
        self._connections.append(connection)
        with contextlib.closing(connection):
            response = _explained(lambda: _answer(connection, address))
        if response.status not in (200, 401):
            remedy = "check that this is a BMC's address, and that its Redfish service is on"
            raise EdgeError(f"no Redfish service: HTTP {response.status}", remedy=remedy)
        return Answer(offset_s=offset(response.headers.get("Date"), datetime.now(UTC)))

    def _connection(self, address: BmcAddress) -> HTTPConnection:
        seconds = max(0.1, min(BMC_SECONDS, self._deadline.remaining))
        if address.plain_http:
            return HTTPConnection(address.host, address.port, timeout=seconds)
        context = self._contexts[Trust(address.ca_file, address.fingerprint)]
        return HTTPSConnection(address.host, address.port, timeout=seconds, context=context)


def _answer(connection: HTTPConnection, address: BmcAddress) -> HTTPResponse:
    connection.connect()
    if address.fingerprint and isinstance(connection.sock, ssl.SSLSocket):
        found = hashlib.sha256(connection.sock.getpeercert(binary_form=True) or b"").hexdigest()
        if found != address.fingerprint:
            raise UntrustedError(
                f"the BMC's TLS certificate is not the pinned one, but {shown(found)}",
                remedy="find out who answers there; only if its certificate was renewed, change the pin",
            )
    connection.request("GET", PATH, headers={"Accept": "application/json", "Connection": "close"})
    return connection.getresponse()


def _explained(ask: Callable[[], HTTPResponse]) -> HTTPResponse:
    try:
        return ask()
    except TimeoutError:
        remedy = "check its power, its cable and its address"
        raise UnreachableError("the BMC does not answer", remedy=remedy) from None
    except OSError as error:
        raise translated(error, DOING) from None
    except HTTPException:
        raise EdgeError("what answers there does not speak HTTP", remedy="check that this is a BMC's address") from None

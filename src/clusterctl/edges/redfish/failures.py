"""What went wrong between us and a BMC: from the libraries' exceptions to ours."""

from __future__ import annotations

import ssl
from http.client import IncompleteRead, RemoteDisconnected

import requests
from urllib3.exceptions import ProtocolError

from clusterctl.edges.redfish.patience import NoAnswerError
from clusterctl.edges.tls import causes, distrust
from clusterctl.fleet.errors import ClusterctlError, EdgeError, UnreachableError

_DROPPED = (
    ConnectionResetError,
    BrokenPipeError,
    RemoteDisconnected,
    IncompleteRead,
    ProtocolError,
    ssl.SSLEOFError,
    ssl.SSLZeroReturnError,
)


class DroppedError(NoAnswerError):
    """The BMC closed the connection instead of answering."""


def translated(error: BaseException, doing: str) -> ClusterctlError:
    """The libraries' error as one of ours, in our own words: theirs may hold requests and URLs."""
    chain = causes(error)
    ours = next((cause for cause in chain if isinstance(cause, ClusterctlError)), None)
    if ours is not None:
        return ours
    untrusted = distrust(chain, "the BMC", "the BMCs' ca_file", "tls_fingerprint in the sheet")
    if untrusted is not None:
        return untrusted
    if any(isinstance(cause, _DROPPED) for cause in chain):
        return DroppedError(f"the BMC closed the connection while {doing}")
    return _no_connection(error, chain, doing)


def _no_connection(error: BaseException, chain: list[BaseException], doing: str) -> EdgeError:
    reason = next((cause.strerror for cause in chain if isinstance(cause, OSError) and cause.strerror), "no connection")
    if isinstance(error, TimeoutError) or any(isinstance(cause, requests.exceptions.Timeout) for cause in chain):
        return UnreachableError("the BMC does not answer", remedy="check its power, its cable and its address")
    if isinstance(error, requests.exceptions.SSLError | ssl.SSLError):
        return EdgeError(f"no TLS with the BMC: {reason}", remedy="check that its HTTPS service speaks TLS 1.2")
    foreign = isinstance(error, requests.exceptions.RequestException)
    if isinstance(error, requests.exceptions.ConnectionError) or (isinstance(error, OSError) and not foreign):
        return UnreachableError(f"the BMC cannot be reached: {reason}", remedy="check its power, cable and address")
    return EdgeError(f"{type(error).__name__} while {doing}")

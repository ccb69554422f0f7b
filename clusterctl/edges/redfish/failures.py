"""What went wrong between us and a BMC: from the libraries' exceptions to ours."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from http.client import IncompleteRead, RemoteDisconnected

import requests
from urllib3.exceptions import ProtocolError

from clusterctl.edges.redfish.patience import NoAnswerError
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
    chain = list(_chain(error))
    ours = next((cause for cause in chain if isinstance(cause, ClusterctlError)), None)
    if ours is not None:
        return ours
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in chain):
        return _certificate_error(chain)
    if any(isinstance(cause, _DROPPED) for cause in chain):
        return DroppedError(f"the BMC closed the connection while {doing}")
    return _no_connection(error, chain, doing)


def _no_connection(error: BaseException, chain: list[BaseException], doing: str) -> EdgeError:
    reason = next((cause.strerror for cause in chain if isinstance(cause, OSError) and cause.strerror), "no connection")
    if any(isinstance(cause, requests.exceptions.Timeout) for cause in chain):
        return UnreachableError("the BMC does not answer", remedy="check its power, its cable and its address")
    if isinstance(error, requests.exceptions.SSLError):
        return EdgeError(f"no TLS with the BMC: {reason}", remedy="check that its HTTPS service speaks TLS 1.2")
    if isinstance(error, requests.exceptions.ConnectionError):
        return UnreachableError(f"the BMC cannot be reached: {reason}", remedy="check its power, cable and address")
    return EdgeError(f"{type(error).__name__} while {doing}")


def _certificate_error(chain: list[BaseException]) -> EdgeError:
    reason = next(cause.verify_message for cause in chain if isinstance(cause, ssl.SSLCertVerificationError))
    return EdgeError(
        f"the BMC's TLS certificate is not accepted: {reason}",
        remedy="give the BMC a certificate of the site's authority, and name that authority as the BMCs' ca_file",
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and everything it was made from: causes, contexts, and urllib3's `reason` and arguments."""
    seen: list[BaseException] = []
    waiting: list[BaseException] = [error]
    while waiting:
        here = waiting.pop(0)
        if any(here is known for known in seen):
            continue
        seen.append(here)
        yield here
        linked = (here.__cause__, here.__context__, getattr(here, "reason", None), *here.args)
        waiting += [item for item in linked if isinstance(item, BaseException)]

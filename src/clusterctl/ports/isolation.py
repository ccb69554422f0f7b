"""One peer's data ends nothing but that peer's own result: the boundary of each future, session, check, load and play.

Where results of several nodes meet, each call that handles one node's data ends in

    except Exception as error:
        return <the result of that node>(peer_error(error, node))
"""

from __future__ import annotations

import errno
import logging

from clusterctl.fleet.errors import CancelledError, ClaimLostError, ClusterctlError, EnvironmentBrokenError, ParseError

log = logging.getLogger(__name__)

EXHAUSTED = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""The system's error numbers when the controller has no disk, files or memory left."""


def peer_error(error: Exception, peer: str) -> ClusterctlError:
    """Return the error as one about this peer. Raises what is about the run or the controller, not about the peer."""
    found = as_error(error, peer)
    if isinstance(found, (CancelledError, ClaimLostError, EnvironmentBrokenError)):
        raise found
    return found


def as_error(error: Exception, peer: str) -> ClusterctlError:
    """Return the error as one of ours, for a result that takes any of them.

    An error that no parser foresaw (RecursionError, UnicodeError, OverflowError, MemoryError, wrong types) becomes a
    `ParseError`: the peer is unmeasured. Its traceback is logged.
    """
    if isinstance(error, ClusterctlError):
        return error
    try:
        require_controller(error)
    except EnvironmentBrokenError as broken:
        return broken
    log.error("%s: its data could not be processed", peer, exc_info=error)
    remedy = f"run the step on {peer} again; if it comes back, report it with the run's log"
    return ParseError(f"its data could not be processed ({type(error).__name__})", where=peer, remedy=remedy)


def require_controller(error: Exception) -> None:
    """Raise `EnvironmentBrokenError` where the controller itself lacks something: no node is to blame for that."""
    if isinstance(error, OSError) and error.errno in EXHAUSTED:
        raise EnvironmentBrokenError(
            f"the controller cannot go on: {error.strerror}",
            where=str(error.filename or ""),
            remedy="free space or raise that limit, then run the same command again: it goes on from here",
        ) from error

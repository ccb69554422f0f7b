"""A cancel token wakes the session that waits for its descriptor, and no other; nothing is left when no session waits."""

from __future__ import annotations

import select
import threading

from clusterctl.edges.ssh.cancel import CancelWatch

LONG_S = 300


def readable(descriptor: int, seconds: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(1000 * seconds))


def running() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "ssh-cancel"}


def test_the_token_that_is_set_wakes_its_own_descriptor() -> None:
    """Another session's token, which is not set, leaves that session asleep."""
    watch, mine, other = CancelWatch(), threading.Event(), threading.Event()
    with watch.descriptor(mine) as one, watch.descriptor(other) as two:
        mine.set()
        assert readable(one, LONG_S)
        assert not readable(two, 0)


def test_the_watch_ends_with_the_last_session_and_begins_again() -> None:
    """No thread is left of it; a later session is woken as the first one was."""
    watch, others = CancelWatch(), running()
    for _ in range(2):
        token = threading.Event()
        with watch.descriptor(token) as descriptor:
            (thread,) = running() - others
            token.set()
            assert readable(descriptor, LONG_S)
        thread.join(LONG_S)
        assert not thread.is_alive()

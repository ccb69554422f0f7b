"""Staggered power-on: never more at once than allowed, and never a wait that is not needed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from clusterctl.fleet.stagger import Stagger, interleaved


@given(
    at_once=st.integers(1, 5),
    seconds=st.floats(0, 30),
    slowness=st.lists(st.floats(0, 60), min_size=1, max_size=30),
)
def test_a_group_coming_on(at_once: int, seconds: float, slowness: list[float]) -> None:
    """Machines of any slowness: at each start no more than `at_once` are coming on or came on within `seconds`; all of
    them start.
    """
    stagger = Stagger(at_once, seconds)
    now, going, ended = 0.0, [], []
    for slow in slowness:
        while (wait := stagger.wait(len(going), ended, now)) != 0:
            now = min(going) if wait is None else now + max(wait, 1e-6)
            ended += [at for at in going if at <= now]
            going = [at for at in going if at > now]
        going.append(now + slow)
        assert len(going) + sum(now < at + seconds for at in ended) <= at_once


def test_the_first_ones_do_not_wait() -> None:
    """As many as may come on together start at once; the next waits for the oldest of them."""
    stagger = Stagger(2, 5)
    assert stagger.wait(1, [], 100) == 0
    assert stagger.wait(2, [], 100) is None
    assert stagger.wait(0, [98, 97], 100) == 2
    assert stagger.wait(0, [90, 91, 98], 100) == 0


def test_the_shortest_time() -> None:
    """A rack of eight, four within five seconds: the fifth cannot come earlier than after five."""
    assert [Stagger(4, 5).shortest(count) for count in (0, 1, 4, 5, 8, 9)] == [0, 0, 0, 5, 5, 10]


@given(st.lists(st.sampled_from("abc")))
def test_interleaved(groups: list[str]) -> None:
    """Each item once; each group in its order; no group is two rounds ahead of another that has items left."""
    items = list(enumerate(groups))
    mixed = interleaved(items, lambda item: item[1])
    assert sorted(mixed) == items
    for group in set(groups):
        mine = [number for number, of in mixed if of == group]
        assert mine == sorted(mine)
    firsts = [of for _, of in mixed[: len(set(groups))]]
    assert len(firsts) == len(set(firsts))

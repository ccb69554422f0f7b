"""After the work: what is repaired, left and new."""

from __future__ import annotations

from clusterctl.cabling.actions import MovePlug, PlugIn, Rename, TakeOut, carry_out
from clusterctl.cabling.explain.verify import recheck
from tests.cabling.bench import Bench, port


def test_half_done_and_something_new():
    """One of two findings is repaired, one is left, and the cable that was pulled by mistake is new."""
    bench = Bench()
    bench.rotate(port("leaf-0", 1), port("leaf-0", 2))
    bench.unplug(port("node005", "mlx5_1"))
    before = bench.verify()
    bench.rotate(port("leaf-0", 1), port("leaf-0", 2))
    bench.unplug(port("leaf-1", 34))
    found = recheck(before, bench.verify())
    assert [e.kind.value for e in found.repaired] == ["swapped"]
    assert [e.subjects for e in found.left] == [("leaf-1 port 5", "node005 mlx5_1")]
    assert [e.kind.value for e in found.new] == ["missing_link"]
    assert {str(end) for ends in found.undone for end in ends} >= {"node005 mlx5_1", "leaf-1 port 34"}


def test_all_done():
    """Where everything was done as proposed, nothing is left, and every cable is where the work should have put it."""
    bench = Bench()
    bench.rotate(port("leaf-0", 1), port("leaf-0", 2))
    before = bench.verify()
    found = recheck(before, Bench().verify())
    assert (len(found.repaired), found.left, found.new, found.undone) == (1, (), (), ())


def test_carry_out_on_paper():
    """Plugs that change places go together, a displaced plug hangs loose, and names move no cable."""
    a, b, c, d, e = (port("sw", number) for number in range(1, 6))
    steps = [MovePlug(a, b), MovePlug(b, a), Rename("x", port("y", ""), ())]
    assert carry_out(steps, [frozenset((a, c)), frozenset((b, d))]) == {frozenset((b, c)), frozenset((a, d))}
    assert carry_out([MovePlug(c, b)], [frozenset((a, c)), frozenset((b, d))]) == {frozenset((a, b))}
    assert carry_out([TakeOut(a, c), PlugIn(a, e)], [frozenset((a, c))]) == {frozenset((a, e))}

"""Generated plans are fat trees in OpenSM's eyes too, and the fabric that it then shows is the plan."""

from __future__ import annotations

import pytest

from clusterctl.cabling.explain.verify import verify
from clusterctl.cabling.generate.fat_tree import PortNaming, generate
from clusterctl.cabling.generate.racks import RackLayout
from clusterctl.cabling.generate.shape import FabricSize, shape_of
from clusterctl.formats.infiniband.ibnetdiscover import parse_ibnetdiscover
from tests.cabling.generate.subnet import MISSING, sweep

pytestmark = pytest.mark.skipif(MISSING, reason="ibsim-utils or opensm is missing")


@pytest.mark.parametrize(
    "wanted",
    [
        FabricSize(16, 1, 4, 3),
        FabricSize(20, 2, 8, 3),
        FabricSize(13, 3, 12, 3),
        FabricSize(37, 4, 36, 2),
        FabricSize(64, 8, 64, 2),
    ],
    ids=str,
)
def test_ftree_takes_it(wanted, tmp_path):
    """Full and odd sizes: `ftree tables configured`, and every cable where the plan has it."""
    adapters = tuple(f"mlx5_{number}" for number in range(wanted.rails))
    shape = shape_of(wanted)
    plan = generate(shape, PortNaming(adapters, twin_cages=False), RackLayout())
    subnet = sweep(plan, wanted.radix, tmp_path)
    assert shape.even
    assert subnet.is_fat_tree, subnet.log[-2000:]
    assert verify(plan, parse_ibnetdiscover(subnet.fabric)).explanations == ()


def test_uneven_pods_are_no_pods_and_are_reported(tmp_path):
    """Five units cannot be dealt to at most four pods evenly: OpenSM falls back, and the shape knows."""
    wanted = FabricSize(10, 1, 4, 3)
    shape = shape_of(wanted)
    assert not shape.even
    assert not sweep(
        generate(shape, PortNaming(("mlx5_0",), twin_cages=False), RackLayout()), wanted.radix, tmp_path
    ).is_fat_tree

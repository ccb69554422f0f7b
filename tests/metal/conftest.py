"""One installation of two virtual machines for all tests that need no other: it takes minutes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.metal.install_kit import NODES, Installed, metal_site
from tests.metal.network_kit import want_network


@pytest.fixture(scope="package")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """One bootstrap of two machines, as an operator would run it; node002 has a network of the site's own."""
    folder = tmp_path_factory.mktemp("pxe")
    with metal_site("metalp", "10.171.0.0/16", folder, len(NODES)) as metal:
        want_network(metal.lab, NODES[1])
        before = metal.data()
        yield Installed(metal, metal.install(), before)

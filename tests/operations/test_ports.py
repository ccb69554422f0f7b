"""`clusterctl.ports` imports each port's module with the first of its names."""

from __future__ import annotations

import pytest

from clusterctl import ports


@pytest.mark.parametrize("name", ports.__all__)
def test_each_name_of_the_ports_is_found(name: str) -> None:
    """A name that type checkers know exists at run time, too."""
    assert getattr(ports, name) is not None


def test_another_name_is_an_attribute_error() -> None:
    """What is no port is refused as a module refuses it."""
    with pytest.raises(AttributeError, match="Nothing"):
        ports.__getattr__("Nothing")

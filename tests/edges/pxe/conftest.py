from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.edges.pxe.kit import Desktop, serving


@pytest.fixture
def desktop(tmp_path: Path) -> Iterator[Desktop]:
    with serving(tmp_path) as found:
        yield found

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.edges.pxe.kit import ServedAttempts, serving


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedAttempts]:
    with serving(tmp_path) as found:
        yield found

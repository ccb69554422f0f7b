"""What every refusal of wrong input has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clusterctl.fleet.errors import UsageError


def refused_in_words(read: Callable[[], Any], file: str) -> None:
    """Read it; an error is ours, and names the file, with message and remedy."""
    try:
        read()
    except UsageError as error:
        refusal = error
    else:
        return
    assert refusal.message
    assert refusal.remedy
    assert refusal.where.startswith(file)

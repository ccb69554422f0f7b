"""Commands run in this process set its log levels: each test leaves them as it found them."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from clusterctl_cli.verbosity import SAFE_LOGGERS


@pytest.fixture(autouse=True)
def log_levels() -> Iterator[None]:
    """Put back what `-v` and its absence change."""
    loggers = [logging.getLogger(), *(logging.getLogger(name) for name in SAFE_LOGGERS)]
    before = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, before, strict=True):
        logger.setLevel(level)

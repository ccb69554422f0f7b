"""Commands run in this process set its log levels: each test leaves them as it found them."""

from tests.cli.conftest import log_levels

__all__ = ["log_levels"]

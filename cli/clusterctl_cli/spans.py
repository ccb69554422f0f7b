"""Spans of time on the command line: `90s`, `10min`, `4h`, `1d`."""

from __future__ import annotations

from datetime import timedelta

import click

from clusterctl.fleet.durations import parse_duration


def span(_ctx: click.Context, _param: click.Parameter, value: str) -> timedelta:
    """Callback of an option whose value is a span above zero."""
    found = parse_duration(value)
    if not found:
        raise click.BadParameter(f"{value!r} is no span of time: give one like 90s, 10min, 4h or 1d")
    return found


def in_words(length: timedelta) -> str:
    """`4 h 30 min`."""
    minutes, seconds = divmod(round(length.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    parts = (f"{hours} h" if hours else "", f"{minutes} min" if minutes else "", f"{seconds} s" if seconds else "")
    return " ".join(part for part in parts if part) or "0 s"

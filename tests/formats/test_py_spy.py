"""Stacks as py-spy and the kernel print them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.py_spy import parse_dump, parse_kernel_stack


def thread(*frames: str, **more: Any) -> dict[str, Any]:
    listed = [
        {
            "name": name,
            "filename": "/opt/env/lib/torch/distributed/c10d.py",
            "module": None,
            "short_filename": "c",
            "line": 9,
        }
        for name in frames
    ]
    return {"pid": 7, "thread_id": 1, "thread_name": None, "active": False, "owns_gil": False, "frames": listed} | more


def test_the_main_thread_is_shown() -> None:
    """Not the threads of the data loader or the watchdog, in whatever order they come."""
    text = json.dumps([thread("watch", owns_gil=True), thread("all_reduce", "step", thread_name="MainThread")])
    assert parse_dump(text, where="x") == ("all_reduce (distributed/c10d.py:9)", "step (distributed/c10d.py:9)")


def test_without_a_main_thread_the_one_that_runs() -> None:
    text = json.dumps([thread("idle"), thread("busy", owns_gil=True)])
    assert parse_dump(text, where="x")[0].startswith("busy ")


@pytest.mark.parametrize("text", ["", "[]", "{}", '[{"frames": 7}]'])
def test_what_is_no_dump_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        parse_dump(text, where="pyspy_rank_0.json")


def test_the_stack_of_the_kernel() -> None:
    text = "[<0>] nfs_wait_bit_killable+0x1e/0x90 [nfs]\n[<ffffffff81234567>] rpc_wait_bit_killable+0x1e/0xa0\nx\n"
    assert parse_kernel_stack(text) == ("nfs_wait_bit_killable", "rpc_wait_bit_killable")
    assert parse_kernel_stack("") == ()

"""A node's answer with files of a job: what is damaged or too large is missing, and changes nothing else."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import pytest

from clusterctl.fleet.errors import ParseError
from clusterctl.formats import node_evidence
from clusterctl.formats.node_evidence import parse_node_files


def packed(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content)).decode()


def answer(**more: Any) -> str:
    return json.dumps({"version": 1, "utc_offset": "+0200", **more})


def test_files_are_unpacked() -> None:
    found = parse_node_files(
        answer(files=[{"name": "kernel.log", "content": packed(b"x")}], ranks={"3": 77}), where="n1"
    )
    assert (found.files, found.utc_offset, found.ranks) == ({"kernel.log": b"x"}, "+02:00", (3,))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("../../etc/cron.d/x", packed(b"x")),
        (".hidden", packed(b"x")),
        ("a", "no base64"),
        ("a", base64.b64encode(b"no zlib").decode()),
        ("a", packed(b"x" * 1000)[:12]),
        ("a", packed(bytes(node_evidence.MAX_BYTES + 1))),
    ],
)
def test_a_bad_file_is_missing(name: str, content: str) -> None:
    """A path out of the folder, damage, and what unpacks to more than the bound."""
    files = [{"name": name, "content": content}, {"name": "kernel.log", "content": packed(b"x")}]
    found = parse_node_files(answer(files=files), where="n1")
    assert list(found.files) == ["kernel.log"]
    assert len(found.missing) == 1


def test_another_answer_is_refused() -> None:
    with pytest.raises(ParseError):
        parse_node_files("[]", where="n1")

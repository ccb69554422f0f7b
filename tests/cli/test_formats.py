"""Documents on stdout."""

from __future__ import annotations

import json
from typing import Any

import click
import pytest
from click.testing import CliRunner

from clusterctl_cli.formats import format_option, print_document

DOCUMENT: dict[str, Any] = {
    "nodes": [
        {"name": "n1", "findings": [{"cause": 'a "quoted" ü\nline', "measured": 1.5}]},
        {"name": "n2", "findings": []},
    ],
    "none": [],
    "nothing": None,
    "inner": {"list": [1, 2], "empty": {}},
}


@click.command()
@format_option()
@click.pass_context
def printed(ctx: click.Context, as_json: bool) -> None:
    """Print the document with its nodes as an iterator."""
    del ctx, as_json
    print_document({**DOCUMENT, "nodes": iter(DOCUMENT["nodes"])})


def test_an_iterator_is_printed_as_the_list_of_its_items() -> None:
    """The JSON is that of `json.dumps` with two spaces, byte for byte."""
    result = CliRunner().invoke(printed, ["--json"])
    assert result.output == json.dumps(DOCUMENT, indent=2, ensure_ascii=False) + "\n"


@pytest.mark.parametrize(("form", "output"), [("name", "n1\nn2\n"), ("yaml", None)])
def test_other_formats_print_an_iterator_too(form: str, output: str | None) -> None:
    import yaml

    result = CliRunner().invoke(printed, ["-o", form])
    assert result.output == output if output is not None else yaml.safe_load(result.output) == DOCUMENT


def test_text_that_is_no_unicode_is_escaped() -> None:
    @click.command()
    def half() -> None:
        print_document({"name": "\ud800"})

    assert json.loads(CliRunner().invoke(half).output) == {"name": "\ud800"}

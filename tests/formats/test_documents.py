"""JSON documents as dataclasses: what is read, what is refused at which field, and pydantic holds site files to the
same rules.
"""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest
from pydantic import TypeAdapter, ValidationError

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.documents import Alias, Count, Figure, Text, Within, read_document, read_value


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True)
class Tree:
    name: Text
    below: tuple[Tree, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Everything:
    whole: Count
    number: Figure
    flag: bool
    colour: Colour
    word: Literal["a", "b"]
    either: int | str
    maybe: str | None
    pair: tuple[int, str]
    names: frozenset[str]
    by_name: dict[str, Count]
    any: Any
    tree: Tree
    path: Annotated[str, Within(pattern="^/")]
    device: Annotated[str, Alias("maj:min")] = ""
    notes: tuple[str, ...] = field(default=("none",))


WHOLE = {
    "whole": 3,
    "number": 2.5,
    "flag": True,
    "colour": "red",
    "word": "b",
    "either": "7",
    "maybe": None,
    "pair": [1, "x"],
    "names": ["p", "q"],
    "by_name": {"x": 1},
    "any": {"y": [1]},
    "tree": {"name": "r", "below": [{"name": "s"}]},
    "path": "/dev",
    "maj:min": "8:0",
    "unknown": 1,
}


def test_each_type_is_read() -> None:
    """Unknown fields are ignored; a missing one has its default; a text of a union stays a text."""
    read = read_document(Everything, json.dumps(WHOLE), "x")
    assert read == Everything(
        whole=3,
        number=2.5,
        flag=True,
        colour=Colour.RED,
        word="b",
        either="7",
        maybe=None,
        pair=(1, "x"),
        names=frozenset({"p", "q"}),
        by_name={"x": 1},
        any={"y": [1]},
        tree=Tree("r", (Tree("s"),)),
        path="/dev",
        device="8:0",
    )


@pytest.mark.parametrize(
    ("value", "whole"),
    [("12", 12), (" +12.0 ", 12), (12.0, 12), (10**30, 10**30), (True, 1), ("0_1", None), ("1.5", None)],
)
def test_a_number_may_be_a_text(value: object, whole: int | None) -> None:
    """As nvme-cli and smartctl print some; a fraction or other characters are no whole number."""
    document = {**WHOLE, "whole": value}
    if whole is None:
        with pytest.raises(ParseError, match="must be a whole number"):
            read_value(Everything, document, "x")
    else:
        assert read_value(Everything, document, "x").whole == whole


def test_the_first_type_of_a_union_is_tried_first() -> None:
    """Also where another document has the same types in the other order."""
    assert read_value(int | bool, "7", "x") == 7  # type: ignore[arg-type]
    for kind, words in ((int | str, "whole number"), (str | int, "text"), (int | str, "whole number")):
        with pytest.raises(ParseError, match=words):
            read_value(kind, None, "x")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "where", "message"),
    [
        ({"whole": -1}, "x whole", "must be 0 or more"),
        ({"whole": None}, "x whole", "whole number"),
        ({"number": float("inf")}, "x number", "finite"),
        ({"number": float("nan")}, "x number", "0 or more"),
        ({"number": "fast"}, "x number", "a number"),
        ({"flag": 1}, "x flag", "true or false"),
        ({"colour": "green"}, "x colour", "red, blue"),
        ({"word": "c"}, "x word", "'a' or 'b'"),
        ({"either": None}, "x either", "whole number"),
        ({"maybe": 1}, "x maybe", "text"),
        ({"pair": [1]}, "x pair", "2 items"),
        ({"names": "p"}, "x names", "a list"),
        ({"by_name": {"x": "y"}}, "x by_name.x", "whole number"),
        ({"by_name": []}, "x by_name", "an object"),
        ({"tree": {"name": "r", "below": [{"name": "s"}, {"name": ""}]}}, "x tree.below.1.name", "not be empty"),
        ({"tree": {}}, "x tree.name", "required"),
        ({"path": "dev"}, "x path", r"must match \^/"),
        ({"maj:min": 8}, "x maj:min", "text"),
    ],
)
def test_what_does_not_fit_is_named(change: dict[str, object], where: str, message: str) -> None:
    with pytest.raises(ParseError, match=message) as caught:
        read_value(Everything, {**WHOLE, **change}, "x")
    assert caught.value.where == where


@pytest.mark.parametrize(
    "text", ["", "{", "[" * 100_000, '{"name": "\\ud800"}', '{"name": "\udc80"}', "1" * 5000, '{"name": "a"} b', "null"]
)
def test_what_is_no_document_is_refused(text: str) -> None:
    """Also half of a surrogate pair, which no file and no journal could keep; and nothing of the text is repeated."""
    with pytest.raises(ParseError) as caught:
        read_document(Tree, text, "x")
    assert len(str(caught.value)) < 120


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (Count, (0, 7), (-1,)),
        (Figure, (0.0, 1.5), (-0.1, float("inf"))),
        (Text, ("a",), ("",)),
        (Annotated[int, Within(gt=0, le=7)], (1, 7), (0, 8)),
        (Annotated[str, Within(pattern="^/.")], ("/a",), ("a", "/")),
        (Annotated[tuple[Text, ...], Within(min_length=1, max_length=1)], (("a",),), ((), ("a", "b"), ("",))),
    ],
)
def test_pydantic_keeps_the_same_rules(kind: Any, good: tuple[object, ...], bad: tuple[object, ...]) -> None:
    """Limits files are read by pydantic, the compiled limits on a node without it."""
    for value in good:
        assert TypeAdapter(kind).validate_python(value) == read_value(kind, value, "x") == value
    for value in bad:
        with pytest.raises(ValidationError):
            TypeAdapter(kind).validate_python(value)
        with pytest.raises(ParseError):
            read_value(kind, value, "x")

"""Suites that extend others: what they take over, what they change, and how a wrong one is refused."""

from __future__ import annotations

import pytest

from clusterctl.fleet.errors import UsageError
from clusterctl_burnin.suites.suite import SuiteText, parse_suite, shipped_suite

HEAD = "version: 1\nname: mine\n"


def of_site(**texts: str) -> dict[str, SuiteText]:
    return {name: SuiteText(text, f"suites/{name}.yml") for name, text in texts.items()}


def test_missing_fields_are_taken_over() -> None:
    """Checks, loads and rounds; the name is its own."""
    mine = parse_suite(HEAD + "extends: nightly\ngroup_rounds: 3\n", where="s.yml")
    theirs = shipped_suite("nightly")
    assert (mine.name, mine.group_rounds) == ("mine", 3)
    assert (mine.checks, mine.loads, mine.pair_seconds) == (theirs.checks, theirs.loads, theirs.pair_seconds)


def test_checks_are_dropped_and_added_at_the_end() -> None:
    """The others keep their order; what a suite dropped another one that extends it may add."""
    others = of_site(
        bare="version: 1\nname: bare\nextends: bootstrap\ndrop: [docker, zpool]\n",
        mine=HEAD + "extends: bare\nadd: [zpool]\n",
    )
    mine = parse_suite(others["mine"].text, where=others["mine"].where, others=others)
    names = [check.name for check in mine.checks]
    kept = [check.name for check in shipped_suite().checks if check.name not in ("docker", "zpool")]
    assert names == [*kept, "zpool"]
    assert "docker" not in mine.required


def test_a_duration_can_be_taken_back() -> None:
    """`null` is what a suite has that never spoke of it."""
    assert parse_suite(HEAD + "extends: nightly\npair_seconds: null\n", where="s.yml").pair_seconds is None


def test_a_file_may_stand_before_the_shipped_one_that_it_extends() -> None:
    """`suites/nightly.yml` of the site extends the nightly that it hides, also where another one extends it."""
    others = of_site(
        nightly="version: 1\nname: nightly\nextends: nightly\ndrop: [docker]\n", mine=HEAD + "extends: nightly\n"
    )
    for name in others:
        suite = parse_suite(others[name].text, where=others[name].where, others=others)
        assert suite.required == shipped_suite("nightly").required - {"docker"}


def test_everything_asked_for_is_reported() -> None:
    """By names, whole, with what was taken over: evidence outlives the file."""
    reported = parse_suite(HEAD + "extends: hunt\ndrop: [docker]\n", where="s.yml").as_dict()
    assert reported["name"] == "mine"
    assert reported["checks"] == [check.name for check in shipped_suite().checks if check.name != "docker"]
    assert reported["loads"] == ["ib_write_bw", "all_reduce_rail", "all_reduce"]
    assert (reported["pair_rounds"], reported["pair_seconds"], reported["known_bad"]) == (8, 60, True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEAD + "extends: nigthly\n", r"s\.yml:3 extends: no suite is called 'nigthly'"),
        (HEAD + "extends: [nightly]\n", r"s\.yml:3 extends"),
        (HEAD + "extends: nightly\nadd: [gpu_echo]\n", r"s\.yml:4 add\.0: no check is called 'gpu_echo'"),
        (HEAD + "extends: nightly\nadd:\n  - docker\n", r"s\.yml:5 add\.0: 'docker' is there already"),
        (HEAD + "extends: nightly\ndrop: [docker, gpu_echo]\n", r"s\.yml:4 drop\.1: nightly has no check 'gpu_echo'"),
        (HEAD + "extends: nightly\ndrop: docker\n", r"s\.yml:4 drop"),
        (
            HEAD + "extends: nightly\ndrop: [docker]\nchecks: [zpool]\n",
            r"s\.yml:4 drop: checks lists all of them already",
        ),
        (
            HEAD + "checks: [zpool]\nloads: []\npair_rounds: 1\ndrop: [zpool]\n",
            r"s\.yml:6 drop: this suite extends none",
        ),
        (HEAD + "extends: nightly\npair_rounds: 0\n", r"s\.yml:4 pair_rounds"),
        (HEAD + "extends: nightly\nall_night: true\n", r"s\.yml:4 all_night"),
        ("version: 1\nextends: nightly\n", r"s\.yml:\d+ name"),
        (
            HEAD + "extends: round\n",
            r"suites/about\.yml:3 extends: these suites extend each other: round → about → round",
        ),
        (HEAD + "extends: broken\n", r"suites/broken\.yml:4 pair_rounds"),
    ],
)
def test_a_wrong_difference_is_refused_with_its_line(text: str, words: str) -> None:
    """In the file that is to blame, with what to do."""
    others = of_site(
        round="version: 1\nname: round\nextends: about\n",
        about="version: 1\nname: about\nextends: round\n",
        broken="version: 1\nname: broken\nextends: nightly\npair_rounds: none\n",
    )
    with pytest.raises(UsageError, match=words) as caught:
        parse_suite(text, where="s.yml", others=others)
    assert caught.value.remedy

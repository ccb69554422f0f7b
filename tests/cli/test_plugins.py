"""Commands of other packages: their entry points are read for what is no command of the product, and for the list."""

from __future__ import annotations

from importlib import metadata

import pytest

from clusterctl_cli.main import LAB_MISSING, PLUGINS, run


class EntryPoints:
    """Stands in for `importlib.metadata.entry_points`: no other package is installed; remembers the groups that were read."""

    def __init__(self) -> None:
        self.groups: list[str] = []

    def __call__(self, *, group: str) -> tuple[metadata.EntryPoint, ...]:
        self.groups.append(group)
        return ()


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> EntryPoints:
    points = EntryPoints()
    monkeypatch.setattr(metadata, "entry_points", points)
    return points


@pytest.mark.parametrize("argv", [("plan", "--help"), ("nodes", "--help"), ("cable", "--help"), ("--version",)])
def test_a_command_of_the_product_reads_no_entry_points(argv: tuple[str, ...], read: EntryPoints) -> None:
    """They cost a tenth of the time that a command needs to start."""
    assert run(argv) == 0
    assert PLUGINS not in read.groups


@pytest.mark.parametrize(("argv", "code"), [(("lab", "up"), 2), (("no-such-command",), 2), (("--help",), 0)])
def test_the_lab_an_unknown_command_and_the_list_read_them(argv: tuple[str, ...], code: int, read: EntryPoints) -> None:
    """Another package may have the command; the list has the commands of all."""
    assert run(argv) == code
    assert PLUGINS in read.groups


def test_without_the_lab_its_command_prints_how_to_install_it(
    read: EntryPoints, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, like every wrong input."""
    assert run(("lab", "faults")) == 2
    assert LAB_MISSING in capsys.readouterr().err
    assert PLUGINS in read.groups

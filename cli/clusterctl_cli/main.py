"""`clusterctl`: find the command, run it, print errors, return the exit code."""

from __future__ import annotations

import errno
import gc
import os
import resource
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

import click

from clusterctl import __version__
from clusterctl.fleet.errors import ClusterctlError, EnvironmentBrokenError, UsageError
from clusterctl.fleet.peer_text import visible
from clusterctl.operations.documents import redacted
from clusterctl_cli.command_groups import COMMANDS, SECTIONS, SUBCOMMANDS, LazyGroup
from clusterctl_cli.text import echo

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

PLUGINS = "clusterctl.commands"
"""Entry point group: commands of other installed packages, such as `lab` of clusterctl-lab."""
PLUGIN_SECTION = "Start"
LAB = "lab"
LAB_MISSING = "install the package clusterctl-lab in addition to clusterctl"
INTERRUPTED = "interrupted; run the same command again to go on"
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
_PIPES_TOO = 1
_PR_SET_DUMPABLE = 4
"""linux/prctl.h"""
HELP_WIDTH = 200
"""Help texts are wrapped by click, never cut."""


def plugins() -> dict[str, EntryPoint]:
    """Return the commands of other packages by name; reads the metadata of all installed packages, about 10 ms."""
    from importlib import metadata

    return {entry.name: entry for entry in metadata.entry_points(group=PLUGINS)}


def load_plugin(entry: EntryPoint) -> click.Command:
    """Import the command of another package and return it."""
    command = entry.load()
    if not isinstance(command, click.Command):
        raise TypeError(f"{entry.value} is no click command")
    return command


class RootGroup(LazyGroup):
    """Lists the commands by section, and the commands of other packages among them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *plugins()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self.table:
            return super().get_command(ctx, cmd_name)
        found = plugins()
        if cmd_name in found:
            from clusterctl_cli.verbosity import add_verbose

            return add_verbose(load_plugin(found[cmd_name]))
        if cmd_name == LAB and not ctx.resilient_parsing:
            raise UsageError("the rehearsal lab is not installed", where="clusterctl lab", remedy=LAB_MISSING)
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        sections = {section: list(_rows(section)) for section in SECTIONS}
        width = max(len(name) for rows in sections.values() for name, _ in rows)
        for section, rows in sections.items():
            with formatter.section(section):
                formatter.write_dl([(name.ljust(width), text) for name, text in rows])


def _rows(section: str) -> Iterator[tuple[str, str]]:
    """Yield the commands of a section of `--help`, each with its one-line help."""
    for name, (_, text) in SECTIONS[section].items():
        yield name, text
    if section == PLUGIN_SECTION:
        for name, entry in plugins().items():
            yield name, load_plugin(entry).get_short_help_str(HELP_WIDTH)
    yield from SUBCOMMANDS.get(section, {}).items()


@click.command(cls=RootGroup, table=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def cli() -> None:
    """From bare GPU servers to a trusted training cluster.

    Begin with `clusterctl init DIR`, or rehearse without hardware: `clusterctl lab up`, then `clusterctl bootstrap`.
    """


def run(argv: Sequence[str]) -> int:
    """Run one command line; return its exit code: 0 fine, 1 some node failed or is held, 2 wrong input, 3 environment,
    130 interrupted.
    """
    try:
        code = cli.main(list(argv), prog_name="clusterctl", standalone_mode=False)
    except ClusterctlError as error:
        return _print_error(error, argv)
    except click.exceptions.Abort as aborted:
        from clusterctl_cli.approval import DeclinedError

        declined = isinstance(aborted, DeclinedError)
        echo("declined: nothing was changed" if declined else INTERRUPTED, err=True)
        return 130
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        return _print_error(error, argv)
    except OSError as error:
        if error.errno not in _FULL or error.filename is not None:
            raise
        return _print_error(_unwritten(error), argv)
    return code if isinstance(code, int) else 0


def _unwritten(error: OSError) -> EnvironmentBrokenError:
    """Return the error of output that could not be written; what is still in its buffer is left out."""
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, sys.__stdout__.fileno() if sys.__stdout__ is not None else 1)
    os.close(sink)
    remedy = "free space where the output goes, and where the site's state lies; then give the command again"
    return EnvironmentBrokenError(f"cannot be written: {error.strerror}", where="output", remedy=remedy)


def _print_error(error: ClusterctlError | click.ClickException, argv: Sequence[str]) -> int:
    """Print an error in the format that the command line asks for; return its exit code."""
    from clusterctl_cli import error_output
    from clusterctl_cli.formats import asked_on

    ours = error if isinstance(error, ClusterctlError) else error_output.from_click(error)
    error_output.print_error(ours, asked_on(argv))
    return error.exit_code


def harden() -> None:
    """Keep secrets out of core dumps, of other programs of the same user, and of the tracebacks of uncaught errors."""
    forbid_core_dumps()
    sys.excepthook = print_traceback
    threading.excepthook = lambda error: print_traceback(error.exc_type, error.exc_value, error.exc_traceback)


def forbid_core_dumps() -> None:
    """Leave no core of this process and of its children, in a file or in a pipe, and let no program trace this one.

    The kernel ignores the limit for a piped core pattern (systemd-coredump, apport), except for the value 1: the guard
    of fs/coredump.c against a crash of the pipe's own program. Children inherit the limit only.
    """
    import ctypes

    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    limit = _PIPES_TOO if hard == resource.RLIM_INFINITY else min(_PIPES_TOO, hard)
    resource.setrlimit(resource.RLIMIT_CORE, (limit, limit))
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def print_traceback(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
    """Print a traceback on stderr without secrets: files, lines and messages, never the values of variables."""
    sys.stderr.write(visible(redacted("".join(traceback.format_exception(kind, error, trace)))))


def main() -> None:
    """Run the command line: the entry point."""
    gc.set_threshold(50_000, 20, 100)  # a fleet is many objects and few cycles: a sixth of the time of `nodes`
    harden()
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()

"""A person's text files, read with words for everything that can be wrong with a file."""

from __future__ import annotations

from pathlib import Path

from clusterctl.fleet.errors import UsageError
from clusterctl.formats.yaml_document import Document, parse_yaml

MAX_BYTES = 4 * 1024 * 1024


def read_text(file: Path) -> str:
    """A text file of the person's: exists, is a file, of sane size, UTF-8."""
    try:
        if file.is_dir():
            raise UsageError("is a directory, not a file", where=str(file), remedy="name the file itself")
        if file.stat().st_size > MAX_BYTES:
            raise UsageError(f"is larger than {MAX_BYTES >> 20} MiB", where=str(file), remedy="is it the right file?")
        return file.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise UsageError(
            "does not exist", where=str(file), remedy="create it, or write a new site with clusterctl init DIR"
        ) from None
    except PermissionError:
        raise UsageError("may not be read", where=str(file), remedy="check its owner and mode") from None
    except UnicodeDecodeError as error:
        line = file.read_bytes()[: error.start].count(b"\n") + 1
        raise UsageError("is not UTF-8 text", where=f"{file}:{line}", remedy="save it as UTF-8") from None


def read_yaml(file: Path) -> Document:
    """A YAML file, with the line of each of its values."""
    return parse_yaml(read_text(file), str(file))

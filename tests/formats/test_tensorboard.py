"""TensorBoard's event files: one that tensorboardX 2.6.5 wrote, and bytes that are none."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.tensorboard import EventStep, read_events
from clusterctl.jobs.progress import JobProgress, Reading, event_readings, events_path, reader

CONTENT = (Path(__file__).parent / "data/tensorboard/events.out.tfevents.tensorboardX-2.6.5").read_bytes()
BEGAN = 1_790_000_000.0


def crc32c(data: bytes) -> int:
    """RFC 3720, appendix B.4, a bit at a time."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def record(message: bytes, length: int | None = None) -> bytes:
    head = struct.pack("<Q", len(message) if length is None else length)
    crc = crc32c(head)
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    return head + struct.pack("<I", masked) + message + b"\0" * 4


def test_the_steps_of_summaries_are_read_with_their_times() -> None:
    """Each scalar has one; the file's version is no step."""
    found, used = read_events(CONTENT)
    assert used == len(CONTENT)
    assert [one.step for one in found] == [10, 10, 20, 20, 30, 30, 40, 40, 50, 50, 60]
    assert found[0].at == pytest.approx(BEGAN + 15.0)


def test_a_file_that_grows_is_read_the_same() -> None:
    """Wherever a look ends: a record that is not whole yet is read at the next one."""
    whole, _ = read_events(CONTENT)
    at, found = 0, list[EventStep]()
    for end in range(0, len(CONTENT) + 7, 7):
        more, used = read_events(CONTENT[at:end])
        found += more
        at += used
    assert tuple(found) == whole


def test_a_large_record_is_passed_over() -> None:
    """An image of two megabytes is no scalar: its bytes need not be read."""
    image = record(b"\x2a" * 2_000_000)
    found, used = read_events(CONTENT + image[:100])
    assert (len(found), used) == (11, len(CONTENT) + len(image))


@pytest.mark.parametrize(
    "content",
    [b"iteration 1/2 | nothing of a record", record(b"", 1 << 60), CONTENT[1:], b"\0" * 4096],
)
def test_bytes_that_are_no_record_are_an_error(content: bytes) -> None:
    with pytest.raises(ParseError):
        read_events(content)


@pytest.mark.parametrize(
    "message",
    [
        b"\xff" * 40,
        b"\x10",
        b"\x2a\x7f",
        b"\x10" + b"\xff" * 9 + b"\x01\x2a\x00",
        b"\x09\x00",
        b"\x0b",
        b"\x2a\x00\x09" + b"\xff" * 8,
    ],
)
def test_a_message_that_cannot_be_read_is_no_step(message: bytes) -> None:
    """Nor one with a step or a time that no training has; the record behind it is read."""
    found, _ = read_events(record(message) + CONTENT)
    assert len(found) == 11


def test_times_of_steps_are_those_between_events() -> None:
    """Half as many readings as scalars: a step counts once, also where the file is read again."""
    found, _ = read_events(CONTENT)
    readings = event_readings(found, None)
    assert [one.step for one in readings] == [10, 20, 30, 40, 50, 60]
    assert readings[1] == Reading(20, pytest.approx(1.5, abs=0.01))
    assert event_readings(found, found[-1]) == []


def test_the_reader_names_a_path_and_reads_no_line() -> None:
    """A relative path is refused: nothing names the folder that it is in."""
    assert events_path(["jsonl", "tensorboard:/runs/%j"]) == "/runs/%j"
    assert events_path(["jsonl"]) == ""
    assert reader("tensorboard:/runs/%j")("iteration 5/ 10 | loss") is None
    assert JobProgress().last is None
    with pytest.raises(Exception, match="must begin with /"):
        reader("tensorboard:runs")

"""Whether an exception is a fault of a framework or of the data loader, by where it was raised and its type.

Frameworks check what programs give them, and raise ValueError or RuntimeError: those are the program's. An assertion,
or an error of Python's own, where a framework shards, communicates, compiles or saves is the framework's. An installed
package that calls another one wrongly does not fit it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_OWN_STATE = re.compile(
    r"(?:^|/)(?:"
    r"torch/(?:distributed|nn/parallel|_dynamo|_inductor|_functorch)"
    r"|deepspeed/(?:runtime/(?!config)|checkpoint|moe|utils)"
    r"|megatron/core|fairscale/nn|transformer_engine/pytorch"
    r")/?"
)
"""Folders of frameworks with state of their own: shards, buckets, graphs. Settings are checked in others."""
_MACHINERY = re.compile(
    r"(?:^|/)(?:megatron/core/dist_checkpointing/strategies|torch/distributed/checkpoint/(?:filesystem|staging)"
    r"|triton/backends/)"
)
"""No argument of a program is checked there."""
_INSTALLED = re.compile(r"/(?:site|dist)-packages/")
_OF_STATE = frozenset({"AssertionError", "AttributeError", "IndexError", "KeyError", "TypeError"})
_OF_CODE = frozenset({"NameError", "UnboundLocalError"})
"""No argument leads to them: the code is wrong."""
_OF_ANYONE = frozenset({"AssertionError", "AttributeError"})
"""Their texts do not show whose state is wrong."""
_OF_FIT = frozenset({"AttributeError", "ImportError", "TypeError"})
_PASSES_ON = re.compile(
    r"/(?:torch/(?:nn/(?:modules|parallel)|utils|_utils|autograd)|transformers/hf_argparser|hydra|fire)\b"
)
"""Calls what the program names, with the program's own arguments."""


_LOADER = re.compile(r"/torch/(?:utils/data|multiprocessing)/")
_OF_SYSTEM = frozenset(
    {"OSError", "BlockingIOError", "BrokenPipeError", "ConnectionRefusedError", "ConnectionResetError", "EOFError"}
)


def of_the_loader(parts: Mapping[str, str]) -> bool:
    """Return whether it is an error of the operating system where the data loader starts or asks its workers."""
    return parts.get("exception", "") in _OF_SYSTEM and bool(_LOADER.search(parts.get("frame", "")))


def of_a_framework(parts: Mapping[str, str]) -> bool:
    """Return whether the exception of a line is a framework's.

    `parts` of the line's meaning: `exception`, its type, and `frame`, the file that raised it.
    """
    kind, frame = parts.get("exception", "").rpartition(".")[2], parts.get("frame", "")
    if kind in _OF_CODE:
        return bool(_INSTALLED.search(frame))
    return bool(_MACHINERY.search(frame)) or (kind in _OF_STATE and bool(_OWN_STATE.search(frame)))


def is_of_unknown_place(parts: Mapping[str, str]) -> bool:
    """Return whether only the traceback, which is missing, would show whether the program or a framework raised it."""
    return not parts.get("frame") and parts.get("exception") in _OF_ANYONE


def does_not_fit(parts: Mapping[str, str]) -> bool:
    """Return whether an installed package called another one, or imported from it, what that one does not have."""
    kind, frame = parts.get("exception", "").rpartition(".")[2], parts.get("frame", "")
    called = "unfit" in parts and kind in _OF_FIT
    return called and bool(_INSTALLED.search(frame)) and not _PASSES_ON.search(frame)

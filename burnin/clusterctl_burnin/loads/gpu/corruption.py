"""Silent corruption: a product of the same two matrices that comes out otherwise than before, or than elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from clusterctl.formats.nvidia.gpu_load import LoadedGpu


@dataclass(frozen=True, slots=True)
class Disagreement:
    """`odd`: indices of GPUs with another result than the majority; `unsettled`: there is no majority."""

    odd: frozenset[int]
    unsettled: bool


def disagreement(gpus: Sequence[LoadedGpu]) -> Disagreement:
    """Compare the results of GPUs of one model; a GPU that computed nothing does not count."""
    models = {gpu.model for gpu in gpus}
    voices = Counter(gpu.digest for gpu in gpus if gpu.digest)
    if len(voices) < 2 or len(models) > 1:
        return Disagreement(frozenset(), unsettled=False)
    digest, count = voices.most_common(1)[0]
    if 2 * count <= sum(voices.values()):
        return Disagreement(frozenset(), unsettled=True)
    return Disagreement(frozenset(gpu.index for gpu in gpus if gpu.digest and gpu.digest != digest), unsettled=False)

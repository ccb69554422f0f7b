"""gpu_load: the findings of each GPU, its worst one; healthy GPUs share one finding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from clusterctl.fleet.finding import Finding, Verdict, not_applicable
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Quantity, exactly
from clusterctl.formats.nvidia.gpu_load import GpuLoad, GpuLoadEnd, LoadedGpu
from clusterctl_burnin.check import Expected, inconclusive
from clusterctl_burnin.loads.gpu.speed import GPU_GEMM_BF16_MIN, MEASURES, GpuFault, slow
from clusterctl_burnin.loads.gpu.throttle_reasons import POWER, faulty_reasons, throttled_by_server
from clusterctl_burnin.probe import UnmeasuredError
from clusterctl_burnin.probes.nvidia_smi import GPU_MEMORY_TEMPERATURE_MAX, missing
from clusterctl_burnin.tools import PYTORCH

NAME = "gpu_load"
NO_TORCH = f"{PYTORCH}, then run the burn-in again"
_DIAGNOSE = "run dcgmi diag -r 3 on the node; if either names the GPU again, replace it"
_SIGKILL = 9
_FREE = "end these processes or drain the node, then run the burn-in again"
_KILLED = (
    "look in the kernel log for the OOM killer, and for who ends processes on the node; then run the burn-in again"
)
_HOT = "compare the GPU's heat sink, air duct and coolant flow with its neighbours'; then replace the GPU"


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


@dataclass(frozen=True, slots=True)
class _Bench:
    """All GPUs of the node under load at once. `powerless`: GPUs that the server throttled together, not at fault."""

    load: GpuLoad
    expected: Expected
    odd: Disagreement
    powerless: frozenset[int]

    def found(self, gpu: LoadedGpu) -> Finding | None:
        """Return the worst finding about one GPU; None where it is healthy."""
        wrong = (self._corrupt, self._shared, self._ended)
        held_back = (
            () if gpu.index in self.powerless else (self._throttled, self._hot, self._slow, self._without_figures)
        )
        return next((finding for kind in (*wrong, *held_back) if (finding := kind(gpu)) is not None), None)

    def _bad(self, gpu: LoadedGpu, bad: GpuFault) -> Finding:
        return Finding(
            check=NAME,
            verdict=Verdict.FAIL,
            code=bad.code,
            subject=gpu.subject,
            cause=f"{bad.cause} ({self._where(gpu)})",
            measured=bad.measured,
            expected=bad.expected,
            remedy=bad.remedy,
            serial=gpu.serial,
            deterministic=False,
        )

    def _where(self, gpu: LoadedGpu) -> str:
        """Return what an operator finds it by, in addition to its serial number."""
        known = (self.expected.inventory.gpus if self.expected.inventory else None) or ()
        slots = [f"slot {part.slot}" for part in known if gpu.serial and part.serial == gpu.serial]
        return ", ".join([*slots, gpu.pci, gpu.uuid] if gpu.pci else [*slots, gpu.uuid])

    def _corrupt(self, gpu: LoadedGpu) -> Finding | None:
        remedy = f"take the node out of service, {_DIAGNOSE}"
        if gpu.mismatches:
            cause = "the GPU computes wrong results: it repeated a product with another result"
            wrong = Quantity(gpu.mismatches, f"of {gpu.repeats} products")
            return self._bad(gpu, GpuFault(Code.WRONG_RESULT, cause, wrong, exactly(0, "products"), remedy))
        if gpu.index in self.odd.odd:
            cause = "the GPU computes wrong results: its product differs from the node's other GPUs"
            return self._bad(gpu, GpuFault(Code.WRONG_RESULT, cause, gpu.digest[:12], "the others' digest", remedy))
        return None

    def _shared(self, gpu: LoadedGpu) -> Finding | None:
        if not gpu.others:
            return None
        return self._unmeasured(gpu, f"other processes used the GPU under load: {', '.join(gpu.others)}", _FREE)

    def _ended(self, gpu: LoadedGpu) -> Finding | None:
        if gpu.ended is GpuLoadEnd.OK:
            return None
        others = any(other.ended is GpuLoadEnd.OK for other in self.load.gpus)
        hung, words = gpu.ended is GpuLoadEnd.HUNG, _how_it_ended(gpu)
        if gpu.exit_code == -_SIGKILL:
            return self._unmeasured(gpu, f"gpu-load: its process was killed from outside in {gpu.phase}", _KILLED)
        if gpu.began and others and not gpu.out_of_memory:
            cause = f"the GPU {'hung' if hung else 'failed'} under load: {words}"
            code = Code.GPU_HUNG if hung else Code.GPU_LOAD_FAILED
            remedy = f"look for its Xid in the kernel log; {_DIAGNOSE}"
            return self._bad(gpu, GpuFault(code, cause, gpu.phase, "done", remedy))
        remedy = NO_TORCH if gpu.phase == "import" else "find what else uses the GPUs, and run the burn-in again"
        return inconclusive(NAME, UnmeasuredError(f"gpu-load: {words}", remedy=remedy), gpu.subject, gpu.serial)

    def _throttled(self, gpu: LoadedGpu) -> Finding | None:
        for reason in faulty_reasons(gpu.reasons):
            measured = f"{reason.mask:#x} in {reason.seen} of {gpu.samples} looks"
            cause = f"{reason.cause}{_at(gpu)}"
            return self._bad(gpu, GpuFault(Code.GPU_THROTTLED, cause, measured, "never under load", reason.remedy))
        return None

    def _hot(self, gpu: LoadedGpu) -> Finding | None:
        limit, value = self.expected.limits[GPU_MEMORY_TEMPERATURE_MAX], gpu.figures.get("memory_temperature_max_c")
        if value is None or value <= limit.value:
            return None
        cause = "the GPU's memory is too hot under load"
        return self._bad(gpu, GpuFault(Code.GPU_TOO_HOT, cause, limit.quantity(value), limit.at_most, _HOT))

    def _slow(self, gpu: LoadedGpu) -> Finding | None:
        found = tuple(slow(gpu, self.load.gpus, self.expected.limits))
        if not found:
            return None
        return self._bad(gpu, replace(found[0], cause="; ".join(one.cause for one in found)))

    def _without_figures(self, gpu: LoadedGpu) -> Finding | None:
        """Return the finding for an unmeasured GPU. FP8 alone may be missing, and is then reported for the node."""
        for measure in MEASURES:
            if measure.figure in gpu.figures or measure.phase == "fp8":
                continue
            if measure.phase == "peer" and len(self.load.gpus) == 1:
                continue
            why = gpu.not_measured.get(measure.phase, "the program did not report it")
            return self._unmeasured(gpu, f"its {measure.name} was not measured: {why}", measure.remedy)
        if not gpu.repeats or not gpu.digest:
            return self._unmeasured(gpu, "no product was repeated", "run the burn-in again")
        if not gpu.samples:
            why = self.load.smi_output or "nvidia-smi did not report the GPU"
            return self._unmeasured(
                gpu, (f"nvidia-smi did not observe the GPU under load: {why}"), "look for a hung nvidia-smi"
            )
        return None

    def _unmeasured(self, gpu: LoadedGpu, cause: str, remedy: str) -> Finding:
        return inconclusive(NAME, UnmeasuredError(cause, remedy=remedy), gpu.subject, gpu.serial)


def findings(load: GpuLoad, expected: Expected) -> Iterator[Finding]:
    """Yield at least one; raise `UnmeasuredError` where no GPU could be loaded."""
    if expected.sku.gpu_count == 0 and not load.gpus:
        yield not_applicable(NAME, "the SKU has no GPU")
        return
    if load.trouble:
        remedy = NO_TORCH if load.python_absent else "check the driver (nvidia-smi) and run the burn-in again"
        raise UnmeasuredError(f"gpu-load: {load.trouble}", remedy=remedy)
    powerless = _throttled_together(load)
    bench = _Bench(load, expected, disagreement(load.gpus), powerless)
    bad = [_powerless(len(powerless))] if powerless else []
    bad += [finding for gpu in load.gpus if (finding := bench.found(gpu)) is not None]
    bad += missing(NAME, len(load.gpus), expected.sku.gpu_count, "GPUs")
    if bench.odd.unsettled:
        bad.append(_unsettled())
    yield from bad or (_well(load, expected),)


def _how_it_ended(gpu: LoadedGpu) -> str:
    if gpu.ended is GpuLoadEnd.HUNG:
        return f"it got no further than {gpu.phase}"
    return gpu.error or f"its process ended without a message in {gpu.phase}, exit code {gpu.exit_code}"


def _throttled_together(load: GpuLoad) -> frozenset[int]:
    """Return the GPUs that their server throttles; none where it is one alone."""
    throttled = [gpu.index for gpu in load.gpus if throttled_by_server(gpu.reasons)]
    return frozenset(throttled) if len(throttled) > 1 else frozenset()


def _well(load: GpuLoad, expected: Expected) -> Finding:
    """Return the pass, or a warning where FP8 was not measured."""
    limit = expected.limits[GPU_GEMM_BF16_MIN]
    slowest = min(gpu.figures["gemm_bf16_tflops"] for gpu in load.gpus)
    cause = f"{len(load.gpus)} GPUs computed equal results under load, none was throttled; the slowest is shown"
    whys = list(dict.fromkeys(gpu.not_measured["fp8"] for gpu in load.gpus if "fp8" in gpu.not_measured))
    verdict, remedy = Verdict.PASS, ""
    if whys:
        verdict, cause = Verdict.WARN, f"{cause}. FP8 was not measured: {'; '.join(whys)}"
        remedy = (
            "install a newer PyTorch (pytorch_version of the role pytorch) into the Python that "
            "methods.gpu_load.python of "
            "the limits file names"
        )
    return Finding(
        check=NAME,
        verdict=verdict,
        code=Code.GPU_FP8_UNMEASURED if whys else Code.PASSED,
        cause=cause,
        measured=limit.quantity(slowest),
        expected=limit.at_least,
        remedy=remedy,
    )


def _powerless(count: int) -> Finding:
    """Return the finding with one cause for many GPUs: their power supply."""
    cause = "the server's power brake halved the clocks of its GPUs, or more"
    return Finding(
        check=NAME,
        verdict=Verdict.FAIL,
        code=Code.GPU_THROTTLED,
        cause=cause,
        measured=Quantity(count, "GPUs"),
        expected=exactly(0, "GPUs"),
        remedy=POWER,
        deterministic=False,
    )


def _unsettled() -> Finding:
    cause = "GPUs of the node compute different results from the same numbers, and no majority shows which is wrong"
    remedy = f"take the node out of service, {_DIAGNOSE}"
    return Finding(
        check=NAME,
        verdict=Verdict.FAIL,
        code=Code.WRONG_RESULT,
        cause=cause,
        measured="different",
        expected="equal",
        remedy=remedy,
        deterministic=False,
    )


def _at(gpu: LoadedGpu) -> str:
    value = gpu.figures.get("temperature_max_c")
    return "" if value is None else f", at {value:g} °C"

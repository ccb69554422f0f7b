"""One rank of an all-reduce or a training over PyTorch, or the watcher of them all: started by torch_group.py with one
JSON argument.

Standard library and PyTorch, Python 3.9. Each rank writes into the watcher's store, twice a second and from a thread of
its own, how many pulses it has given and into which step it went last: a rank that waits in a collective gives pulses,
a stopped one does not. Rank 0 prints the result: of sums in the rows of nccl-tests, of a training as JSON.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import importlib
import json
import math
import os
import socket
import sys
import threading
import time
from typing import Any, Dict, List, Optional, Tuple

PULSE = 0.5  # seconds between two pulses
SILENT = 5.0  # seconds without a pulse, after which a rank is silent
SETTLE = 3.0  # seconds between a rank's failure and the report of all
CONNECT = 60.0  # seconds that the watcher may need to start: PyTorch alone may take half a minute
FLOAT_BYTES = 4
STALLED, FAILED, STORE_GONE, NO_TORCH = 3, 4, 7, 6  # exit codes
AGREE = 10  # steps between two questions whether the time is over
WARM_UP = 10  # steps of a training that are not measured: allocations, and the first choice of kernels
HEAD = 128  # width of an attention head

Spec = Dict[str, Any]
Pulse = Optional[Tuple[int, float]]  # the step it went into last, and seconds since its last pulse; None: it never came


def missing(pulses: List[Pulse]) -> List[Tuple[int, str]]:
    """Return the ranks that delay the others, and why; none where all are in the same step.

    Who never came or is silent is named alone: a collective that lost a member may let some of the others go a step
    further than the rest.
    """
    away = [(rank, "it never came") for rank, pulse in enumerate(pulses) if pulse is None]
    if away:
        return away
    there = [pulse for pulse in pulses if pulse is not None]
    quiet = [(rank, "it is silent") for rank, (_, ago) in enumerate(there) if ago > SILENT]
    if quiet:
        return quiet
    steps = [step for step, _ in there]
    return [(rank, "it is behind") for rank, step in enumerate(steps) if step < max(steps) and step == min(steps)]


def report(pulses: List[Pulse]) -> List[str]:
    """Return what the head prints of a hang."""
    last = max((pulse[0] for pulse in pulses if pulse is not None), default=0)
    named = missing(pulses)
    if not named:
        return [f"# Stalled in step {last}: every rank is in it"]
    return [f"# Stalled in step {last}"] + [
        f"# Missing rank {rank} in step {(pulses[rank] or (0, 0.0))[0]}: {why}" for rank, why in named
    ]


def connect(spec: Spec, *, master: bool = False) -> Any:
    distributed = importlib.import_module("torch.distributed")
    return distributed.TCPStore(
        spec["head"],
        spec["port"],
        is_master=master,
        wait_for_workers=False,
        timeout=dt.timedelta(seconds=CONNECT),
    )


class Watch:
    """What the watcher has received; `now` in seconds."""

    def __init__(self, store: Any, world: int, now: float) -> None:
        self.store, self.world, self.since = store, world, now
        self.received: Dict[int, Tuple[int, int, float]] = {}  # pulses, step, when the pulses last grew
        self.failed: Dict[int, str] = {}
        self.failed_at = 0.0

    def look(self, now: float) -> None:
        for rank in range(self.world):
            count, step = self.pulse(rank)
            before = self.received.get(rank)
            if count and (before is None or count != before[0]):
                self.received[rank] = (count, step, now)
            if before is None or step != before[1]:
                self.since = now if count else self.since
            if rank not in self.failed and self.store.check([f"failed/{rank}"]):
                self.failed[rank] = self.store.get(f"failed/{rank}").decode()
                self.failed_at = self.failed_at or now

    def pulse(self, rank: int) -> Tuple[int, int]:
        key = f"pulse/{rank}"
        count, step = json.loads(self.store.get(key)) if self.store.check([key]) else (0, 0)
        return count, step

    def ended(self) -> bool:
        return all(self.store.check([f"ended/{rank}"]) for rank in range(self.world))

    def pulses(self, now: float) -> List[Pulse]:
        received = [self.received.get(rank) for rank in range(self.world)]
        return [None if one is None else (one[1], now - one[2]) for one in received]

    def verdict(self, spec: Spec, now: float) -> Tuple[int, List[str]]:
        """Exit code and words once it is over; (0, []) while it goes on."""
        if self.failed and now - self.failed_at > SETTLE + SILENT:
            quiet = [item for item in missing(self.pulses(now)) if item[1] != "it is behind"]
            lost = [f"# Missing rank {rank}: {why}" for rank, why in quiet if rank not in self.failed]
            return FAILED, lost + [f"# Failed rank {rank}: {why}" for rank, why in self.failed.items()]
        patience = spec["stall"] if len(self.received) == self.world else spec["start"]
        if not self.failed and now - self.since > patience:
            return STALLED, report(self.pulses(now))
        return 0, []


def watch(spec: Spec) -> int:
    watching = Watch(connect(spec, master=True), spec["world"], time.monotonic())
    while not watching.ended():
        time.sleep(PULSE)
        now = time.monotonic()
        watching.look(now)
        code, words = watching.verdict(spec, now)
        if code:
            print("\n".join(words), flush=True)
            return code
    return 0


class Rank:
    """The rank's way through the steps, and the thread that reports it."""

    def __init__(self, spec: Spec) -> None:
        self.spec, self.rank, self.world = spec, spec["rank"], spec["world"]
        self.torch = importlib.import_module("torch")
        self.dist = importlib.import_module("torch.distributed")
        self.store, self.step, self.over = connect(spec), 0, False
        threading.Thread(target=self.send_pulses, daemon=True).start()

    def send_pulses(self) -> None:
        count, store = 0, connect(self.spec)
        while not self.over:
            count += 1
            try:
                store.set(f"pulse/{self.rank}", json.dumps([count, self.step]))
            except Exception as error:  # noqa: BLE001 — whatever it was, the first node cannot be reached any more
                if self.over:
                    return
                sys.stderr.write(f"rank {self.rank} has lost the first node: {error}\n")
                os._exit(STORE_GONE)
            time.sleep(PULSE)

    def begin(self) -> Any:
        """Join the group; return the device."""
        kind, local = ("cuda", self.spec["local"]) if self.spec["backend"] == "nccl" else ("cpu", 0)
        device = self.torch.device(kind, local) if kind == "cuda" else self.torch.device(kind)
        if kind == "cuda":
            self.torch.cuda.set_device(device)
        name = self.torch.cuda.get_device_name(device) if kind == "cuda" else "cpu"
        identity = f"Pid {os.getpid():>6} on {socket.gethostname():>10} device {local:>2} [0x00] {name}"
        self.store.set(f"who/{self.rank}", identity)
        self.dist.init_process_group(
            self.spec["backend"],
            store=self.dist.PrefixStore("group", self.store),
            rank=self.rank,
            world_size=self.world,
            timeout=dt.timedelta(seconds=self.spec["limit"]),
        )
        return device

    def reduce(self, tensor: Any, *, largest: bool = False) -> None:
        """Do one step: it is reported before it is gone into."""
        self.step += 1
        self.dist.all_reduce(tensor, op=self.dist.ReduceOp.MAX if largest else self.dist.ReduceOp.SUM)
        if tensor.is_cuda:
            self.torch.cuda.synchronize()

    def checked(self, buffer: Any) -> int:
        """Sum rank + 1 over all ranks; return the number of wrong elements here."""
        buffer.fill_(self.rank + 1)
        self.reduce(buffer)
        return int((buffer != self.world * (self.world + 1) / 2).sum().item())

    def timed(self, buffer: Any) -> Tuple[float, int]:
        """Return the seconds of one sum, and the number of wrong elements."""
        buffer.zero_()
        self.reduce(buffer)
        started = time.perf_counter()
        for _ in range(self.spec["iterations"]):
            self.reduce(buffer)
        seconds = (time.perf_counter() - started) / self.spec["iterations"]
        return seconds, self.checked(buffer)

    def long(self, buffer: Any) -> Tuple[float, int]:
        """Return the same of as many checked sums as fit into the time that rank 0 takes."""
        started, steps, wrong = time.perf_counter(), 0, 0
        more = True
        while more:
            wrong += sum(self.checked(buffer) for _ in range(AGREE))
            steps += AGREE
            more = not self.over_for_all(buffer.device, started)
        return (time.perf_counter() - started) / steps, wrong

    def over_for_all(self, device: Any, started: float) -> bool:
        """Return whether the time is over by the clock of rank 0, the same on all ranks."""
        over = self.rank == 0 and time.perf_counter() - started > self.spec["seconds"]
        agreed = self.torch.tensor([float(over)], device=device)
        self.reduce(agreed, largest=True)
        return bool(agreed.item())

    def run(self) -> None:
        device = self.begin()
        lines = self.trained(device) if self.spec["layers"] else self.summed(device)
        if self.rank == 0:
            print("\n".join(lines), flush=True)
        self.over = True
        self.store.set(f"ended/{self.rank}", "1")

    def identities(self) -> List[str]:
        return [self.store.get(f"who/{rank}").decode() for rank in range(self.world)]

    def trained(self, device: Any) -> List[str]:
        """Train until the time is over; return what rank 0 prints of it."""
        training = Training(self, device)
        for _ in range(WARM_UP):
            training.one_step()
        training.times = StepTimes()
        started, over = time.perf_counter(), False
        while not over:
            for _ in range(AGREE):
                training.one_step()
            over = self.over_for_all(device, started)
        self.store.set(f"times/{self.rank}", json.dumps(training.times.means()))
        self.reduce(self.torch.zeros(1, device=device))  # all have written
        if self.rank:
            return []
        ranks = [json.loads(self.store.get(f"times/{rank}")) for rank in range(self.world)]
        document = {"steps": training.times.steps, "gradient_bytes": training.gradient_bytes, "ranks": ranks}
        lines = [f"#  Rank {rank:>2} Group  0 {words}" for rank, words in enumerate(self.identities())]
        return [*lines, "# Training " + json.dumps(document)]

    def summed(self, device: Any) -> List[str]:
        """Sum as often as wanted; return what rank 0 prints of it."""
        buffer = self.torch.zeros(self.spec["bytes"] // FLOAT_BYTES, device=device)
        seconds, wrong = (self.long if self.spec["seconds"] else self.timed)(buffer)
        slowest = self.torch.tensor([seconds], device=device, dtype=self.torch.float64)
        self.reduce(slowest, largest=True)
        bad = self.torch.tensor([wrong], device=device, dtype=self.torch.int64)
        self.reduce(bad)
        return table(self.spec, self.identities(), float(slowest.item()), int(bad.item())) if self.rank == 0 else []


class StepTimes:
    """Seconds of a rank in all its steps: its own work, its wait for the other ranks with the sum itself."""

    def __init__(self) -> None:
        self.steps, self.own, self.wait = 0, 0.0, 0.0

    def add(self, begun: float, ready: float, summed: float, done: float) -> None:
        self.steps += 1
        self.own += (ready - begun) + (done - summed)
        self.wait += summed - ready

    def means(self) -> Dict[str, float]:
        """Return milliseconds a step. Means, since the group waits for each slow step of a rank."""
        return {"own_ms": self.own / self.steps * 1e3, "wait_ms": self.wait / self.steps * 1e3}


class Training:
    """A transformer under DistributedDataParallel, trained with random sequences.

    The gradients are summed in one bucket, after the last of them: what comes before is the rank's own work (forward,
    backward), which no other rank delays; what comes then is the wait for the slowest rank, and the sum.
    """

    def __init__(self, rank: Rank, device: Any) -> None:
        torch, spec = rank.torch, rank.spec
        self.rank, self.torch, self.device, self.times = rank, torch, device, StepTimes()
        torch.manual_seed(1 + rank.rank)  # other data on each rank; DDP gives all of them the model of rank 0
        width = spec["width"]
        layer = torch.nn.TransformerEncoderLayer(
            width, math.gcd(width, max(1, width // HEAD)), 4 * width, dropout=0.0, batch_first=True, device=device
        )
        model = torch.nn.TransformerEncoder(layer, spec["layers"], enable_nested_tensor=False)
        self.gradient_bytes = sum(one.numel() * one.element_size() for one in model.parameters())
        parallel = importlib.import_module("torch.nn.parallel").DistributedDataParallel
        bucket_mb = self.gradient_bytes / (1 << 20) + 1
        self.model = parallel(model, bucket_cap_mb=bucket_mb, gradient_as_bucket_view=True)
        self.sum_hook = importlib.import_module(
            "torch.distributed.algorithms.ddp_comm_hooks.default_hooks"
        ).allreduce_hook
        # PyTorch refuses hooks with other annotations than its own
        self.model.register_comm_hook(None, lambda state, bucket: self.sum(state, bucket))  # noqa: PLW0108
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.shape = (spec["batch"], spec["sequence"], width)
        self.ready: Any = None

    def sum(self, state: Any, bucket: Any) -> Any:
        """Begin the sum of a bucket of gradients, once the rank's own work for it is done."""
        self.ready = self.mark()
        return self.sum_hook(state, bucket)

    def mark(self) -> Any:
        """Return the time; on a GPU the moment when its stream comes so far."""
        if self.device.type == "cpu":
            return time.perf_counter()
        event = self.torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def one_step(self) -> None:
        """Do a step; ValueError where this rank's loss is no number."""
        self.rank.step += 1
        begun = self.mark()
        batch = self.torch.randn(self.shape, device=self.device)
        with self.torch.autocast(self.device.type, dtype=self.torch.bfloat16, enabled=self.device.type == "cuda"):
            loss = self.torch.nn.functional.mse_loss(self.model(batch).float(), batch.roll(1, dims=1))
        loss.backward()
        summed = self.mark()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.times.add(*self.seconds(begun, self.ready, summed, self.mark()))
        if not math.isfinite(loss.item()):
            raise ValueError(f"the loss is {loss.item()} in step {self.rank.step}")

    def seconds(self, *marks: Any) -> List[float]:
        if self.device.type == "cpu":
            return list(marks)
        self.torch.cuda.synchronize()
        return [marks[0].elapsed_time(one) / 1e3 for one in marks]


def table(spec: Spec, identities: List[str], seconds: float, wrong: int) -> List[str]:
    """Return the table of in-place sums as nccl-tests prints it; bandwidths as in its doc/PERFORMANCE.md."""
    size, world = spec["bytes"], spec["world"]
    rate = size / seconds / 1e9
    bus = rate * 2 * (world - 1) / world
    lines = [f"# torch.distributed, {spec['backend']}"]
    lines += [f"#  Rank {rank:>2} Group  0 {words}" for rank, words in enumerate(identities)]
    row = f"{size:>12} {size // FLOAT_BYTES:>13} {'float':>9} {'sum':>7} {-1:>7}"
    lines += [f"{row} {seconds * 1e6:>11.1f} {rate:>9.6f} {bus:>9.6f} {wrong:>6}"]
    lines += [f"# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}"]
    return [*lines, f"# Avg bus bandwidth    : {bus:.6f}"]


def main(spec: Spec) -> int:
    try:
        importlib.import_module("torch")
    except ImportError as error:
        sys.stderr.write(f"this Python has no PyTorch: {error}\n")
        return NO_TORCH
    if spec["role"] == "watch":
        return watch(spec)
    rank = Rank(spec)
    try:
        rank.run()
    except Exception as error:  # noqa: BLE001 — the reason is printed, whatever it is
        words = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        with contextlib.suppress(Exception):
            rank.store.set(f"failed/{rank.rank}", words)
        sys.stderr.write(f"rank {rank.rank}: {words}\n")
        time.sleep(SETTLE + SILENT)
        return FAILED
    return 0


if __name__ == "__main__":
    code = main(json.loads(sys.argv[1]))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)

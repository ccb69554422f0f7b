"""What a queued run costs, and what kill -9 of its worker does: the journal as a queue, DBOS Transact, Procrastinate.

    python -m benchmarks.queue_engines [--runs 100] [--steps 6] [--kills 5] [ENGINE…]

Each run has a few steps; each step appends one line to a file, which stands for an act. One worker empties the queue,
by default of `journal-sqlite`, `journal-postgresql`, `dbos-sqlite`, `dbos-postgresql` and `procrastinate`. DBOS and
Procrastinate are no dependencies of clusterctl: `pip install 'dbos~=3.4' 'procrastinate~=3.10' psycopg_pool` into a
virtual environment of its own. The PostgreSQL server is the tests' own, without fsync; SQLite syncs its file.

With --kills the worker is killed with SIGKILL that often, and started again: then the acts are counted. A step that
finds its own act in the file after a kill does not repeat it with the journal, as the product's steps do; the other
two engines call the step again, which is all that they promise.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from clusterctl.edges.clock import CLOCK
from clusterctl.edges.journal import Holder, SqlJournal, open_journal
from clusterctl.fleet.event import Kind, NewEvent, Stream
from clusterctl.fleet.node import NodeId
from clusterctl.fleet.payloads.runs import ProcessIdentity, RunBegun, RunEnded, RunFinished, RunOrdered
from clusterctl.ports import Claim
from tests.edges.journal.postgres import PostgresServer, running_server

ENGINES = ("journal-sqlite", "journal-postgresql", "dbos-sqlite", "dbos-postgresql", "procrastinate")
ME = ProcessIdentity(host="benchmark", pid=1, started="1")
HERTZ = os.sysconf("SC_CLK_TCK")


def act(folder: Path, run: str, step: int) -> None:
    """Append one line: the act."""
    with (folder / "acts").open("a") as acts:
        acts.write(f"{run} {step}\n")


def acts(folder: Path) -> Counter[str]:
    """How often each act was done."""
    file = folder / "acts"
    return Counter(file.read_text().splitlines() if file.exists() else ())


# --- the journal: a claim on the run, and its events; one event before and one after each act


def journal_order(url: str, runs: int) -> None:
    journal = open_journal(url, CLOCK)
    for number in range(runs):
        order = RunOrdered(operation="bootstrap", command="bootstrap", request={"steps": ["discover"]}, by=ME)
        journal.append([NewEvent(Stream.RUN, f"r{number:05d}", order)])
    journal.close()


def journal_work(url: str, folder: Path, steps: int) -> None:
    journal = open_journal(url, CLOCK, Holder(f"worker-{os.getpid()}"))
    for event in list(journal.latest(Stream.RUN, Kind.RUN_ORDERED)):
        run = event.subject
        if any(one.kind is Kind.RUN_ENDED for one in journal.history(Stream.RUN, run)):
            continue
        claim = journal.claim([NodeId(f"run {run}")], f"worker-{os.getpid()}").granted[NodeId(f"run {run}")]
        journal.append([NewEvent(Stream.RUN, run, RunBegun(process=ME))], claim=claim)
        _journal_steps(journal, claim, folder, steps)
        journal.append([NewEvent(Stream.RUN, run, RunEnded(exit_code=0))], claim=claim)
        journal.release([claim])
    journal.close()


def _journal_steps(journal: SqlJournal, claim: Claim, folder: Path, steps: int) -> None:
    """Intent, act, observation. A step whose act is in the world already only records it."""
    run = claim.node.removeprefix("run ")
    done = sum(event.kind is Kind.RUN_FINISHED for event in journal.history(Stream.RUN, run)) // 2
    for step in range(done, steps):
        journal.append([NewEvent(Stream.RUN, run, RunFinished())], claim=claim)
        if f"{run} {step}" not in acts(folder):
            act(folder, run, step)
        journal.append([NewEvent(Stream.RUN, run, RunFinished())], claim=claim)


# --- DBOS Transact: one workflow per run, each act a step


def _dbos(url: str, folder: Path) -> tuple[Any, Any]:
    from dbos import DBOS  # noqa: PLC0415 — installed only for this benchmark

    plain = url.replace("postgresql+psycopg", "postgresql")
    config = {
        "name": "benchmark", "system_database_url": plain, "executor_id": "one", "application_version": "1",
        "run_admin_server": False, "log_level": "ERROR",
    }  # fmt: skip
    DBOS(config=config)

    @DBOS.step()
    def step(run: str, number: int) -> None:
        act(folder, run, number)

    @DBOS.workflow()
    def workflow(run: str, steps: int) -> None:
        for number in range(steps):
            step(run, number)

    return DBOS, workflow


def dbos_order(url: str, folder: Path, runs: int, steps: int) -> None:
    from dbos import SetWorkflowID  # noqa: PLC0415 — likewise

    dbos, workflow = _dbos(url, folder)
    dbos.listen_queues(["other"])
    dbos.launch()
    dbos.register_queue("runs", worker_concurrency=1, polling_interval_sec=0.05)
    for number in range(runs):
        with SetWorkflowID(f"r{number:05d}"):
            dbos.enqueue_workflow("runs", workflow, f"r{number:05d}", steps)
    dbos.destroy()


def dbos_work(url: str, folder: Path) -> None:
    dbos, _ = _dbos(url, folder)
    dbos.launch()
    dbos.register_queue("runs", worker_concurrency=1, polling_interval_sec=0.05)
    while dbos.list_workflows(status=["ENQUEUED", "PENDING"], limit=1):
        time.sleep(0.2)
    dbos.destroy()


# --- Procrastinate: one job per run; it has no steps


def _procrastinate(url: str, folder: Path) -> tuple[Any, Any]:
    import procrastinate  # noqa: PLC0415 — likewise

    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url.replace("+psycopg", "")))

    @app.task(name="run")
    async def run_job(run: str, steps: int) -> None:
        for number in range(steps):
            act(folder, run, number)

    return app, run_job


async def procrastinate_order(url: str, folder: Path, runs: int, steps: int) -> None:
    app, run_job = _procrastinate(url, folder)
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        for number in range(runs):
            await run_job.defer_async(run=f"r{number:05d}", steps=steps)


async def procrastinate_work(url: str, folder: Path) -> None:
    app, _ = _procrastinate(url, folder)
    async with app.open_async():
        for job in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=0):
            await app.job_manager.retry_job(job)
        await app.run_worker_async(wait=False, concurrency=1, install_signal_handlers=False)


# --- the measurement


def order(engine: str, url: str, folder: Path, shape: argparse.Namespace) -> None:
    if engine.startswith("journal"):
        journal_order(url, shape.runs)
    elif engine.startswith("dbos"):
        dbos_order(url, folder, shape.runs, shape.steps)
    else:
        asyncio.run(procrastinate_order(url, folder, shape.runs, shape.steps))


def work(engine: str, url: str, folder: Path, shape: argparse.Namespace) -> None:
    if engine.startswith("journal"):
        journal_work(url, folder, shape.steps)
    elif engine.startswith("dbos"):
        dbos_work(url, folder)
    else:
        asyncio.run(procrastinate_work(url, folder))


def child(part: str, engine: str, url: str, folder: Path, shape: argparse.Namespace) -> subprocess.Popen[bytes]:
    size = ("--runs", str(shape.runs), "--steps", str(shape.steps))
    command = (sys.executable, "-m", "benchmarks.queue_engines", "--part", part, url, str(folder), engine, *size)
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)


def server_seconds(server: PostgresServer) -> float:
    """CPU seconds of the server and its children so far; those of ended sessions are the postmaster's."""
    root = int((server.data / "postmaster.pid").read_text().split()[0])
    total = 0.0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, rest = stat.read_text().rpartition(")")
            fields = rest.split()
            if root in (int(name.split()[0]), int(fields[1])):
                times = fields[11:15] if int(name.split()[0]) == root else fields[11:13]
                total += sum(map(int, times)) / HERTZ
    return total


def children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(engine: str, url: str, folder: Path, shape: argparse.Namespace, server: PostgresServer) -> str:
    child("order", engine, url, folder, shape).wait()
    began, used, served = time.perf_counter(), children_seconds(), server_seconds(server)
    killed = 0
    while True:
        worker = child("work", engine, url, folder, shape)
        try:
            worker.wait(timeout=random.uniform(1.5, 3.0) if killed < shape.kills else None)
            break
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.wait()
            killed += 1
    done = acts(folder)
    wanted = shape.runs * shape.steps
    repeated = sum(done.values()) - len(done)
    cpu, database = children_seconds() - used, server_seconds(server) - served
    per_step = 1000 / wanted
    return (
        f"{engine:<20} {time.perf_counter() - began:7.1f} s   worker {cpu * per_step:6.2f} + database"
        f" {database * per_step:5.2f} ms of CPU a step   killed {killed}   lost {wanted - len(done)}"
        f"   repeated {repeated}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engines", nargs="*", metavar="ENGINE", default=ENGINES)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--part", nargs=3, help=argparse.SUPPRESS)
    shape = parser.parse_args()
    if shape.part:
        part, url, folder = shape.part
        {"order": order, "work": work}[part](shape.engines[0], url, Path(folder), shape)
        return
    with running_server() as server:
        for engine in shape.engines:
            with tempfile.TemporaryDirectory() as folder:
                url = f"sqlite:///{folder}/queue.db" if engine.endswith("sqlite") else server.url()
                print(measured(engine, url, Path(folder), shape, server), flush=True)


if __name__ == "__main__":
    main()

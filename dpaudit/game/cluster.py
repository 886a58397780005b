"""The engine for more than one machine: at most one batch at a time for each worker of a cluster.

A worker's death counts only against the batch that it ran. Every request is addressed to one
worker: the scheduler neither moves nor repeats it. `Host` is the worker's side: it passes requests
to a separate process, which trains. The worker itself stays in touch with the scheduler, whatever a
generator does, and ends requests that are late or no longer wanted.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, NamedTuple

from distributed import CancelledError, Client, Future, KilledWorker, get_worker

from dpaudit.errors import ClusterError, DpauditError
from dpaudit.files import io_reason, parse_json
from dpaudit.formatting import error_line
from dpaudit.game import worker
from dpaudit.game.flight import Batch, BatchLoss, Landing, Stopwatch, TimeLimit
from dpaudit.game.pool import START_SECONDS, TICK_SECONDS, Pool, Report
from dpaudit.game.store import PRIVATE_FILE
from dpaudit.game.trial import Payload
from dpaudit.game.worker import (
    Greeting,
    PayloadFile,
    greet,
    greeting_of,
    pack,
    search_path,
    write_payload,
)

IDLE_SECONDS = 60
"""Time without a request after which process and payload are dropped."""
MOST_PRINTED = 2**16
"""Bytes of a generator's output that are passed on for each batch: the last ones."""


class Request(NamedTuple):
    """A request to a worker of a cluster.

    Attributes:
        key: Name of the task; once the scheduler has dropped it, the answer is no longer needed.
        payload: Name of the payload; a request with another name starts a new process.
        search_path: Where the coordinator imports modules from.
        function: Called with the payload's file and the arguments.
        arguments: Its arguments.
        seconds: Time limit; None for no limit.
    """

    key: str
    payload: str
    search_path: tuple[str, ...]
    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    seconds: float | None = None


class Host:
    """The process that runs trials for a worker of a cluster, and its copy of the payload.

    Both are dropped after `IDLE_SECONDS` without a request.
    """

    def __init__(self) -> None:
        """Starts nothing yet."""
        self._lock = threading.Lock()
        self._pool: Pool | None = None
        self._payload: PayloadFile | None = None
        self._name = ""
        self._open = ExitStack()
        self._timer: threading.Timer | None = None

    def serve(self, request: Request, blob: bytes, *, wanted: Callable[[], bool]) -> Report:
        """Serves a request.

        Args:
            request: The request.
            blob: The payload.
            wanted: Whether the answer is still wanted.

        Returns:
            The report.

        Raises:
            OSError: If this machine has no room for the payload or another process.
        """
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            try:
                file = self._payload_file(request, blob)
                report = self._answer(request, file, wanted)
                if report.loss is not None:
                    self._end_process()
                return report._replace(printed=_take_output(Path(file.log)))
            finally:
                self._timer = threading.Timer(IDLE_SECONDS, self.retire)
                self._timer.daemon = True
                self._timer.start()

    def _answer(self, request: Request, file: PayloadFile, wanted: Callable[[], bool]) -> Report:
        """Runs a request in the process; stops waiting once the answer is not wanted."""
        if self._pool is None:
            self._pool = Pool()
        process = self._pool.least_busy(1)
        process.ask(request.function, file, *request.arguments)
        while (report := process.poll(request.seconds)) is None:
            if not (process.connection.poll(TICK_SECONDS) or wanted()):
                return Report(loss=BatchLoss.STOPPED)
        return report

    def retire(self) -> None:
        """Ends the process and drops the payload."""
        with self._lock:
            self._end_process()
            self._drop_payload()

    def _payload_file(self, request: Request, blob: bytes) -> PayloadFile:
        """The payload on this machine, in a folder that this worker's end removes."""
        if self._payload is None or self._name != request.payload:
            self._end_process()  # it writes to the log of the previous payload
            self._drop_payload()
            place = tempfile.mkdtemp(prefix="dpaudit-", dir=get_worker().local_directory)
            self._open.callback(shutil.rmtree, place, ignore_errors=True)
            folder = Path(place)
            self._payload = self._open.enter_context(
                write_payload(
                    blob, folder, log=folder / "printed.log", search_path=request.search_path
                )
            )
            self._name = request.payload
        return self._payload

    def _end_process(self) -> None:
        if self._pool is not None:
            self._pool.end_all()
            self._pool = None

    def _drop_payload(self) -> None:
        self._payload = None
        self._open.close()


def serve(request: Request, blob: bytes) -> Report:
    """Serves one request in this worker of a cluster, as its task.

    It raises nothing: the worker would write its arguments, and so the table, into its log.

    Args:
        request: The request.
        blob: The payload.

    Returns:
        The report.
    """
    tasks = get_worker().state.tasks

    def wanted() -> bool:
        task = tasks.get(request.key)
        return task is not None and task.state not in ("cancelled", "released", "forgotten")

    try:
        return _host.serve(request, blob, wanted=wanted)
    except OSError as error:
        return Report(ClusterError(f"a worker cannot run trials: {error_line(error)}"))


def _take_output(log: Path) -> bytes:
    """Returns the printed output, and empties its file."""
    with suppress(OSError), log.open("r+b") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(0, end - MOST_PRINTED))
        output = file.read()
        file.truncate(0)
        return output
    return b""


_host = Host()
"""The host of this process."""

atexit.register(_host.retire)


LOOK_SECONDS = 2.0
"""Interval at which the coordinator checks for workers."""
FETCH_SECONDS = 60.0
"""Time limit for an outcome to travel from its worker to the coordinator."""
MOST_DROPPED = 10
"""Requests in a row that the scheduler may drop while their workers are alive."""
_TICKETS = count()
"""Numbers the requests."""


@dataclass
class ClusterEngine:
    """The workers of a cluster.

    Attributes:
        cluster: The connection.
        fit: Workers known to run trials exactly as this process would: payload, address and folder.
        refused: Why other workers are not used, by their folder.
        started: Whether any trial may have begun.
        generation: How often the workers' processes were renewed.
    """

    cluster: Cluster
    fit: set[tuple[str, str, str]] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)
    started: bool = False
    generation: int = 0

    @property
    def workers(self) -> int:
        """The number of workers now, at least 1."""
        return max(1, len(self.cluster.places()))

    @contextmanager
    def flight(
        self, payload: Payload, *, folder: Path, log: Path, limit: TimeLimit
    ) -> Iterator[ClusterFlight]:
        """As `Engine.flight`; what workers print is added to the log.

        Raises:
            ClusterError: If a worker is unfit and no trial has begun.
        """
        del folder
        flight = ClusterFlight(self, pack(payload), greeting_of(payload), log=log, limit=limit)
        try:
            flight.begin()
            self.started = True
            yield flight
        finally:
            self.stop()

    def renewed(self, trials: int) -> ClusterEngine:
        """As `Engine.renewed`."""
        del trials
        self.generation += 1
        return self

    def stop(self) -> None:
        """Drops what is in flight; workers notice within a second."""
        self.cluster.stop()


class _SentRequest(NamedTuple):
    """A request in flight: a batch, or a greeting, whose batch is empty."""

    batch: Batch
    place: Place
    ticket: int


class ClusterFlight:
    """Batches handed to the workers of a cluster, at most one to each."""

    def __init__(
        self, engine: ClusterEngine, blob: bytes, greeting: Greeting, *, log: Path, limit: TimeLimit
    ) -> None:
        self._engine = engine
        self._cluster = engine.cluster
        self._blob = blob
        self._digest = hashlib.sha256(blob).hexdigest()
        self._greeting = greeting
        self._log = log
        self._limit = limit
        self._search_path = search_path()
        self._requests: dict[Future, _SentRequest] = {}
        self._ended: SimpleQueue[Future] = SimpleQueue()
        self._watch = Stopwatch(longest_step=2 * TICK_SECONDS)
        self._places: dict[str, Place] = {}
        self._checked_at = -LOOK_SECONDS
        self._dropped = 0

    def __len__(self) -> int:
        """The number of batches in flight."""
        return sum(bool(sent.batch) for sent in self._requests.values())

    def begin(self) -> None:
        """Waits until all workers have answered their greeting.

        Raises:
            ClusterError: If a worker is unfit and no trial has begun.
        """
        self._check_workers()
        while self._requests:
            self.collect()

    def takes(self, *, suspect: bool) -> bool:
        """Whether a worker is free. It runs nothing else meanwhile, as suspects require."""
        del suspect
        return bool(self._free())

    def submit(self, batch: Batch, *, suspect: bool) -> None:
        """Hands a batch to a free worker."""
        del suspect
        self._send(self._free()[0], worker.work, batch)

    def collect(self) -> list[Landing]:
        """Waits a moment for a batch to end, and regularly checks for workers.

        Raises:
            ClusterError: If a worker itself fails, no worker appears in time, or the scheduler is
                gone.
            DpauditError: What an attack raises on a valid table.
        """
        landed = []
        with suppress(Empty):
            future = self._ended.get(timeout=TICK_SECONDS)
            if future in self._requests:  # else its batch was given up
                landed += self._handle_ended(future)
        self._watch.advance()
        if self._watch.idle > START_SECONDS:
            reason = "; ".join(self._engine.refused.values()) or "there is none"
            raise ClusterError(
                f"no worker of the scheduler at {self._cluster.address} takes trials: {reason}; "
                "start some, then run the same command again"
            )
        if monotonic() - self._checked_at >= LOOK_SECONDS:
            landed += self._check_workers()
        return landed

    def _free(self) -> list[Place]:
        """Workers that are fit, ready and idle."""
        busy = {sent.place.address for sent in self._requests.values()}
        return [
            place
            for place in self._places.values()
            if place.ready and self._key_of(place) in self._engine.fit and place.address not in busy
        ]

    def _key_of(self, place: Place) -> tuple[str, str, str]:
        """The entry of a worker in `ClusterEngine.fit`."""
        return self._digest, place.address, place.folder

    def _send(self, place: Place, function: Callable[..., Any], batch: Batch = ()) -> None:
        """Sends a request to a worker: a batch, or without one a greeting."""
        ticket = next(_TICKETS)
        request = Request(
            key=f"dpaudit-{os.getpid()}-{self._digest[:16]}-{ticket}",
            payload=f"{self._digest}-{self._engine.generation}",
            search_path=self._search_path,
            function=function,
            arguments=(batch,) if batch else (),
            seconds=self._limit.of(batch) if batch else START_SECONDS,
        )
        blob = self._cluster.payload(self._blob, self._digest)
        future = self._cluster.submit(place, request, blob)
        self._requests[future] = _SentRequest(batch, place, ticket)
        self._watch.begin(ticket)
        future.add_done_callback(self._ended.put)

    def _forget(self, future: Future) -> _SentRequest:
        """Removes a request that has ended or is given up."""
        sent = self._requests.pop(future)
        self._watch.end(sent.ticket)
        self._cluster.drop(future)
        return sent

    def _handle_ended(self, future: Future) -> list[Landing]:
        """Handles a request that has ended, and returns how its batch ended, if it had one."""
        report = self._report(future)
        _, place, _ = sent = self._forget(future)
        if report is None:
            landed = self._check_workers()
            current = self._places.get(place.address)
            loss = (
                BatchLoss.STOPPED if current and current.folder == place.folder else BatchLoss.DIED
            )
            if loss is BatchLoss.STOPPED:
                self._count_dropped()
            return landed + ([Landing(sent.batch, loss=loss)] if sent.batch else [])
        self._add_to_log(report.printed)
        if isinstance(report.answer, Greeting):
            difference = self._greeting.difference(report.answer)
            if difference:
                self._refuse(place, f"has {difference}: install there what is installed here")
            else:
                self._engine.fit.add(self._key_of(place))
        elif isinstance(report.answer, ClusterError):
            raise ClusterError(f"{place.address}: {report.answer}; then run the same command again")
        elif isinstance(report.answer, DpauditError):
            raise report.answer
        elif not sent.batch:
            self._refuse(place, "ends while it loads what is audited: see its log")
        else:
            self._dropped = 0
            outcomes = () if report.loss else tuple(report.answer)
            return [Landing(sent.batch, outcomes, report.loss)]
        return []

    def _report(self, future: Future) -> Report | None:
        """The report of a worker; None if the scheduler dropped the request or lost the answer.

        Raises:
            ClusterError: If the worker cannot even read the request.
        """
        place = self._requests[future].place
        try:
            report: Report = future.result(timeout=FETCH_SECONDS)
        except (CancelledError, TimeoutError, KilledWorker):
            return None
        except Exception as error:  # noqa: BLE001 - whatever its modules raise
            raise ClusterError(
                f"the worker {place.address} cannot run dpaudit: {error_line(error)}; install "
                "there what is installed here"
            ) from None
        return report

    def _refuse(self, place: Place, reason: str) -> None:
        """Excludes a worker, for a reason that completes "the worker ... ".

        Raises:
            ClusterError: If no trial has begun.
        """
        line = f"the worker {place.address} {reason}"
        if not self._engine.started:
            raise ClusterError(line)
        self._engine.refused[place.folder] = line
        self._add_to_log(f"{line}; the run goes on without it\n".encode())

    def _count_dropped(self) -> None:
        """Counts requests that the scheduler dropped while their worker lives; resends the payload.

        Raises:
            ClusterError: If too many are dropped in a row.
        """
        self._cluster.forget_payload()
        self._dropped += 1
        if self._dropped > MOST_DROPPED:
            raise ClusterError(
                f"the scheduler at {self._cluster.address} drops what it is asked for: see its "
                "log, then run the same command again"
            )

    def _check_workers(self) -> list[Landing]:
        """Checks which workers there are: greets new ones, gives up the batches of lost ones."""
        self._checked_at = monotonic()
        self._places = self._cluster.places()
        landed = []
        for future, (batch, place, ticket) in list(self._requests.items()):
            current = self._places.get(place.address)
            limit = self._limit.of(batch) + START_SECONDS
            if current is None or current.folder != place.folder:
                loss = BatchLoss.DIED
            elif self._watch.seconds[ticket] > limit:  # its own worker should have stopped it
                loss = BatchLoss.LATE
            else:
                continue
            self._forget(future)
            landed += [Landing(batch, loss=loss)] if batch else []
        busy = {sent.place.address for sent in self._requests.values()}
        for place in self._places.values():
            if place.folder in self._engine.refused or place.address in busy:
                continue
            if place.threads != 1:
                self._refuse(
                    place,
                    f"has {place.threads} threads, and a trial takes one: start workers with "
                    "`--nthreads 1`, one for each core",
                )
            elif self._key_of(place) not in self._engine.fit:
                self._send(place, greet)
        return landed

    def _add_to_log(self, text: bytes) -> None:
        """Appends to the log of the run folder."""
        if text:
            log = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE_FILE)
            with os.fdopen(log, "wb") as file:
                file.write(text)


@contextmanager
def cluster_engine(address: str) -> Iterator[ClusterEngine]:
    """Connects to a cluster, and leaves it at the end.

    Args:
        address: Address of its scheduler, or the JSON file that the scheduler writes.

    Yields:
        The engine.

    Raises:
        ClusterError: If no scheduler answers, or it has no workers.
    """
    cluster = Cluster(address)
    try:
        yield ClusterEngine(cluster)
    finally:
        cluster.close()


CONNECT_SECONDS = 10.0
"""Time limit for a scheduler to answer."""
FIRST_WORKER_SECONDS = 30.0
"""Time limit for its first worker to appear."""


class Place(NamedTuple):
    """One worker of a cluster; a restart at the same address is a different worker.

    Attributes:
        address: Its address at the scheduler.
        folder: Its own working folder.
        threads: Number of threads that run its tasks.
        ready: Whether it takes tasks; not while its memory is full or it is leaving.
    """

    address: str
    folder: str
    threads: int
    ready: bool


class _Client(Client):  # type: ignore[misc]  # distributed has no types
    """A client that closes itself if it cannot connect.

    Otherwise it would be closed when garbage is collected, which deadlocks while another client
    starts: both take `LoopRunner._lock`.
    """

    def __init__(self, address: str) -> None:
        try:
            super().__init__(address, timeout=CONNECT_SECONDS, set_as_default=False, name="dpaudit")
        except BaseException:
            self.close()
            raise


class Cluster:
    """The workers of a dask scheduler.

    Attributes:
        address: Address of the scheduler.
        client: The connection.
    """

    def __init__(self, address: str) -> None:
        """Connects.

        Args:
            address: Address of the scheduler, or the JSON file that it writes.

        Raises:
            ClusterError: If no scheduler answers, or it has no workers.
        """
        self.address = _address_in(address) if address.endswith(".json") else address
        try:
            self.client = _Client(self.address)
        except (OSError, ValueError, TypeError) as error:
            raise ClusterError(
                f"no dask scheduler answers at {self.address}: {error_line(error)}; start one with "
                "`dask scheduler`, and give the address that it prints"
            ) from None
        self._requests: set[Future] = set()
        self._scattered: tuple[str, Future] | None = None
        try:
            with suppress(TimeoutError):
                self.client.wait_for_workers(1, timeout=FIRST_WORKER_SECONDS)
            if not self.places():
                raise ClusterError(
                    f"the scheduler at {self.address} has no workers: start some with "
                    f"`dask worker {self.address} --nthreads 1`"
                )
        except BaseException:
            self.close()
            raise

    def places(self) -> dict[str, Place]:
        """The current workers, by address.

        Raises:
            ClusterError: If the scheduler is gone.
        """
        if self.client.status not in ("running", "connecting"):
            raise ClusterError(
                f"the scheduler at {self.address} is gone: start it again with its workers, then "
                "run the same command again"
            )
        return {
            address: Place(
                address,
                folder=str(info["local_directory"]),
                threads=int(info["nthreads"]),
                ready=info.get("status", "running") == "running",
            )
            for address, info in self.client.scheduler_info(n_workers=-1)["workers"].items()
        }

    def stop(self) -> None:
        """Drops what is in flight; workers notice within a second."""
        sent, self._requests = list(self._requests), set()
        if sent:
            with suppress(OSError, TimeoutError):
                self.client.cancel(sent, force=True)

    def close(self) -> None:
        """Leaves the cluster; its workers forget the payload."""
        self._scattered = None
        with suppress(OSError, TimeoutError):
            self.client.close()

    def payload(self, blob: bytes, digest: str) -> Future:
        """The payload on the workers; sends it to all of them unless they have it.

        Raises:
            ClusterError: If it cannot be sent.
        """
        if self._scattered is None or self._scattered[0] != digest:
            self._scattered = None  # frees the previous payload first
            try:
                future = self.client.scatter(
                    blob, broadcast=True, hash=False, timeout=CONNECT_SECONDS
                )
            except (OSError, TimeoutError) as error:
                raise ClusterError(
                    f"the table cannot be sent to the workers of {self.address}: "
                    f"{error_line(error)}; run the same command again"
                ) from None
            self._scattered = (digest, future)
        return self._scattered[1]

    def forget_payload(self) -> None:
        """Makes the next request send the payload again, because its copies may be lost."""
        self._scattered = None

    def submit(self, place: Place, request: Request, blob: Future) -> Future:
        """Hands a request to one worker, and to no other."""
        future = self.client.submit(
            serve,
            request,
            blob,
            key=request.key,
            workers=[place.address],
            allow_other_workers=False,
            retries=0,
            pure=False,
        )
        self._requests.add(future)
        return future

    def drop(self, future: Future) -> None:
        """Makes the scheduler forget a finished or cancelled request."""
        self._requests.discard(future)
        if not future.done():
            self.client.cancel([future], force=True)


def _address_in(file: str) -> str:
    """The address in the file that a scheduler writes.

    Raises:
        ClusterError: If the file cannot be read or has no address.
    """
    try:
        return str(parse_json(Path(file).read_text(encoding="utf-8"))["address"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        reason = io_reason(error) if isinstance(error, OSError) else error_line(error)
        raise ClusterError(
            f"no dask scheduler can be found by {file}: {reason}; give the file that "
            "`dask scheduler --scheduler-file` writes, once it runs"
        ) from None

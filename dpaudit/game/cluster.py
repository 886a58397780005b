"""The connection to a dask cluster: which workers there are, and what they are asked for.

Every request goes to one worker by its address: the scheduler neither moves nor repeats it. What a
worker does with it is in `host`.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from distributed import Client, Future

from dpaudit.errors import ClusterError
from dpaudit.files import io_reason, parse_json
from dpaudit.formatting import error_line
from dpaudit.game.host import Request, serve

CONNECT_SECONDS = 10.0
"""How long a scheduler may take to answer."""
FIRST_WORKER_SECONDS = 30.0
"""How long its first worker may take to be there."""


class Place(NamedTuple):
    """One worker of a cluster; one that is started again at its address is another.

    Attributes:
        address: Where the scheduler knows it.
        folder: Its own working folder.
        threads: How many threads run its tasks.
        ready: Whether it takes tasks; not while its memory is full, or it is leaving.
    """

    address: str
    folder: str
    threads: int
    ready: bool


class Cluster:
    """The workers of a dask scheduler.

    Attributes:
        address: Of the scheduler.
        client: The connection.
    """

    def __init__(self, address: str) -> None:
        """Connects.

        Args:
            address: Of the scheduler, or the JSON file that it writes.

        Raises:
            ClusterError: If no scheduler answers, or it has no workers.
        """
        self.address = _address_in(address) if address.endswith(".json") else address
        try:
            self.client = Client(
                self.address, timeout=CONNECT_SECONDS, set_as_default=False, name="dpaudit"
            )
        except (OSError, ValueError, TypeError) as error:
            raise ClusterError(
                f"no dask scheduler answers at {self.address}: {error_line(error)}; start one with "
                "`dask scheduler`, and give the address that it prints"
            ) from None
        self._sent: set[Future] = set()
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
        """The workers that there are now, by address.

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
                folder=str(one["local_directory"]),
                threads=int(one["nthreads"]),
                ready=one.get("status", "running") == "running",
            )
            for address, one in self.client.scheduler_info(n_workers=-1)["workers"].items()
        }

    def stop(self) -> None:
        """Drops what is in flight; workers notice within a second."""
        sent, self._sent = list(self._sent), set()
        if sent:
            with suppress(OSError, TimeoutError):
                self.client.cancel(sent, force=True)

    def close(self) -> None:
        """Leaves the cluster; its workers forget the payload."""
        self._scattered = None
        with suppress(OSError, TimeoutError):
            self.client.close()

    def payload(self, blob: bytes, digest: str) -> Future:
        """The payload as the workers hold it, sent to all of them unless they have it.

        Raises:
            ClusterError: If it cannot be sent.
        """
        if self._scattered is None or self._scattered[0] != digest:
            self._scattered = None  # the one before is dropped first
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
        """Has the payload sent again: its copies may be lost."""
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
        self._sent.add(future)
        return future

    def drop(self, future: Future) -> None:
        """Has the scheduler forget a request that is over, or must be."""
        self._sent.discard(future)
        if not future.done():
            self.client.cancel([future], force=True)


def _address_in(file: str) -> str:
    """The address in the file that a scheduler writes.

    Raises:
        ClusterError: If there is none.
    """
    try:
        return str(parse_json(Path(file).read_text(encoding="utf-8"))["address"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        reason = io_reason(error) if isinstance(error, OSError) else error_line(error)
        raise ClusterError(
            f"no dask scheduler can be found by {file}: {reason}; give the file that "
            "`dask scheduler --scheduler-file` writes, once it runs"
        ) from None

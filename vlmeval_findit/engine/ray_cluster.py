"""A Ray cluster, and the replicas of a model in it.

The machines of a cluster need this package and the images at the same paths. A local Ray listens on
the loopback address only.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
import socket
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache
from logging.handlers import BufferingHandler
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..core import FILES_VARIABLE, error_line, loaded_files, named_files, quoted_line, sha256_of
from ..protocol import Batch
from .backend import CallOptions, Loader
from .local_backend import PartAnswered, answers_in_turn

log = logging.getLogger(__name__)

_RESTARTS = 20  # per replica: more than one item causes
_TOGETHER = 0.25  # seconds of answers per message, as each costs the driver 0.4 ms

# Variables that replicas do not get: the object store is readable by everyone on the cluster.
_SECRET = re.compile("KEY|TOKEN|HEADERS|SECRET|PASS")

_HOST_AND_PORT = re.compile(r"(ray://)?\[?(?P<host>[^/\[\]]+)\]?:(?P<port>[0-9]{1,6})")
_MOST_PORT = 65535
_CONNECT = 10.0  # seconds

# What a client of HTTP/2 says first, and the head of a server's answer: Ray's servers speak gRPC.
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5)
_FRAME_HEAD = 9
_SETTINGS = 4

# At 0 Ray listens on 127.0.0.1 only.
LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"


@contextmanager
def cluster(ray: Any) -> Iterator[None]:
    """Use the cluster of an earlier ``ray.init`` or of RAY_ADDRESS, else start a local Ray.

    Raises:
        ValueError: there is none, and none starts.
    """
    if ray.is_initialized():
        yield
        return
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    with ExitStack() as undo:
        address = os.environ.get("RAY_ADDRESS", "")
        if address:
            _refuse_unreachable(address)
        else:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            # Ray's sockets are in this folder, and socket paths must be short.
            folder = TemporaryDirectory(prefix="findit-ray-", ignore_cleanup_errors=True)
            quiet |= {"address": "local", "_temp_dir": undo.enter_context(folder)}
            quiet["include_dashboard"] = False
            # Workers read it from the environment.
            constants = ray._private.ray_constants
            undo.callback(setattr, constants, "ENABLE_RAY_CLUSTER", constants.ENABLE_RAY_CLUSTER)
            constants.ENABLE_RAY_CLUSTER = False
            if LOOPBACK not in os.environ:
                os.environ[LOOPBACK] = "0"
                undo.callback(os.environ.pop, LOOPBACK)
        undo.callback(ray.shutdown)
        handler = signal.getsignal(signal.SIGTERM)
        try:
            ray.init(**quiet)
        except Exception as error:  # it raises all kinds
            raise ValueError(_no_cluster(address, error)) from error
        finally:
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGTERM, handler)  # Ray's handler ends the process at once
        yield


def _refuse_unreachable(address: str) -> None:
    """Raise ValueError if nothing, or no Ray, listens at a cluster's address: Ray waits for
    minutes."""
    named = _HOST_AND_PORT.fullmatch(address)
    if named is None or int(named["port"]) > _MOST_PORT:
        return  # Ray says what is wrong, or looks for the cluster itself
    try:
        with socket.create_connection((named["host"], int(named["port"])), _CONNECT) as server:
            if os.environ.get("RAY_USE_TLS", "0") == "0":
                _refuse_other_servers(server)
    except OSError as error:
        raise ValueError(_no_cluster(address, error)) from error


def _refuse_other_servers(server: socket.socket) -> None:
    """Raise OSError unless a server begins as those of gRPC do."""
    server.sendall(_HELLO)
    with server.makefile("rb") as replies:
        head = replies.read(_FRAME_HEAD)
    if len(head) < _FRAME_HEAD or head[3] != _SETTINGS:
        raise ConnectionError("the server there is none of Ray's")


def _no_cluster(address: str, error: Exception) -> str:
    why = error_line(error)
    if address:
        return (
            f"RAY_ADDRESS={address}: no Ray cluster is reached ({why}). Type ray status on one of "
            "its machines, or unset RAY_ADDRESS to start Ray on this one"
        )
    return (
        f"Ray does not start on this machine ({why}). Type ray stop if an old one is left, or "
        "leave out --executor ray"
    )


def _needs(inference: CallOptions) -> dict[str, float]:
    """Return what a replica needs of a cluster."""
    resources = {"CPU": inference.cpus, "GPU": inference.gpus}
    return {kind: need for kind, need in resources.items() if need}


def room_for(ray: Any, inference: CallOptions) -> float:
    """Return how many replicas the machines of a cluster could run if nothing else did."""
    resources = ray.cluster_resources()
    needs = _needs(inference)
    return min((resources.get(kind, 0) / need for kind, need in needs.items()), default=1)


@contextmanager
def replicas(ray: Any, load: Loader, inference: CallOptions) -> Iterator[list[Any]]:
    """Yield a model's actors, as many as requested or fit; ValueError if GPUs would be idle."""
    from ray.util.placement_group import placement_group, remove_placement_group
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    if not inference.gpus and (gpus := ray.cluster_resources().get("GPU", 0)):
        raise ValueError(
            f"--gpus 0: replicas would run on CPUs, but the cluster has {gpus:g} GPUs. "
            "Type --gpus 1, or start Ray with --num-gpus 0"
        )
    needs = _needs(inference)
    room = room_for(ray, inference)
    if room < 1:
        log.warning("a replica needs %s: none starts until the cluster has them", needs)
    for module in loaded_files():
        # Workers could not import a plug-in's classes.
        ray.cloudpickle.register_pickle_by_value(module)
    names = (name for name in os.environ if name.startswith("FINDIT_") or name == "LMUData")
    environment = {name: os.environ[name] for name in names if not _SECRET.search(name)}
    environment[FILES_VARIABLE] = os.pathsep.join(named_files())
    options = {"num_cpus": inference.cpus, "num_gpus": inference.gpus, "max_restarts": _RESTARTS}
    remote = ray.remote(Replica)
    where = "SPREAD"
    with ExitStack() as undo:
        handles = []
        for _ in range(inference.replicas or max(1, int(room))):
            if inference.gpus > 1:
                # One machine, shared with what an actor starts for tensor parallelism.
                group = placement_group([needs], strategy="STRICT_PACK")
                undo.callback(remove_placement_group, group)
                where = PlacementGroupSchedulingStrategy(group, 0, True)
            handle = remote.options(**options, scheduling_strategy=where).remote(load, environment)
            undo.callback(ray.kill, handle)
            handles.append(handle)
        yield handles


@cache
def code_sha256() -> str:
    """Hash this package's code, which must be the same on all machines."""
    folder = Path(__file__).parent.parent
    paths = sorted(folder.rglob("*.py"))
    return sha256_of(*(b"%s\0%s\0" % (bytes(p.relative_to(folder)), p.read_bytes()) for p in paths))


class Replica:
    """Runs on the other machines: an async actor with the model in one thread."""

    def __init__(self, load: Loader, environment: Mapping[str, str]) -> None:
        os.environ.update(environment)
        self._model = cache(load)
        self._stopped = False
        # CUDA's current device and torch's grad mode belong to a thread.
        self._thread = ThreadPoolExecutor(1)
        self._logged = BufferingHandler(1000)
        self._logged.setLevel(logging.WARNING)
        logging.getLogger().addHandler(self._logged)

    async def ready(self, code: str) -> str:
        """Load the model and return the host name; ValueError if the driver's package differs."""
        machine = socket.gethostname()
        if code != code_sha256():
            raise ValueError(
                f"{machine} has another version of this package: install the same one on all "
                "machines of the cluster"
            )
        await asyncio.get_running_loop().run_in_executor(self._thread, self._model)
        return machine

    async def ask(
        self, batch: Batch
    ) -> AsyncIterator[tuple[list[PartAnswered], list[tuple[int, str]]]]:
        """Yield parts with their answers, fewer if stopped, and log messages (level, text)."""
        answers: list[PartAnswered] = []

        def run() -> None:
            for some in answers_in_turn(self._model(), batch, lambda: self._stopped):
                answers.append(some)

        running = asyncio.get_running_loop().run_in_executor(self._thread, run)
        sent = 0
        while not running.done() or sent < len(answers):
            await asyncio.wait([running], timeout=_TOGETHER)
            if together := answers[sent:]:
                sent += len(together)
                records = self._logged.buffer
                self._logged.buffer = []
                yield together, [(r.levelno, quoted_line(r.getMessage(), 2000)) for r in records]
        await running

    async def stop(self) -> None:
        self._stopped = True

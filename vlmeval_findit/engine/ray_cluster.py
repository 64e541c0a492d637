"""Ray as we use it: a cluster that is there, or one on this machine that listens to nobody else;
and the actors of a model on it.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from ..core.extras import install
from ..core.plugins import FILES_VARIABLE, loaded_files, named_files
from .backend import Loader
from .config import Inference
from .ray_replica import SETTINGS, Replica

log = logging.getLogger(__name__)


def import_ray() -> Any:
    """Ray's module.

    Raises:
        ValueError: it is not installed.
    """
    try:
        import ray
    except ImportError:
        raise ValueError(f"Ray is not installed: {install('cluster')}") from None
    return ray


@contextmanager
def cluster(ray: Any) -> Iterator[None]:
    """The cluster that RAY_ADDRESS or an earlier ``ray start`` names, else a local Ray."""
    if ray.is_initialized():
        yield
        return
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    with ExitStack() as undo:
        if not os.environ.get("RAY_ADDRESS"):
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            # Its sockets lie in this folder, and a socket's path must be short.
            folder = tempfile.mkdtemp(prefix="findit-ray-")
            undo.callback(shutil.rmtree, folder, ignore_errors=True)
            undo.enter_context(_on_loopback(ray))
            quiet |= {"address": "local", "include_dashboard": False, "_temp_dir": folder}
        undo.callback(ray.shutdown)
        with _sigterm_kept():
            ray.init(**quiet)
        yield


@contextmanager
def replicas(ray: Any, load: Loader, inference: Inference) -> Iterator[list[Any]]:
    """The actors of a model, as many as are wanted or fit; they are gone in the end.

    Raises:
        ValueError: the cluster has GPUs, and they would not be used.
    """
    there = ray.cluster_resources()
    needs = {"CPU": inference.cpus, "GPU": inference.gpus}
    if not inference.gpus and (gpus := there.get("GPU", 0)):
        raise ValueError(
            f"--gpus 0: each replica would run on processors, and the cluster has {gpus:g} GPUs. "
            "Type --gpus 1, or start Ray with --num-gpus 0"
        )
    room = min((there.get(kind, 0) / need for kind, need in needs.items() if need), default=1)
    if room < 1:
        log.warning("a replica needs %s; until the cluster has them, none starts", needs)
    for module in loaded_files():
        # No worker could import what a question of theirs is an instance of.
        ray.cloudpickle.register_pickle_by_value(module)
    environment = {name: os.environ[name] for name in SETTINGS if name in os.environ}
    environment[FILES_VARIABLE] = os.pathsep.join(named_files())
    remote = ray.remote(Replica)
    how: dict[str, Any] = {"num_cpus": inference.cpus, "num_gpus": inference.gpus}
    how |= {"max_restarts": -1, "max_concurrency": 3, "scheduling_strategy": "SPREAD"}
    with ExitStack() as undo:
        handles = []
        for _ in range(inference.replicas or max(1, int(room))):
            if inference.gpus > 1:
                how["scheduling_strategy"] = _one_machine(needs, undo)
            handle = remote.options(**how).remote(load, environment)
            undo.callback(ray.kill, handle)
            handles.append(handle)
        yield handles


def _one_machine(needs: Mapping[str, float], undo: ExitStack) -> Any:
    """Room on one machine, which whatever an actor starts for tensor parallelism shares with it."""
    from ray.util.placement_group import placement_group, remove_placement_group
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    group = placement_group([{k: n for k, n in needs.items() if n}], strategy="STRICT_PACK")
    undo.callback(remove_placement_group, group)
    return PlacementGroupSchedulingStrategy(group, 0, placement_group_capture_child_tasks=True)


@contextmanager
def _on_loopback(ray: Any) -> Iterator[None]:
    """Have a Ray that is started in it listen on 127.0.0.1 only.

    Ray has a switch for it, meant for systems whose firewalls would ask; the workers have it from
    the environment.
    """
    name, constants = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", ray._private.ray_constants
    before = os.environ.get(name), constants.ENABLE_RAY_CLUSTER
    os.environ[name], constants.ENABLE_RAY_CLUSTER = "0", False
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before[1]
        if before[0] is None:
            del os.environ[name]
        else:
            os.environ[name] = before[0]


@contextmanager
def _sigterm_kept() -> Iterator[None]:
    """Keep the handler of SIGTERM: Ray puts one in its place that ends the process at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)

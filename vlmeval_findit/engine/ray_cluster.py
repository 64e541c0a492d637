"""Ray as we use it: a cluster that is there, or one on this machine that listens to nobody else."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from ..core.extras import install


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

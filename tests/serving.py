"""A real ``transformers serve`` on this machine, for as long as a test needs it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SERVE = [sys.executable, "-c", "from transformers.cli.transformers import main; main()", "serve"]


@contextmanager
def served(checkpoint: Path, log: Path) -> Iterator[str]:
    """The base URL of a server of a checkpoint; what it says goes to ``log``."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    offline = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    with log.open("w") as f:
        process = subprocess.Popen(
            [*SERVE, str(checkpoint), "--device", "cpu", "--dtype", "float32",
             "--host", "127.0.0.1", "--port", str(port)],
            env={**os.environ, **offline},
            stdout=f,
            stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        _wait_for(f"http://127.0.0.1:{port}/health", process, log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(30)


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except OSError:
            time.sleep(0.3)
    pytest.fail(f"transformers serve did not come up:\n{log.read_text()[-3000:]}")

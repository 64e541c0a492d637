"""A process that has imported what VLMEvalKit imports, and forks itself for every run.

Half of a short run's processor goes into torch and transformers.  Neither VLMEvalKit nor this
package is imported before the fork, beyond what the start-up hook does in every process.

A shell asks it, too: ``python warm_process.py ask SOCKET PROGRAM ARGUMENTS`` runs a program with
the shell's own variables, folder, input and output.
"""

from __future__ import annotations

import atexit
import gc
import io
import json
import os
import runpy
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

SERVE, ASK = "serve", "ask"

OF_A_RUN = (
    "LMUData",
    "MMEVAL_ROOT",
    "PRED_FORMAT",
    "FINDIT_",
    "PYTEST_",
    "OPENAI_",
    "OPENROUTER_",
    "HTTPS_PROXY",
    "CUDA_VISIBLE_DEVICES",
    "PATH",
    "FAKE_",
    "PYTHONPATH",
)
"""Beginnings of the variables that may differ from one run to the next: nothing that is imported
before the fork reads them, and folders of PYTHONPATH are replaced in the fork."""


IMPORTED = (
    "torch",
    "torchvision.transforms",
    "transformers.modeling_utils",
    "openai",
    "cv2",
    "pandas",
    "matplotlib.pyplot",
    "sklearn.metrics",
    "datasets",
    "nltk",
    "scipy.stats",
    "networkx",
    "av",
    "peft",
    "math_verify",
    "num2words",
    "jieba",
    "decord",
)
"""What VLMEvalKit imports of others, where most of the time goes."""


class WarmRun:
    """A program that runs in a fork."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        # Without a buffer: what is not yet read is seen by has_ended().
        self._told = connection.makefile("rb", buffering=0)
        self.pid = int(self._told.readline())

    def has_ended(self) -> bool:
        return bool(select.select([self._connection], [], [], 0)[0])

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Return the exit status, negative for a signal's number as of :mod:`subprocess`."""
        with self._connection, self._told:
            return int(self._told.readline())


class WarmProcess:
    """Runs Python programs, each in a fork; when it is made, all is imported."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._folder = tempfile.mkdtemp()
        self.address = os.path.join(self._folder, "socket")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self.address)
            listener.listen()
            self._process = subprocess.Popen(
                [sys.executable, __file__, SERVE, str(listener.fileno())],
                env=dict(env),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=[listener.fileno()],
            )
        atexit.register(self.close)
        assert self._process.stdout is not None
        self._process.stdout.readline()

    def close(self) -> None:
        """End it, as the end of its input would."""
        atexit.unregister(self.close)
        self._process.communicate()
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(
        self, arguments: Sequence[str], cwd: Path, env: Mapping[str, str], output: Path
    ) -> WarmRun:
        """Start ``python *arguments``; its output and errors go into a file."""
        with output.open("wb") as written, open(os.devnull, "rb") as nothing:
            files = [nothing.fileno(), written.fileno(), written.fileno()]
            return _start(self.address, arguments, str(cwd), env, files)

    def programs(self, folder: Path) -> Path:
        """Write ``findit`` and ``python`` for a shell, and return their folder.

        ``python`` runs scripts in a fork, and all else as Python does.
        """
        # Without site-packages the asking takes 30 ms.
        ask = shlex.join([sys.executable, "-SI", __file__, ASK, self.address])
        findit = shlex.quote(str(Path(sys.executable).with_name("findit")))
        python = shlex.quote(sys.executable)
        lines = {
            "findit": f'exec {ask} {findit} "$@"',
            "python": f'case "$1" in *.py) exec {ask} "$@" ;; esac\nexec {python} "$@"',
        }
        for name, text in lines.items():
            (folder / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
            (folder / name).chmod(0o755)
        return folder


def _start(
    address: str, arguments: Sequence[str], cwd: str, env: Mapping[str, str], files: Sequence[int]
) -> WarmRun:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    asked = {"arguments": list(arguments), "cwd": cwd, "env": dict(env)}
    # The three files come with the first byte.
    socket.send_fds(connection, [b" "], files)
    connection.sendall(json.dumps(asked).encode() + b"\n")
    return WarmRun(connection)


def can_run(program: Sequence[str], env: Mapping[str, str], warm: Mapping[str, str]) -> bool:
    """Return whether a run may be forked from a process that began with the variables ``warm``."""
    if program[0] == "-c":
        return False  # It imports in another order
    changed = {name for name in {*env, *warm} if env.get(name) != warm.get(name)}
    return all(name.startswith(OF_A_RUN) for name in changed)


@cache
def warm_process(variables: tuple[tuple[str, str], ...]) -> WarmProcess:
    """Return the process for runs that begin with these variables; it ends with its parent."""
    return WarmProcess(dict(variables))


# --- the process ----------------------------------------------------------------------------------


def _serve(listener: socket.socket) -> Sequence[str]:
    """Fork for every run that is asked for; returns in the fork, with a program's arguments."""
    for module in IMPORTED:
        with suppress(ImportError):
            import_module(module)
    # A fork that looks for garbage would write into all memory that it shares, and so copy it.
    gc.collect()
    gc.freeze()
    print("ready", flush=True)
    os.dup2(2, 1)
    waited: dict[int, tuple[int, socket.socket]] = {}
    while True:
        ready, _, _ = select.select([listener, sys.stdin, *waited], [], [])
        for ended in waited.keys() & set(ready):
            _tell_status(ended, *waited.pop(ended))
        if listener in ready:
            connection, _ = listener.accept()
            files, asked = _received(connection)
            if (child := os.fork()) == 0:
                for each in (listener, connection):
                    each.close()
                for each in waited:
                    os.close(each)
                for _, other in waited.values():
                    other.close()
                _begin(files, asked["cwd"], asked["env"])
                return asked["arguments"]
            for each in files:
                os.close(each)
            connection.sendall(f"{child}\n".encode())
            waited[os.pidfd_open(child)] = child, connection
        elif sys.stdin in ready:
            os._exit(0)  # To free all that was imported takes seconds


def _received(connection: socket.socket) -> tuple[list[int], Mapping[str, Any]]:
    """Return the three files of a run, and what it is."""
    _, files, *_ = socket.recv_fds(connection, 1, 3)
    with connection.makefile("r") as lines:
        return files, json.loads(lines.readline())


def _tell_status(ended: int, child: int, connection: socket.socket) -> None:
    os.close(ended)
    _, status = os.waitpid(child, 0)
    with suppress(ConnectionError), connection:  # Who asked may be gone
        connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def _begin(files: Sequence[int], cwd: str, env: Mapping[str, str]) -> None:
    """Take the files, the folder and the variables of a run."""
    for target, source in enumerate(files):
        os.dup2(source, target)
        os.close(source)
    _open_standard_files()
    _become(cwd, env)


def _open_standard_files() -> None:
    """Open input, output and errors as if Python had begun with them: a pipe has no position."""
    for number, (name, mode) in enumerate((("stdin", "rb"), ("stdout", "wb"), ("stderr", "wb"))):
        was = getattr(sys, name)
        file = open(number, mode, buffering=0 if was.write_through else -1, closefd=False)  # noqa: SIM115
        opened = io.TextIOWrapper(
            file,
            encoding=was.encoding,
            errors=was.errors,
            line_buffering=was.line_buffering,
            write_through=was.write_through,
        )
        setattr(sys, name, opened)
        setattr(sys, f"__{name}__", opened)


def _become(cwd: str, env: Mapping[str, str]) -> None:
    """Take the folder and the variables of a run, with the folders where it looks for modules."""
    before, now = (each.get("PYTHONPATH", "").split(os.pathsep) for each in (os.environ, env))
    kept = [folder for folder in sys.path[1:] if folder not in before]
    sys.path[1:] = [*filter(None, now), *kept]
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    tempfile.tempdir = None  # It may be known from an import


def _ask(address: str, *arguments: str) -> int:
    """Run a program for a shell; returns its status."""
    status = _start(address, arguments, os.getcwd(), os.environ, [0, 1, 2]).wait()
    return status if status >= 0 else 128 - status


def _run(program: str, *rest: str) -> None:
    """Run a program as ``python PROGRAM ARGUMENTS`` does, to the end of the process.

    Threads are waited for and exit functions run. What is left then is given back by the system:
    to free all that torch has made is seconds of a processor, and of a fork's memory a copy.
    """
    try:
        if program == "-m":
            sys.path[0] = ""
            sys.argv = list(rest)
            runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = str(Path(program).parent)
            sys.argv = [program, *rest]
            runpy.run_path(program, run_name="__main__")
        status: object = 0
    except SystemExit as ended:
        status = ended.code or 0
        if not isinstance(status, int):
            raise
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status & 0xFF)


if __name__ == "__main__":
    role, place, *words = sys.argv[1:]
    if role == ASK:
        sys.exit(_ask(place, *words))
    _run(*_serve(socket.socket(fileno=int(place))))

"""The programs that serve models on this machine, and how a run says that it wants one."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from ..core.config import Checked, Config, Count, Name, Wanted
from ..core.spelling import nearest


@dataclass(frozen=True, slots=True)
class ServerProgram:
    """A program that serves models: how it is found, started and asked."""

    name: str
    """Of its executable, and of the distribution whose version is recorded."""
    install: str
    arguments: str
    """Words with ``{checkpoint}``, ``{name}``, ``{port}`` and ``{parallel}`` in them."""
    calls: int
    """At a time that one server is worth."""
    needs: tuple[str, ...] = ()
    """Other distributions that it serves with."""
    names_models: bool = True
    """Whether it calls the model as it is told, and lists it; else requests say the checkpoint."""
    takes_bounds: bool = False
    """Whether a request may say within which areas images are resized."""
    takes_revision: bool = True
    keeps_tokens: Mapping[str, Any] = field(default_factory=dict)
    """More fields of a request whose reply should keep some of its special tokens."""

    def command(
        self,
        checkpoint: str,
        name: str,
        port: int,
        parallel: int,
        revision: str | None,
        dtype: str | None,
    ) -> list[str]:
        """Starts one server."""
        said = {"checkpoint": checkpoint, "name": name, "port": port, "parallel": parallel}
        flags = {"--revision": revision if self.takes_revision else None, "--dtype": dtype}
        given = [word for flag, value in flags.items() if value for word in (flag, value)]
        words = [word.format(**said) for word in self.arguments.split()]
        return [self.executable, "serve", *words, *given]

    @property
    def executable(self) -> str:
        """Its path: beside this interpreter, else on PATH.

        Raises:
            ValueError: it is not installed.
        """
        beside = os.path.dirname(sys.executable)
        path = os.pathsep.join((beside, os.environ.get("PATH", os.defpath)))
        found = shutil.which(self.name, path=path)
        if found is None:
            raise ValueError(
                f"--serve {self.name}: there is no program {self.name} on the PATH: {self.install}"
            )
        missing = [package for package in self.needs if _version(found, package) is None]
        if missing:
            raise ValueError(
                f"--serve {self.name}: {', '.join(missing)} is not installed beside {found}: "
                f"{self.install}"
            )
        return found

    def served_name(self, name: str, checkpoint: str) -> str:
        """What requests call a model."""
        return name if self.names_models else checkpoint

    @property
    def described(self) -> str:
        """Its name, with its version where that is known."""
        return " ".join(filter(None, (self.name, _version(self.executable, self.name))))


def _version(executable: str, package: str) -> str | None:
    """The version of a package in the environment that an executable is of, without running it."""
    folder = Path(executable).resolve().parent.parent
    stem = package.replace("-", "_")
    found = sorted(folder.glob(f"lib*/python3*/site-packages/{stem}-*.dist-info"))
    return found[-1].name.removesuffix(".dist-info").rpartition("-")[2] if found else None


_KEEPS = {"skip_special_tokens": False}

PROGRAMS: Mapping[str, ServerProgram] = {
    row.name: row
    for row in (
        # A checkpoint's own sampling would be applied beside the temperature; 80 images are 64
        # frames and some reference shots.
        ServerProgram(
            "vllm",
            "pip install vllm",
            "{checkpoint} --served-model-name {name} --host 127.0.0.1 --port {port} "
            "--tensor-parallel-size {parallel} --generation-config vllm "
            '--limit-mm-per-prompt {{"image":80}}',
            calls=64,
            takes_bounds=True,
            keeps_tokens=_KEEPS,
        ),
        ServerProgram(
            "sglang",
            "pip install 'sglang[all]'",
            "--model-path {checkpoint} --served-model-name {name} --host 127.0.0.1 --port {port} "
            "--tp-size {parallel} --sampling-defaults openai",
            calls=64,
            keeps_tokens=_KEEPS,
        ),
        # It leaves special tokens in every reply.
        ServerProgram(
            "transformers",
            "pip install 'transformers[serving]'",
            "{checkpoint} --host 127.0.0.1 --port {port}",
            calls=4,
            needs=("fastapi", "uvicorn"),
            names_models=False,
            takes_revision=False,
        ),
    )
}
"""By their names, which are those of their executables."""


def _known_program(name: str) -> str:
    if name not in PROGRAMS:
        raise ValueError(f"no program {name!r} serves models{nearest(name, PROGRAMS)}")
    return name


def _split(said: Any) -> Any:
    return tuple(shlex.split(said)) if isinstance(said, str) else said


@dataclass(frozen=True, slots=True)
class Serving(Config):
    """How models of a run are served."""

    program: Annotated[Name, Checked(_known_program)]
    gpus: Annotated[int, Wanted("a whole number, at least 0", strict=True, ge=0)] | None = None
    """How many of this machine's are used; None: all."""
    tensor_parallel: Count = 1
    """GPUs of each server."""
    arguments: Annotated[tuple[str, ...], Checked(_split, before=True)] = ()
    """Added to a server's command line."""

    def __post_init__(self) -> None:
        _known_program(self.program)

    def check(self) -> None:
        """Refuse what cannot be started here.

        Raises:
            ValueError: the program is not installed; GPUs are not there, or do not divide into
                servers.
        """
        _ = PROGRAMS[self.program].executable
        self.devices()

    @property
    def calls(self) -> int:
        """Calls at a time that all servers together are worth."""
        return PROGRAMS[self.program].calls * len(self.devices())

    def devices(self) -> list[str | None]:
        """The value of CUDA_VISIBLE_DEVICES of each server; None on a machine without GPUs.

        Raises:
            ValueError: as of :meth:`check`.
        """
        here = visible_gpus()
        wanted, each = len(here) if self.gpus is None else self.gpus, self.tensor_parallel
        if wanted > len(here):
            raise ValueError(f"--gpus {wanted}: this machine shows {len(here)} (nvidia-smi -L)")
        if wanted % each or (each > 1 and not wanted):
            raise ValueError(
                f"--gpus {wanted} cannot be shared out to servers of --tensor-parallel {each}"
            )
        if not wanted:
            return ["" if here else None]
        return [",".join(here[at : at + each]) for at in range(0, wanted, each)]


def visible_gpus() -> list[str]:
    """The GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [one.strip() for one in named.split(",") if one.strip() not in ("", "-1")]
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return []
    lines = [line for line in listed.stdout.splitlines() if line.startswith("GPU ")]
    return [str(number) for number in range(len(lines))] if listed.returncode == 0 else []

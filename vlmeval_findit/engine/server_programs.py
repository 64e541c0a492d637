"""The programs that serve models on this machine, and how a run says that it wants one."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from ..core.config import Checked, Config, Count, Name, Wanted
from ..core.spelling import nearest


class Launch(NamedTuple):
    """One server that is going to be started; ``name`` is what it should call the model."""

    executable: str
    checkpoint: str
    name: str
    port: int
    tensor_parallel: int
    revision: str | None
    dtype: str | None


@dataclass(frozen=True, slots=True)
class ServerProgram:
    """A program that serves models: how it is found, started and asked.

    ``package`` is the distribution whose version is recorded, ``needs`` are others that it serves
    with.  ``names_models``: it calls the model as it is told, and lists it; else requests say the
    checkpoint.  ``calls`` are calls at a time that one server is worth.  ``takes_bounds``: a
    request may say within which areas images are resized.  ``fields`` are more fields of a request
    whose reply should keep some of its special tokens.
    """

    name: str
    package: str
    install: str
    command: Callable[[Launch], list[str]]
    calls: int
    needs: tuple[str, ...] = ()
    names_models: bool = True
    takes_bounds: bool = False
    takes_revision: bool = True
    keeps_tokens: Mapping[str, Any] = field(default_factory=dict)

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
        return " ".join(filter(None, (self.name, _version(self.executable, self.package))))


def _version(executable: str, package: str) -> str | None:
    """The version of a package in the environment that an executable is of, without running it."""
    folder = Path(executable).resolve().parent.parent
    stem = package.replace("-", "_")
    found = sorted(folder.glob(f"lib*/python3*/site-packages/{stem}-*.dist-info"))
    return found[-1].name.removesuffix(".dist-info").rpartition("-")[2] if found else None


def _vllm(launch: Launch) -> list[str]:
    # A checkpoint's own sampling would be applied beside the temperature; 80 images are 64 frames
    # and some reference shots.
    return [
        *(launch.executable, "serve", launch.checkpoint, "--served-model-name", launch.name),
        *("--host", "127.0.0.1", "--port", str(launch.port)),
        *("--tensor-parallel-size", str(launch.tensor_parallel)),
        *("--generation-config", "vllm", "--limit-mm-per-prompt", '{"image": 80}'),
        *_given("--revision", launch.revision),
        *_given("--dtype", launch.dtype),
    ]


def _sglang(launch: Launch) -> list[str]:
    return [
        *(launch.executable, "serve", "--model-path", launch.checkpoint),
        *("--served-model-name", launch.name),
        *("--host", "127.0.0.1", "--port", str(launch.port)),
        *("--tp-size", str(launch.tensor_parallel), "--sampling-defaults", "openai"),
        *_given("--revision", launch.revision),
        *_given("--dtype", launch.dtype),
    ]


def _transformers(launch: Launch) -> list[str]:
    return [
        *(launch.executable, "serve", launch.checkpoint),
        *("--host", "127.0.0.1", "--port", str(launch.port)),
        *_given("--dtype", launch.dtype),
    ]


def _given(flag: str, value: str | None) -> tuple[str, ...]:
    return () if value is None else (flag, value)


PROGRAMS: Mapping[str, ServerProgram] = {
    row.name: row
    for row in (
        ServerProgram(
            "vllm",
            "vllm",
            "pip install vllm",
            _vllm,
            calls=64,
            takes_bounds=True,
            keeps_tokens={"skip_special_tokens": False},
        ),
        ServerProgram(
            "sglang",
            "sglang",
            "pip install 'sglang[all]'",
            _sglang,
            calls=64,
            keeps_tokens={"skip_special_tokens": False},
        ),
        # It leaves special tokens in every reply.
        ServerProgram(
            "transformers",
            "transformers",
            "pip install 'transformers[serving]'",
            _transformers,
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

"""The programs that can serve models on this machine, and the options of a run for them."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from ..core.formatting import nearest
from ..core.validation import Checked, Config, Count, Expected, Name


@dataclass(frozen=True, slots=True)
class ServerProgram:
    """A program that serves models; ``name`` is its executable and its distribution."""

    name: str
    install: str
    arguments: str  # format string with {checkpoint}, {name}, {port} and {parallel}
    calls: int  # concurrent calls per server
    needs: tuple[str, ...] = ()  # further distributions that serving needs
    names_models: bool = True  # else requests name CHECKPOINT or CHECKPOINT@REVISION
    takes_bounds: bool = False  # requests may bound the area of images
    takes_adapters: bool = False  # serves an adapter over its base
    filters_tokens: bool = True  # strips special tokens from replies by default

    @property
    def executable(self) -> str:
        """Path next to this interpreter, else on PATH; ValueError if it is not installed."""
        folder = os.path.dirname(sys.executable)
        path = os.pathsep.join((folder, os.environ.get("PATH", os.defpath)))
        program = shutil.which(self.name, path=path)
        if program is None:
            why = f"there is no program {self.name} on the PATH"
        elif missing := [package for package in self.needs if _version(program, package) is None]:
            why = f"{', '.join(missing)} is not installed with {program}"
        else:
            return program
        raise ValueError(f"--serve {self.name}: {why}: {self.install}")

    def served_name(self, name: str, checkpoint: str, revision: str | None) -> str:
        if self.names_models:
            return name
        return f"{checkpoint}@{revision}" if revision else checkpoint

    @property
    def described(self) -> str:
        return " ".join(filter(None, (self.name, _version(self.executable, self.name))))


def _version(executable: str, package: str) -> str | None:
    """Return a package's version from the executable's environment, without running it."""
    folder = Path(executable).resolve().parent.parent
    stem = package.replace("-", "_")
    folders = sorted(folder.glob(f"lib*/python3*/site-packages/{stem}-*.dist-info"))
    return folders[-1].name.removesuffix(".dist-info").rpartition("-")[2] if folders else None


PROGRAMS: Mapping[str, ServerProgram] = {
    row.name: row
    for row in (
        # Ignore a checkpoint's sampling; 80 images are 64 frames and some reference shots.
        ServerProgram(
            "vllm",
            "pip install vllm",
            "{checkpoint} --served-model-name {name} --host 127.0.0.1 --port {port} "
            "--tensor-parallel-size {parallel} --generation-config vllm "
            '--limit-mm-per-prompt {{"image":80}}',
            calls=64,
            takes_bounds=True,
            takes_adapters=True,
        ),
        ServerProgram(
            "sglang",
            "pip install 'sglang[all]'",
            "--model-path {checkpoint} --served-model-name {name} --host 127.0.0.1 --port {port} "
            "--tp-size {parallel} --sampling-defaults openai",
            calls=64,
        ),
        ServerProgram(
            "transformers",
            "pip install 'transformers[serving]'",
            "{name} --host 127.0.0.1 --port {port}",
            calls=4,
            needs=("fastapi", "uvicorn"),
            names_models=False,
            filters_tokens=False,
        ),
    )
}


def _known_program(name: str) -> str:
    if name not in PROGRAMS:
        raise ValueError(f"--serve: unknown program {name!r}{nearest(name, PROGRAMS)}")
    return name


def _split(text: Any) -> Any:
    return tuple(shlex.split(text)) if isinstance(text, str) else text


@dataclass(frozen=True, slots=True)
class ServeOptions(Config):
    """How models are served: on ``gpus`` GPUs (None: all), ``tensor_parallel`` per server."""

    program: Annotated[Name, Checked(_known_program)]
    gpus: Annotated[int, Expected("a whole number, at least 0", strict=True, ge=0)] | None = None
    tensor_parallel: Count = 1
    arguments: Annotated[tuple[str, ...], Checked(_split, before=True)] = ()

    def __post_init__(self) -> None:
        _known_program(self.program)

    def check(self) -> None:
        """Raise ValueError if the program is missing, or the GPUs are or do not divide."""
        _ = PROGRAMS[self.program].executable
        self.devices()

    @property
    def calls(self) -> int:
        return PROGRAMS[self.program].calls * len(self.devices())

    def devices(self) -> list[str | None]:
        """Return each server's CUDA_VISIBLE_DEVICES; None without GPUs. Raises as :meth:`check`."""
        here = visible_gpus()
        count = len(here) if self.gpus is None else self.gpus
        each = self.tensor_parallel
        if count > len(here):
            raise ValueError(f"--gpus {count}: this machine has {len(here)} (nvidia-smi -L)")
        if count % each or (each > 1 and not count):
            raise ValueError(f"--gpus {count} should be a multiple of --tensor-parallel {each}")
        if not count:
            return ["" if here else None]
        return [",".join(here[at : at + each]) for at in range(0, count, each)]


def visible_gpus() -> list[str]:
    """Return the NVIDIA GPUs that programs started here may use, as CUDA_VISIBLE_DEVICES has them.

    Asks no torch, and takes no time without NVIDIA's driver.
    """
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [part.strip() for part in named.split(",") if part.strip() not in ("", "-1")]
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return []
    lines = [line for line in listed.stdout.splitlines() if line.startswith("GPU ")]
    return [str(number) for number in range(len(lines))] if listed.returncode == 0 else []

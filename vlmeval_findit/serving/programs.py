"""The programs that can serve models on this machine, and the options of a run for them."""

from __future__ import annotations

import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

from ..core import MACHINE, Checked, Config, Count, Expected, Name, Option, scrub, suggestion

log = logging.getLogger(__name__)

BOUNDS_FIELD = "mm_processor_kwargs"  # the field of a request that bounds its images
TEMPLATE_FIELD = "chat_template_kwargs"  # … that has switches of the chat template
ALL_TOKENS_FIELD = "skip_special_tokens"  # … that may keep special tokens in replies

_HOLDS_SECRET = re.compile(r"--(?:[\w-]*[-_])?(?:api[-_]?key|token|password|secret)")
_WRONG_USAGE = 2  # argparse's status
_HELP_SECONDS = 300.0  # a program imports torch before it prints its help


@dataclass(frozen=True, slots=True)
class ServerProgram:
    """A program that serves models; ``name`` is its executable and its distribution."""

    name: str
    install: str
    arguments: str  # format string with {checkpoint}, {name}, {port} and {serving} (its options)
    calls: int  # concurrent calls per server
    needs: tuple[str, ...] = ()  # further distributions that serving needs
    names_models: bool = True  # else requests name CHECKPOINT or CHECKPOINT@REVISION
    takes_adapters: bool = False  # serves an adapter over its base
    # What it takes beside OpenAI's fields of a request, and the flag without which newer versions
    # refuse it ("": none)
    fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def _found(self) -> str | None:
        folder = os.path.dirname(sys.executable)
        path = os.pathsep.join((folder, os.environ.get("PATH", os.defpath)))
        return shutil.which(self.name, path=path)

    @property
    def executable(self) -> str:
        """Path next to this interpreter, else on PATH; ValueError if it is not installed."""
        program = self._found
        if program is None:
            why = f"there is no program {self.name} on the PATH"
        elif missing := [package for package in self.needs if _version(program, package) is None]:
            why = f"{', '.join(missing)} is not installed with {program}"
        else:
            return program
        raise ValueError(f"--serve {self.name}: {why}: {self.install}")

    def refuse_own(self, arguments: Sequence[str]) -> None:
        """Refuse, with a ValueError, flags that say which model is served, and where."""
        words = self.arguments.split()
        for flag, value in pairwise(words):
            is_own = flag == "--host" or re.fullmatch(r"\{[^{}]+\}", value)
            if not flag.startswith("--") or not is_own:
                continue
            if any(word.partition("=")[0] == flag for word in arguments):
                advice = "Type --tensor-parallel N" if "gpus_each" in value else "Leave it out"
                raise ValueError(f"--serve-args {flag}: FindIt states it. {advice}")
        self._refuse_secrets(arguments)

    def _refuse_secrets(self, arguments: Sequence[str]) -> None:
        """Refuse keys: all users of a machine see what its programs are started with."""
        for word, following in pairwise([*arguments, ""]):
            flag, _, stated = word.partition("=")
            value = stated or following
            is_stated = bool(value) and not value.startswith("--")
            if _HOLDS_SECRET.fullmatch(flag) and is_stated:
                what = f"{flag}:"
            elif scrub(word) != word:
                what = "has a key, and"
            else:
                continue
            raise ValueError(
                f"--serve-args {what} the list of processes would show it to everybody on this "
                "machine. Leave it out: the server listens on this machine only, and reads "
                "HF_TOKEN from the environment"
            )

    def served_name(self, name: str, checkpoint: str, revision: str | None) -> str:
        if self.names_models:
            return name
        return f"{checkpoint}@{revision}" if revision else checkpoint

    def command(
        self, port: int, checkpoint: str, name: str, serving: ServeOptions, flags: Sequence[str]
    ) -> list[str]:
        """Return the command that serves a model; raises as :attr:`executable`.

        Args:
            port: on 127.0.0.1.
            checkpoint: a folder, or its name on the hub.
            name: by which requests ask for ``checkpoint``.
            serving: the options of a run.
            flags: further ones of the model; those that ``serving`` adds come last.
        """
        words = {"port": port, "checkpoint": checkpoint, "name": name, "serving": serving}
        arguments = [word.format(**words) for word in self.arguments.split()]
        return [self.executable, "serve", *arguments, *flags, *serving.arguments]

    def model_flags(self, revision: str | None, dtype: str | None) -> list[str]:
        """Return the flags for a model, with those of :meth:`field_flags`, which take a while."""
        flags = self.field_flags()
        if revision and self.names_models:
            flags += ["--revision", revision]
        if dtype:
            flags += ["--dtype", dtype]
        return flags

    def field_flags(self) -> list[str]:
        """Return the flags of its fields that the installed version knows; older ones need none.

        It is asked for its help: versions between releases, builds of others and scripts that start
        a container have no number to go by, and a flag that it does not know ends it.
        """
        flags = [flag for flag in self.fields.values() if flag]
        known = self._help() if flags else ""
        return [flag for flag in flags if re.search(rf"(?<![\w-]){flag}(?![\w-])", known)]

    def _help(self) -> str:
        """Return the help of ``serve``; "" with a warning if it prints none."""
        command = [self.executable, "serve", "--help=all"]
        try:
            asked = subprocess.run(command, capture_output=True, text=True, timeout=_HELP_SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            log.warning("%s: %s", shlex.join(command), error)
            return ""
        # Versions whose help has no parts call the value wrong; they are older than the flags.
        if asked.returncode not in (0, _WRONG_USAGE):
            lines = asked.stderr.strip().splitlines() or ["(nothing)"]
            log.warning("%s ended with status %d: %s", command, asked.returncode, lines[-1])
        return asked.stdout

    @property
    def described(self) -> str:
        """Its name and version; a dry run needs no program, and then there is no version."""
        program = self._found
        version = _version(program, self.name) if program is not None else None
        return " ".join(filter(None, (self.name, version)))


def _version(executable: str, package: str) -> str | None:
    """Return a package's version from the executable's environment, without running it."""
    folder = Path(executable).resolve().parent.parent
    stem = package.replace("-", "_")
    folders = sorted(folder.glob(f"lib*/python3*/site-packages/{stem}-*.dist-info"))
    return folders[-1].name.removesuffix(".dist-info").rpartition("-")[2] if folders else None


# Programs that ``--serve`` can start, by name
PROGRAMS: Mapping[str, ServerProgram] = {
    row.name: row
    for row in (
        # Ignore a checkpoint's sampling; 80 images are 64 frames and some reference shots.
        ServerProgram(
            "vllm",
            "pip install vllm",
            "{checkpoint} --served-model-name {name} --host 127.0.0.1 --port {port} "
            "--tensor-parallel-size {serving.gpus_each} --generation-config vllm "
            '--limit-mm-per-prompt {{"image":80}}',
            calls=64,
            takes_adapters=True,
            fields={
                BOUNDS_FIELD: "--trust-request-mm-kwargs",
                TEMPLATE_FIELD: "",
                ALL_TOKENS_FIELD: "",
            },
        ),
        ServerProgram(
            "sglang",
            "pip install 'sglang[all]'",
            "--model-path {checkpoint} --served-model-name {name} --host 127.0.0.1 --port {port} "
            "--tp-size {serving.gpus_each} --sampling-defaults openai",
            calls=64,
            fields={TEMPLATE_FIELD: "", ALL_TOKENS_FIELD: ""},
        ),
        ServerProgram(
            "transformers",
            "pip install 'transformers[serving]'",
            "{name} --host 127.0.0.1 --port {port}",
            calls=4,
            needs=("fastapi", "uvicorn"),
            names_models=False,
            fields={TEMPLATE_FIELD: ""},
        ),
    )
}


def programs_with(name: str) -> list[str]:
    """Return the programs that take a field of a request.

    >>> programs_with(BOUNDS_FIELD)
    ['vllm']
    """
    return [program.name for program in PROGRAMS.values() if name in program.fields]


def flag_of(name: str) -> str:
    """Return the flag with which newer versions are started so that they take a field; "": none.

    >>> flag_of(BOUNDS_FIELD), flag_of(TEMPLATE_FIELD)
    ('--trust-request-mm-kwargs', '')
    """
    flags = (program.fields.get(name, "") for program in PROGRAMS.values())
    return next(filter(None, flags), "")


def _known_program(name: str) -> str:
    if name not in PROGRAMS:
        raise ValueError(f"--serve: unknown program {name!r}{suggestion(name, PROGRAMS)}")
    return name


def _split(text: Any) -> Any:
    return tuple(shlex.split(text)) if isinstance(text, str) else text


@dataclass(frozen=True, kw_only=True)
class ServerOptions(Config):
    """Options of each server that this machine starts, which are flags of commands, too."""

    tensor_parallel: Annotated[
        Count | None, Option("GPUs of each server.", MACHINE, "N", "serve")
    ] = None


@dataclass(frozen=True, slots=True)
class ServeOptions(ServerOptions):
    """How models are served: on ``gpus`` GPUs (None: all)."""

    program: Annotated[Name, Checked(_known_program)]
    gpus: Annotated[int, Expected("a whole number, at least 0", strict=True, ge=0)] | None = None
    arguments: Annotated[tuple[str, ...], Checked(_split, before=True)] = ()

    def __post_init__(self) -> None:
        _known_program(self.program)
        PROGRAMS[self.program].refuse_own(self.arguments)

    @property
    def gpus_each(self) -> int:
        """GPUs of each server."""
        return self.tensor_parallel or 1

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
        each = self.gpus_each
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

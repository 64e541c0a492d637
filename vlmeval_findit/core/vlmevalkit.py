"""Read the installed VLMEvalKit's files as text: importing it takes twenty seconds.

On PyPI it is ``ms-vlmeval`` with the runner ``vlmeval.run``; a clone of upstream has ``run.py``
next to the package, and installing that brings no runner.
"""

from __future__ import annotations

import ast
import importlib.util
import logging
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from .command import install_command
from .redaction import is_secret_name


class RunnerError(ValueError):
    """There is no runner; the message says what to type instead."""


@dataclass(frozen=True, slots=True)
class Runner:
    """The program that runs datasets; ``what`` is its name in messages."""

    path: Path
    what: str


def package_folder() -> Path | None:
    """Return the folder of the package ``vlmeval``; None if there is none."""
    spec = importlib.util.find_spec("vlmeval")
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    return Path(places[0]) if places else None


RESULTS_VARIABLE = "MMEVAL_ROOT"
"""The environment variable by which VLMEvalKit's runner overrides its ``--work-dir``."""


def results_folder() -> Path:
    """Return the folder that runs are in where no ``--work-dir`` is typed."""
    return Path(os.environ.get(RESULTS_VARIABLE) or "outputs")


_OF_FOLDERS = (RESULTS_VARIABLE, "LMUData", "PRED_FORMAT")
_OF_THE_HUB = ("HF_TOKEN", "HF_HOME", "HF_HUB_CACHE", "HF_ENDPOINT")


def read_env_file() -> list[str]:
    """Set what VLMEvalKit's ``.env`` says of folders, formats and the hub, so that commands agree.

    Like VLMEvalKit, when it is imported, the file overrides variables. Keys of services are left
    to VLMEvalKit.

    Returns:
        A line for each variable whose value is replaced.
    """
    folder = package_folder()
    if folder is None or not (file := folder.parent / ".env").is_file():
        return []
    from dotenv import dotenv_values

    values = dotenv_values(file)
    lines = []
    for name in _OF_FOLDERS + _OF_THE_HUB:
        stated = values.get(name)
        before = os.environ.get(name)
        if not stated or stated == before:
            continue
        os.environ[name] = stated
        if before and is_secret_name(name):
            lines.append(f"{name} is not used: {file} has another")
        elif before:
            lines.append(f"{name}={before} is not used: {file} says {stated}")
    return lines


@cache
def host_version() -> Mapping[str, str]:
    """Return this VLMEvalKit's distribution and version, or its clone's git revision."""
    folder = package_folder()
    if folder is None:
        return {}
    for name in ("ms-vlmeval", "vlmeval"):
        try:
            result = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        if Path(str(result.locate_file("vlmeval"))).resolve() == folder.resolve():
            return {name: result.version}
    return {"VLMEvalKit": git_revision(folder.parent) or "unknown"}


def git_revision(clone: Path) -> str | None:
    """Return the git revision of a clone in 12 digits; None if it has none."""
    command = ["git", f"--git-dir={clone / '.git'}", "rev-parse", "--verify", "--quiet", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()[:12]


def find_runner(arguments: Sequence[str], why: str) -> Runner:
    """Find this VLMEvalKit's runner; a RunnerError that shows ``arguments`` if there is none.

    ``why``: what needs it, in a sentence without its end.
    """
    folder = package_folder()
    if folder is None:
        raise RunnerError(
            f"{why}, and VLMEvalKit is not installed: {install_command('run')}, or install a "
            "clone of it into this environment"
        )
    version = " ".join(f"{name} {number}" for name, number in host_version().items())
    for path in (folder / "run.py", folder.parent / "run.py"):
        if path.is_file():
            return Runner(path, f"{version}, {path}")
    raise RunnerError(
        f"{why}, and the VLMEvalKit in {folder} has no runner ({version}): pip installs "
        "upstream's without. In a clone of it, type:\n  python run.py " + shlex.join(arguments)
    )


def hide_bars(always: bool = False) -> None:
    """Have VLMEvalKit, transformers and the hub draw progress bars on terminals only, or never.

    To be called before they are imported.
    """
    if always or not sys.stderr.isatty():
        # tqdm reads the first when it is imported, transformers the other.
        os.environ.update(TQDM_DISABLE="1", HF_HUB_DISABLE_PROGRESS_BARS="1")


def quiet_log(least: int = logging.NOTSET) -> None:
    """Hide what misleads in VLMEvalKit's log, and lines below a level.

    To be called before VLMEvalKit is imported.
    """
    # It logs an error where its folder has no .env file.
    logging.getLogger().addFilter(lambda record: ".env file" not in record.getMessage())
    # Answers of FindIt's datasets lie in the model's folder: every run goes on from them.
    log = logging.getLogger("vlmeval")
    log.getChild("run").addFilter(lambda record: "--reuse is not set" not in record.getMessage())
    if least:
        handler = logging.StreamHandler()
        handler.setLevel(least)
        log.addHandler(handler)  # VLMEvalKit adds none then
        log.propagate = False


@dataclass(frozen=True, slots=True)
class HostFlag:
    """A flag of the runner: its names and those argparse settings that are literals."""

    names: tuple[str, ...]
    settings: Mapping[str, Any]


_TYPES = {"int": int, "float": float, "str": str}


def host_flags(runner: Path) -> list[HostFlag]:
    """Read the flags of the runner from its source; empty without ``add_argument``."""
    tree = ast.parse(runner.read_text(encoding="utf-8", errors="replace"))
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    flags = [_flag(call) for call in calls if _is_add_argument(call)]
    return [flag for flag in flags if flag is not None]


def _is_add_argument(call: ast.Call) -> bool:
    return getattr(call.func, "attr", None) == "add_argument"


def _flag(call: ast.Call) -> HostFlag | None:
    literals = [word.value for word in call.args if isinstance(word, ast.Constant)]
    texts = [literal for literal in literals if isinstance(literal, str)]
    names = tuple(text for text in texts if text.startswith("-"))
    return HostFlag(names, dict(_settings(call))) if names else None


def _settings(call: ast.Call) -> Iterator[tuple[str, Any]]:
    for word in call.keywords:
        if word.arg == "type" and getattr(word.value, "id", None) in _TYPES:
            yield "type", _TYPES[word.value.id]  # type: ignore[attr-defined]
        if word.arg in ("action", "nargs", "choices"):
            with suppress(ValueError):
                yield word.arg, ast.literal_eval(word.value)


@cache
def _text(part: str) -> str:
    """Return the source of a file of VLMEvalKit, or of all files of a folder."""
    folder = package_folder()
    if folder is None:
        return ""
    where = folder / part
    files = [where] if where.is_file() else sorted(where.rglob("*.py"))
    return "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in files)


@lru_cache(maxsize=1024)  # A search of all four megabytes takes six milliseconds.
def _is_quoted(name: str, text: str) -> bool:
    return bool(name) and (f'"{name}"' in text or f"'{name}'" in text)


def may_have_model(name: str) -> bool:
    """Return whether VLMEvalKit's list of models names a model."""
    return _is_quoted(name, _text("config.py"))


def model_names() -> list[str]:
    """Return the models in VLMEvalKit's list, for messages."""
    return re.findall(r"""["']([^"'\n]+)["']\s*:\s*partial\b""", _text("config.py"))


def may_have_dataset(name: str) -> bool:
    """Return whether VLMEvalKit's source names a dataset or its beginning up to ``_`` or ``-``."""
    # Some names are composed: ``VSI-Bench`` with ``_128frame``.
    text = _text("dataset")
    ends = [match.start() for match in re.finditer("[_-]", name)]
    return any(_is_quoted(name[:end], text) for end in (len(name), *ends))


def has_dataset(name: str) -> bool:
    """Return whether VLMEvalKit's source has a dataset's name as a key: of an address, a group.

    Splits and categories are in quotes, too.
    """
    text = _text("dataset")
    # Most names are nowhere in its four megabytes: that is found in a tenth of the time.
    return _is_quoted(name, text) and bool(re.search(rf"""["']{re.escape(name)}["']\s*:""", text))


def dataset_names() -> list[str]:
    """List datasets that VLMEvalKit's source names with an address or settings, for messages."""
    address = r"""["']([\w.+-]+)["']\s*:\s*(?:\(?\s*["'](?:https?:|hf:)|partial\()"""
    return list(dict.fromkeys(re.findall(address, _text("dataset"))))

"""VLMEvalKit's entries of models: what a run is, before anything is loaded."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..benchmarks import is_findit_entry
from ..core.custom_prompt import CustomPrompt
from ..core.files import file_sha256, sha256_of
from ..core.identity import Answering, Described
from ..core.question import Question
from ..core.redaction import scrubbed
from ..engine.calls import given_key
from ..models.http.endpoint import Endpoint
from ..models.model_table import find_model
from ..models.revision import known_revision


@dataclass(frozen=True, slots=True)
class Entry:
    """A model as the host makes it."""

    cls: type | None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)  # arguments of a user's file
    source: str | None = None  # hash of the files of its class; None: FindIt's, or no file

    @property
    def is_api(self) -> bool:
        """Return whether any number of threads may ask it."""
        return bool(getattr(self.cls, "is_api", False))

    @property
    def is_findit(self) -> bool:
        return hasattr(self.cls, "describe")


def with_system(entry: Entry, prompt: CustomPrompt | None) -> Entry:
    """Give an entry of a VLMEvalKit class the system text of a prompt, or refuse it.

    FindIt's classes get it with every message.
    """
    if prompt is None or prompt.system is None or entry.is_findit:
        return entry
    if entry.cls is None or "system_prompt" not in inspect.signature(entry.cls).parameters:
        name = entry.cls.__name__ if entry.cls else "class"
        raise ValueError(f"--system: VLMEvalKit's {name} takes no system text. Leave it out")
    more = {"system_prompt": prompt.system}
    return replace(entry, arguments={**entry.arguments, **more}, given={**entry.given, **more})


def entry_of(model: str, settings: Mapping[str, Any] | None = None) -> Entry:
    """Return the entry of a model in the ``--config`` file, else in ``supported_VLM``.

    ``settings`` override the entry's arguments.
    """
    import vlmeval.api
    import vlmeval.vlm
    from vlmeval.config import supported_VLM

    configured = dict(_of_config("model").get(model, {}))
    maker = supported_VLM.get(model)
    if name := configured.pop("class", None):
        maker = getattr(vlmeval.api, name, None) or getattr(vlmeval.vlm, name, None)
    cls = getattr(maker, "func", maker)
    given = {**configured, **(settings or {})}
    arguments = {**getattr(maker, "keywords", {}), **given}
    return Entry(cls if inspect.isclass(cls) else None, arguments, given, _source_of(cls))


def _source_of(maker: object) -> str | None:
    """Hash the files of a class and of its bases in the same package."""
    classes = inspect.getmro(maker) if inspect.isclass(maker) else (maker,)
    package = _package(maker)
    if package in ("", _package(Entry)):
        return None
    files = set()
    for base in classes:
        with suppress(TypeError, OSError):
            if _package(base) == package and (path := inspect.getsourcefile(base)):  # type: ignore[arg-type]
                files.add(Path(path))
    hashes = [file_sha256(path) for path in sorted(files)]
    return f"sha256:{sha256_of(''.join(hashes).encode())[:12]}" if hashes else None


def _package(maker: object) -> str:
    return str(getattr(maker, "__module__", "")).partition(".")[0]


def described(model: str, entry: Entry, question: Question) -> Described:
    """Describe a run of an entry without loading anything; ValueError if it is invalid."""
    if entry.is_findit:
        try:
            description: Described = entry.cls.describe(question, **entry.arguments)  # type: ignore[union-attr]
        except TypeError as error:
            raise ValueError(f"the entry of {model}: {error}") from None
        return description._replace(answering=replace(description.answering, source=entry.source))
    if question.reply_schema is not None:
        raise ValueError(
            f"{model} is run by a class of VLMEvalKit, which decodes freely: {question.name} "
            "needs a model of FindIt, or a server (--base-url)"
        )
    row, url = find_model(model), flag("--base-url")
    space = _stock_space(model, entry) or (row.space(question).as_dict() if row else None)
    flags = {name.lstrip("-"): value for name in _SAMPLING if (value := flag(name)) is not None}
    checkpoint = entry.arguments.get("model_path") or entry.arguments.get("model")
    answering = Answering(
        kind=entry.cls.__name__ if entry.cls is not None else None,
        row=row.name if row else None,
        checkpoint=str(checkpoint) if checkpoint else None,
        revision=known_revision(str(checkpoint)) if checkpoint else None,
        endpoint=None if url is None else Endpoint(url).name,  # without credentials
        settings=scrubbed({**_plain(entry.arguments), **flags}),
        source=entry.source,
        runs_here=not entry.is_api,
        in_vlmevalkit=True,
    )
    return Described(answering, space)


def on_this_machine(entry: Entry, answering: Answering) -> Answering:
    """Add the device and the hub's revision, if the model runs here."""
    complete = getattr(entry.cls, "on_this_machine", None)
    return answering if complete is None else complete(answering, **entry.arguments)


def key_settings(entry: Entry, answering: Answering) -> dict[str, Any]:
    """Return the part of an entry in every call's key; a checkpoint is known by its content."""
    of_class = getattr(entry.cls, "key_settings", None)
    if of_class is not None:
        return dict(of_class(**entry.arguments))
    is_local = entry.is_findit and answering.runs_here
    checkpoint = answering.revision or answering.checkpoint if is_local else None
    return given_key(_plain(entry.given), checkpoint)


# --- classes of VLMEvalKit ------------------------------------------------------------------------


def _stock_space(model: str, entry: Entry) -> Mapping[str, Any] | None:
    """Return the space of VLMEvalKit's Qwen2.5-VL entries, by their resize bounds.

    They differ from the paper's; with the wrong bounds, the recall of perfect boxes is near 0.
    """
    bounds = {k: v for k, v in entry.arguments.items() if k in ("min_pixels", "max_pixels")}
    if not model.startswith("Qwen2.5-VL") or entry.is_findit or len(bounds) < 2:
        return None
    return {"kind": "smart_resize", **bounds}


def _plain(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments as JSON values; functions by name, secrets left out."""
    return {
        name: value if isinstance(value, str | int | float | bool | list | dict | None)
        else getattr(value, "__name__", type(value).__name__)
        for name, value in arguments.items()
        if name not in ("key", "budget", "headers")
    }  # fmt: skip


_SAMPLING = ("--temperature", "--top-k", "--top-p", "--repetition-penalty", "--max-tokens")
"""VLMEvalKit's flags of sampling."""


# --- the host's command line ----------------------------------------------------------------------


def flag(name: str) -> str | None:
    """Return the value of a flag of this process's command line (None: not given)."""
    for word, value in pairwise([*sys.argv[1:], ""]):
        if word == name and value:
            return value
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
    return None


def _of_config(name: str) -> Mapping[str, Any]:
    """Return the models or the data of this process's ``--config`` file, if it has one."""
    path = flag("--config")
    return _mapping(_mapping(_read_json(Path(path)) if path else {}).get(name))


@cache
def _read_json(path: Path) -> Any:
    with suppress(OSError, ValueError):  # VLMEvalKit says what is wrong with it
        return json.loads(path.read_text(encoding="utf-8"))
    return None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def renamed_datasets() -> dict[str, str]:
    """Return the datasets that the configuration renames: name -> dataset."""
    data = dict(_of_config("data"))
    with suppress(ValueError):
        data |= _mapping(json.loads(flag("--data-config") or "null"))
    entries = {name: entry for name, entry in data.items() if isinstance(entry, dict)}
    datasets = {n: str(e.get("dataset", n)) for n, e in entries.items() if is_findit_entry(n, e)}
    return {name: dataset for name, dataset in datasets.items() if dataset != name}


def with_space(entry: Entry, space: Any) -> Entry:
    """Add a coordinate space to an entry whose class takes it."""
    if space is None or not entry.is_findit or not hasattr(entry.cls, "takes_space"):
        return entry
    return replace(entry, arguments={**entry.arguments, "space": space})

"""What VLMEvalKit's entry of a model says a run of it is, before anything is loaded."""

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

from ..benchmarks import is_ours_entry
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
    """A model as the host would make it: its class, and the arguments that it gets.

    ``given`` are those of them that a user named: in a sweep's file, or in a ``--config`` file.
    ``source`` is a hash of the files that its class, or the function that makes it, is written in
    (None: it is one of ours, or has no file).
    """

    cls: type | None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)
    source: str | None = None

    @property
    def is_api(self) -> bool:
        """Whether any number of threads may ask it."""
        return bool(getattr(self.cls, "is_api", False))

    @property
    def is_ours(self) -> bool:
        return hasattr(self.cls, "describe")


CUSTOM_PROMPTS: dict[str, CustomPrompt] = {}
"""The words in which models of this command are asked, by their names."""


def with_system(entry: Entry, prompt: CustomPrompt | None) -> Entry:
    """Return an entry of the host's own class that is given the system text of a prompt.

    Our classes get it with every message.

    Raises:
        ValueError: the class takes none.
    """
    if prompt is None or prompt.system is None or entry.is_ours:
        return entry
    if entry.cls is None or "system_prompt" not in inspect.signature(entry.cls).parameters:
        name = entry.cls.__name__ if entry.cls else "class"
        raise ValueError(f"--system: VLMEvalKit's {name} takes no system text. Leave it out")
    more = {"system_prompt": prompt.system}
    return replace(entry, arguments={**entry.arguments, **more}, given={**entry.given, **more})


def entry_of(model: str, settings: Mapping[str, Any] | None = None) -> Entry:
    """The entry of a model: that of the ``--config`` file, else that of ``supported_VLM``.

    Args:
        model: its name.
        settings: more arguments, which go before the entry's.
    """
    said = dict(_config_models().get(model, {}))
    if "class" in said:
        import vlmeval.api
        import vlmeval.vlm

        name = said.pop("class")
        cls = getattr(vlmeval.api, name, None) or getattr(vlmeval.vlm, name, None)
        given = {**said, **(settings or {})}
        return Entry(cls, given, given, _source_of(cls))
    from vlmeval.config import supported_VLM

    maker = supported_VLM.get(model)
    cls = getattr(maker, "func", maker)
    own = getattr(maker, "keywords", {})
    given = {**_own_settings(model, cls), **said, **(settings or {})}
    known = cls if inspect.isclass(cls) else None
    return Entry(known, {**own, **given}, given, _source_of(cls))


def _source_of(maker: object) -> str | None:
    """A hash of the files that a class and those bases of it that came with it are written in."""
    classes = inspect.getmro(maker) if inspect.isclass(maker) else (maker,)
    package = _package(maker)
    if package in ("", _package(Entry)):
        return None
    files = set()
    for one in classes:
        with suppress(TypeError, OSError):
            if _package(one) == package and (path := inspect.getsourcefile(one)):  # type: ignore[arg-type]
                files.add(Path(path))
    try:
        hashes = [file_sha256(path) for path in sorted(files)]
    except OSError:
        return None
    return f"sha256:{sha256_of(''.join(hashes).encode())[:12]}" if hashes else None


def _package(maker: object) -> str:
    return str(getattr(maker, "__module__", "")).partition(".")[0]


def _own_settings(model: str, cls: Any) -> Mapping[str, Any]:
    """Those of a model of one's own on this machine, on which its answers depend.

    The space is recorded with every reply.
    """
    row = find_model(model) if hasattr(cls, "on_this_machine") else None
    return {k: v for k, v in row.settings.items() if k != "space"} if row else {}


def described(model: str, entry: Entry, question: Question) -> Described:
    """What a run of an entry over a question is, as far as is known without loading anything.

    Raises:
        ValueError: its arguments cannot be used.
    """
    if entry.is_ours:
        try:
            found: Described = entry.cls.describe(question, **entry.arguments)  # type: ignore[union-attr]
        except TypeError as error:
            raise ValueError(f"the entry of {model}: {error}") from None
        return found._replace(answering=replace(found.answering, source=entry.source))
    if question.reply_schema is not None:
        raise ValueError(
            f"{model} is run by VLMEvalKit's own class, which decodes freely: {question.name} "
            "needs a model of ours, or a server (--base-url)"
        )
    row = find_model(model)
    space = stock_space(model, entry) or (row.space(question).as_dict() if row else None)
    checkpoint = entry.arguments.get("model_path") or entry.arguments.get("model")
    answering = Answering(
        kind=entry.cls.__name__ if entry.cls is not None else None,
        row=row.name if row else None,
        checkpoint=str(checkpoint) if checkpoint else None,
        revision=known_revision(str(checkpoint)) if checkpoint else None,
        endpoint=_address(flag("--base-url")),
        settings=scrubbed({**_plain(entry.arguments), **_sampling_flags()}),
        source=entry.source,
        runs_here=not entry.is_api,
        in_vlmevalkit=True,
    )
    return Described(answering, space)


def _address(url: str | None) -> str | None:
    """A server's address without credentials."""
    return None if url is None else Endpoint(url).name


def on_this_machine(entry: Entry, found: Answering) -> Answering:
    """The same with what torch and the hub say, where the model runs here."""
    look = getattr(entry.cls, "on_this_machine", None)
    return found if look is None else look(found, **entry.arguments)


def asked_with(entry: Entry, found: Answering) -> dict[str, Any]:
    """What of an entry is part of every call's key.

    A local checkpoint is known by its files, whatever its path.
    """
    own = getattr(entry.cls, "asked_with", None)
    if own is not None:
        return dict(own(**entry.arguments))
    local = entry.is_ours and found.runs_here
    return given_key(_plain(entry.given), found.revision or found.checkpoint if local else None)


# --- the host's own -------------------------------------------------------------------------------


def stock_space(model: str, entry: Entry) -> Mapping[str, Any] | None:
    """The resize bounds of one of the host's own Qwen2.5-VL entries, as a coordinate space.

    The host's entries set other bounds than the paper's runs; scored within the wrong ones, perfect
    boxes reach a recall of a few percent.
    """
    words = entry.arguments
    if not model.startswith("Qwen2.5-VL") or entry.is_ours:
        return None
    if "min_pixels" not in words or "max_pixels" not in words:
        return None
    return {
        "kind": "smart_resize",
        "min_pixels": words["min_pixels"],
        "max_pixels": words["max_pixels"],
    }


def _plain(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as a record can hold them: values of JSON as they are, functions by name."""
    return {
        name: value if isinstance(value, str | int | float | bool | list | dict | None)
        else getattr(value, "__name__", type(value).__name__)
        for name, value in arguments.items()
        if name not in ("key", "budget", "headers")
    }  # fmt: skip


_SAMPLING = ("--temperature", "--top-k", "--top-p", "--repetition-penalty", "--max-tokens")


def _sampling_flags() -> dict[str, Any]:
    """The host's flags that change what its own classes answer."""
    return {name.lstrip("-"): value for name in _SAMPLING if (value := flag(name)) is not None}


# --- the host's command line ----------------------------------------------------------------------


def flag(name: str) -> str | None:
    """The value of a flag of this process's command line; None where it was not given.

    Upstream's runner hands none of them to datasets and models that are not its own.
    """
    for word, value in pairwise([*sys.argv[1:], ""]):
        if word == name and value:
            return value
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
    return None


def has_flag(name: str) -> bool:
    """Whether a flag without a value stands on this process's command line."""
    return name in sys.argv[1:]


def config() -> Mapping[str, Any]:
    """The host's ``--config`` file of this process; empty where there is none."""
    path = flag("--config")
    return _read_config(path) if path else {}


@cache
def _read_config(path: str) -> Mapping[str, Any]:
    try:
        values = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}  # the host says what is wrong with it
    return values if isinstance(values, dict) else {}


def _config_models() -> Mapping[str, Mapping[str, Any]]:
    models = config().get("model")
    return models if isinstance(models, dict) else {}


def renamed_datasets() -> dict[str, str]:
    """Names in the configuration's data that are not their dataset's: name -> dataset.

    The host names prediction files by the dataset and looks for them by the name.
    """
    data = {**_mapping(config().get("data")), **_mapping(_json_flag("--data-config"))}
    return {
        name: str(said["dataset"])
        for name, said in data.items()
        if isinstance(said, dict)
        and is_ours_entry(name, said)
        and said.get("dataset", name) != name
    }


def _json_flag(name: str) -> Any:
    try:
        return json.loads(flag(name) or "null")
    except ValueError:
        return None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def with_space(entry: Entry, space: Any) -> Entry:
    """An entry of ours that is told its coordinate space; others keep theirs."""
    if space is None or not entry.is_ours or not hasattr(entry.cls, "takes_space"):
        return entry
    return replace(entry, arguments={**entry.arguments, "space": space})

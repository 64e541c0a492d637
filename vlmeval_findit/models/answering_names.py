"""Whether the model that says it answered is the model that was asked, by their names.

Services add the date of a snapshot, servers the path of a file, its quantisation or a maker: all of
these are one model. ``gpt-4o`` and ``gpt-4o-mini`` are two, as are two dated snapshots.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from .model_row import ModelRow

_HASH = re.compile(r"[0-9a-f]{32,64}")
_FOLDERS = frozenset({"snapshots", "models", "model", "checkpoints", "weights", "final", "main"})
_FILE = re.compile(r"(?:[-.]\d{5}-of-\d{5})?\.(?:gguf|ggml|bin|safetensors|pt|pth|engine)$")
_HUB_FOLDER = re.compile(r"^models--(?:.*--)?")
_MAKER = re.compile(r"^(?:[a-z]+\.)+(?=[a-z])")  # us.anthropic.claude-…
_TAG = re.compile(r"(?:-v\d+)?[:@].*$")  # Of Ollama, OpenRouter, Vertex; Bedrock's -v2:0
_SIZE_TAG = re.compile(r":(?=\d+(?:\.\d+)?[bm]\b)")  # qwen2.5vl:7b

_SNAPSHOT = r"""(?:
      20\d\d[-_.]?(?:0[1-9]|1[0-2])(?:[-_.]?(?:0[1-9]|[12]\d|3[01]))?   # 2026-01, 20260131
    | (?:0[1-9]|1[0-2])[-_]?(?:0[1-9]|[12]\d|3[01])                     # 05-06, 0709
    | 2[3-9](?:0[1-9]|1[0-2])                                           # 2411
    | 00\d                                                              # -001
    )"""
_SNAPSHOTS = re.compile(rf"(?<![a-z0-9]){_SNAPSHOT}(?![a-z0-9])", re.VERBOSE)
_DETAILS = re.compile(
    rf"""(?<![a-z0-9])(?:
      {_SNAPSHOT}
    | latest | preview | exp | experimental | stable | default
    | gguf | ggml | hf | mlx | onnx | awq | gptq | exl[23] | bnb | unsloth | imat | ud | dynamic
    | i?q\d(?:[-_](?:k|[01]|xxs|xs|s|m|l|xl|nl))*
    | (?:bf|fp|f|nf|mxfp|nvfp|int|uint)\d+(?:[-_]?(?:dynamic|block|e4m3|e5m2))?
    | w\d+a\d+ | \d+[-_]?bits? | \d+bpw | \d+k
    )(?![a-z0-9])""",
    re.VERBOSE,
)
_SIZE = re.compile(r"[ae]?\d+(?:\.\d+)?[bm]")
_WAYS = frozenset({"instruct", "it", "chat", "thinking", "reasoning", "nothink"})
_SAME_WAY = {"it": "instruct", "chat": "instruct", "reasoning": "thinking", "nothink": "instruct"}


class _Name(NamedTuple):
    words: tuple[str, ...]
    sizes: tuple[str, ...]
    ways: frozenset[str]
    snapshots: tuple[str, ...]  # the digits of dates and numbers


def may_be_same_model(asked: str, answered: str) -> bool:
    """Return whether two names may be of one model; names that say nothing may be of any.

    >>> may_be_same_model("gpt-4o", "openai/gpt-4o-2026-01-31")
    True
    >>> may_be_same_model("gpt-4o", "gpt-4o-mini")
    False
    >>> may_be_same_model("Qwen/Qwen3-VL-8B-Instruct", "/models/qwen3-vl-8b-instruct-Q4_K_M.gguf")
    True
    """
    left = _name(asked)
    right = _name(answered)
    if not left.words or not right.words:
        return True
    return left.words == right.words and _agree(left, right)


def is_other_model(asked: Sequence[str], answered: str) -> bool:
    """Return whether another model answered than the one that was asked by some names.

    The first name that is of the family of ``answered`` decides: names behind it say less, as a
    result's name, which its user chose.

    >>> is_other_model(["Qwen3-VL-8B-Instruct", "Qwen3-VL-8B"], "Qwen3-VL-8B-Thinking")
    True
    >>> is_other_model(["my-server", "Qwen3-VL-8B"], "Qwen/Qwen3-VL-8B-Thinking")
    False
    """
    right = _name(answered)
    names = [_name(name) for name in asked]
    if not right.words or not all(name.words for name in names):
        return False
    deciding = next((name for name in names if name.words == right.words), None)
    return deciding is None or not _agree(deciding, right)


def names_asked(served: str, model: str, row: ModelRow | None) -> list[str]:
    """Return the names by which a model was asked, for :func:`is_other_model`.

    A row of which all checkpoints are instructed, say, is asked as that: its name means no other.

    Args:
        served: the name in its requests.
        model: the name of its results.
        row: of the model table (None: not known).
    """
    if row is None:
        return [served, model]
    checkpoints = row.local.checkpoints.values() if row.local is not None else ()
    ways = {_name(identifier).ways for identifier in checkpoints}
    usual = "-".join(next(iter(ways))) if len(ways) == 1 else ""
    return [served, *(_in_its_way(name, usual) for name in (model, row.name))]


def _in_its_way(name: str, usual: str) -> str:
    return name if _name(name).ways or not usual else f"{name}-{usual}"


def _agree(left: _Name, right: _Name) -> bool:
    """Return whether two names of a family agree in all that both state."""
    stated = ((left.sizes, right.sizes), (left.ways, right.ways))
    are_equal = all(not one or not other or one == other for one, other in stated)
    return are_equal and _may_be_one_snapshot(left.snapshots, right.snapshots)


def _may_be_one_snapshot(left: Sequence[str], right: Sequence[str]) -> bool:
    """Return whether dates may be of one snapshot: some are shortened (0125, 2025-01)."""
    if not left or not right:
        return True
    return any(
        one.startswith(other) or one.endswith(other) or other.startswith(one) or other.endswith(one)
        for one in left
        for other in right
    )


def _name(text: str) -> _Name:
    last = _last_part(text)
    plain = _DETAILS.sub(" ", last)
    plain = re.sub(r"(?<=\d)[.](?=\d+(?![0-9.]*[bm]\b))", " ", plain)
    parts = re.findall(r"[a-z]*\d+\.\d+[bm]\b|[^\W_]+", plain)
    sizes = [part for part in parts if _SIZE.fullmatch(part)]
    ways = {_SAME_WAY.get(part, part) for part in parts if part in _WAYS}
    words = [part for part in parts if part not in sizes and part not in _WAYS]
    # qwen3-vl, qwen-3-vl and qwen3vl are one name
    pieces = re.findall(r"[^\W\d_]+|\d+", " ".join(words))
    snapshots = tuple(re.sub(r"\D", "", found) for found in _SNAPSHOTS.findall(last))
    return _Name(tuple(sorted(pieces)), tuple(sorted(sizes)), frozenset(ways), snapshots)


def _last_part(name: str) -> str:
    """Return the last part of a name or path that names a model, in lower case."""
    text = _SIZE_TAG.sub("-", name.strip().lower())
    parts = [_part(part) for part in re.split(r"[/\\]+", text)]
    named = [part for part in parts if part and not _says_nothing(part)]
    return named[-1] if named else ""


def _part(part: str) -> str:
    part = _HUB_FOLDER.sub("", _FILE.sub("", part))
    return _MAKER.sub("", _TAG.sub("", part))


def _says_nothing(part: str) -> bool:
    words = re.findall(r"[^\W_]+", _DETAILS.sub(" ", part))
    return _HASH.fullmatch(part) is not None or all(word in _FOLDERS for word in words)

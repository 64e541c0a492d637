"""A ``--config`` of VLMEvalKit's runner whose keys would be dropped is refused.

So is a checkpoint of which nothing says what model it is.

Of a key that stands twice the runner would read the last, so a model of the file would not be
asked. Of a dataset's entry it passes the keys that the class knows, and drops others.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..core import (
    EXIT_REFUSED,
    EqualKeysError,
    TextError,
    object_or_empty,
    parse_json,
    quoted_value,
    read_text,
    suggestion,
)
from ..models import row_to_run


def refuse_dropped_keys() -> None:
    """End the runner with what is wrong with its ``--config``, if keys would be dropped."""
    try:
        check_config(sys.argv[1:])
    except ValueError as error:
        sys.stderr.write(f"error: {error}\n")
        raise SystemExit(EXIT_REFUSED) from None


def check_config(arguments: Sequence[str]) -> None:
    """Raise a ValueError that names file and entry, if a ``--config`` has keys that are dropped.

    These are keys that stand twice, and unknown keys of our datasets. Refused, too, are checkpoints
    of which nothing says what they are: the runner would end before the models behind. Whatever
    else is wrong is VLMEvalKit's to say, or our models' when they are made.
    """
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--config")
    config = parser.parse_known_args(arguments)[0].config
    if config is None or not config.endswith(".json"):
        return
    try:
        values = parse_json(read_text(Path(config)))
    except EqualKeysError as error:
        raise ValueError(error.message_for(config)) from None
    except (OSError, TextError):
        return
    for name, entry in object_or_empty(object_or_empty(values).get("model")).items():
        try:
            _check_like(object_or_empty(entry))
        except ValueError as error:
            raise ValueError(f"{config}: model.{name}: {error}") from None
    for name, entry in object_or_empty(object_or_empty(values).get("data")).items():
        for key in object_or_empty(entry):
            known = dataset_keys().get(str(entry.get("class")), (key,))
            if key not in ("class", *known):
                why = f"unknown key {quoted_value(key)}{suggestion(key, known)}"
                raise ValueError(f"{config}: data.{name}: {why}")


def _check_like(entry: Mapping[str, Any]) -> None:
    """Refuse a checkpoint without ``like`` whose files do not decide what it is."""
    if entry.get("class") == "FindItLocalModel" and entry.get("like") is None:
        checkpoint = entry.get("model_path")
        row_to_run(None, checkpoint and str(checkpoint), entry.get("space"))


def dataset_keys() -> Mapping[str, Sequence[str]]:
    """Return the keys of an entry besides its class, by the names of our datasets' classes."""
    # Imported late: VLMEvalKit imports this while it is itself imported.
    from .datasets import dataset_classes

    return {cls.__name__: tuple(inspect.signature(cls).parameters) for cls in dataset_classes()}

"""A ``--config`` of VLMEvalKit's runner whose keys stand twice is refused.

The runner would read the last of them only: a model of the file would not be asked.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ..core import EXIT_REFUSED, TextError, parse_json, read_text


def refuse_repeated_keys() -> None:
    """End the runner with what is wrong with its ``--config``, if keys stand twice."""
    try:
        check_config(sys.argv[1:])
    except ValueError as error:
        sys.stderr.write(f"error: {error}\n")
        raise SystemExit(EXIT_REFUSED) from None


def check_config(arguments: Sequence[str]) -> None:
    """Raise a ValueError that names file and key, if a ``--config`` has a key twice.

    Whatever else is wrong is VLMEvalKit's to say.
    """
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--config")
    config = parser.parse_known_args(arguments)[0].config
    if config is None or not config.endswith(".json"):
        return
    try:
        text = read_text(Path(config))
        parse_json(text)
    except (OSError, TextError):
        return
    try:
        parse_json(text, unique=True)
    except TextError as error:
        raise ValueError(error.message_for(config)) from None

"""How a command asks its models, seen without a model."""

from __future__ import annotations

from importlib import import_module

import pytest

from vlmeval_findit.cli import main
from vlmeval_findit.engine import Asking
from vlmeval_findit.models import ModelEntry


class _SeenError(ValueError):
    pass


def asked_so(line: list[str], patch: pytest.MonkeyPatch) -> Asking:
    """Type a line, end before anything is checked or asked, and return how it would ask."""
    seen: list[Asking] = []

    def keep(entry: ModelEntry, asking: Asking) -> None:
        seen.append(asking)
        raise _SeenError

    with patch.context() as until_then:
        who = import_module("vlmeval_findit.cli.who_answers")
        until_then.setattr(who, "deployment_of", keep)
        assert main(line) == 2
    return seen[0]

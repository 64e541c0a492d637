"""Modules that import torch: only a process that uses one in a test imports it."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Late:
    """A module that is imported when a name in it is first asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # pytest looks for names of its own in whatever a file holds
            raise AttributeError(name)
        return getattr(import_module(self._name), name)

"""Read YAML into dataclasses, with line numbers for error messages."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import yaml

from .text_files import TextError, parse_yaml
from .validation import MisplacedError, validate

T = TypeVar("T")


class ConfigError(ValueError):
    """A file of settings cannot be used; the message has its name, the line, and the reason."""


class YamlText:
    """A YAML text with the lines of its ``value``; a ConfigError if it is not YAML, or empty."""

    def __init__(self, text: str, name: str) -> None:
        self._name = name
        try:
            self.value, top = parse_yaml(text)
        except TextError as error:
            raise ConfigError(error.message_for(name)) from None
        if top is None:
            raise ConfigError(f"{name}, line 1: the file is empty")
        self._top = top

    def read(self, kind: type[T], *at: str | int) -> T:
        """Return the value at a place as a Config; a ConfigError names file and line."""
        value = self.value
        for key in at:
            value = value[key]
        try:
            return validate(kind, value)
        except MisplacedError as error:
            raise self.error(str(error), *at, *error.at, is_key=error.is_key) from None

    def error(self, why: str, *at: str | int, is_key: bool = False) -> ConfigError:
        return ConfigError(f"{self.place(*at, is_key=is_key)}{why}")

    def place(self, *at: str | int, is_key: bool = False) -> str:
        """Return file and line of the value at a place, or of its key, to begin a message."""
        return f"{self._name}, line {self.line(*at, is_key=is_key)}: "

    def line(self, *at: str | int, is_key: bool = False) -> int:
        """Return the line of the value at a place, or of its key, from 1."""
        entry = _YamlEntry(self._top, self._top)
        for key in at:
            # A single value may stand for a list, and pydantic names branches of unions.
            entry = _child(entry.value, key) or entry
        node = entry.key if is_key else entry.value
        return 1 + int(node.start_mark.line)


class _YamlEntry(NamedTuple):
    """A value in YAML, and its key; in a list both are the value."""

    key: yaml.Node
    value: yaml.Node


def _child(node: yaml.Node, key: str | int) -> _YamlEntry | None:
    """Return what a mapping or a list has under a key; None if nothing."""
    if isinstance(node, yaml.MappingNode):
        for key_node, value in node.value:
            if key_node.value == str(key):
                return _YamlEntry(key_node, value)
    if isinstance(node, yaml.SequenceNode) and isinstance(key, int):
        return _YamlEntry(node.value[key], node.value[key])
    return None

"""Read YAML into dataclasses, with line numbers for error messages."""

from __future__ import annotations

from typing import TypeVar

import yaml

from .text_files import TextError, parse_yaml
from .validation import MisplacedError, validate

T = TypeVar("T")


class ConfigError(ValueError):
    """A file of settings cannot be used; the message has its name, the line, and the reason."""


class YamlText:
    """A YAML text: its ``value`` and all lines; a ConfigError if it is none or repeats a key."""

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
        return ConfigError(f"{self._name}, line {self.line(*at, is_key=is_key)}: {why}")

    def line(self, *at: str | int, is_key: bool = False) -> int:
        """Return the line of the value at a place, or of its key, from 1."""
        node = key_node = self._top
        for key in at:
            # A single value may stand for a list, and pydantic names branches of unions.
            key_node, node = _child(node, key) or (key_node, node)
        return 1 + int((key_node if is_key else node).start_mark.line)


def _child(node: yaml.Node, key: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    """Return a child's key (of a list: itself) and the child."""
    if isinstance(node, yaml.MappingNode):
        return next((pair for pair in node.value if pair[0].value == str(key)), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(key, int):
        return node.value[key], node.value[key]
    return None

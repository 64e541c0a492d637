"""YAML with line numbers for error messages."""

from __future__ import annotations

from typing import Any, TypeVar

import yaml

from .config import ConfigError, MisplacedError, config_from

T = TypeVar("T")


class YamlText:
    """A YAML text: its ``value`` and the lines of all parts; ``name`` is the file's.

    Raises:
        ConfigError: it is not YAML, empty, or says a key twice.
    """

    def __init__(self, text: str, name: str) -> None:
        self._name = name
        loader = _Loader(text)
        try:
            top = loader.get_single_node()
            self.value: Any = None if top is None else loader.construct_document(top)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            where = f", line {mark.line + 1}" if mark is not None else ""
            why = getattr(error, "problem", None) or " ".join(str(error).split())
            is_yaml = isinstance(error, yaml.constructor.ConstructorError)
            raise ConfigError(f"{name}{where}: {'' if is_yaml else 'not YAML: '}{why}") from None
        finally:
            loader.dispose()
        if top is None:
            raise ConfigError(f"{name}, line 1: the file is empty")
        self._top = top

    def read(self, kind: type[T], *at: str | int) -> T:
        """Return the value at a place as a Config; a ConfigError names file and line."""
        value = self.value
        for key in at:
            value = value[key]
        try:
            return config_from(kind, value)
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


class _Loader(yaml.SafeLoader):
    """Refuses repeated keys."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                why = f"{key.value} stands twice"
                raise yaml.constructor.ConstructorError(None, None, why, key.start_mark)
            seen.add(str(key.value))
        return node

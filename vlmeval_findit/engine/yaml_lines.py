"""YAML values that know their line, so that a message can say where."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

from ..core.spelling import nearest


class ConfigError(ValueError):
    """A file that cannot be used; the message names file, line and reason."""


class YamlValue:
    """A value of a YAML file and where it stands.

    ``line`` counts from 1; ``value`` is the plain value.
    """

    def __init__(self, node: Any, file: str) -> None:
        self._node = node
        self._file = file
        self.line: int = node.start_mark.line + 1
        self.value: Any = _plain(node, self)

    def error(self, why: str) -> ConfigError:
        """An error about this value."""
        return ConfigError(f"{self._file}, line {self.line}: {why}")

    @property
    def is_mapping(self) -> bool:
        return isinstance(self._node, yaml.MappingNode)

    def fields(self, known: Iterable[str]) -> dict[str, YamlValue]:
        """The values of a mapping by key.

        Raises:
            ConfigError: it is no mapping, a key is not known or stands twice.
        """
        known = list(known)
        if not self.is_mapping:
            raise self.error(f"should be a mapping with the keys {', '.join(known)}")
        found: dict[str, YamlValue] = {}
        for key_node, node in self._node.value:
            key = YamlValue(key_node, self._file)
            if key.value not in known:
                raise key.error(f"no key {key.value!r}{nearest(str(key.value), known)}")
            if key.value in found:
                raise key.error(f"{key.value} stands twice")
            found[key.value] = YamlValue(node, self._file)
        return found

    def entries(self) -> list[YamlValue]:
        """The entries of a list; a value alone is a list of one.

        Raises:
            ConfigError: the list is empty.
        """
        if not isinstance(self._node, yaml.SequenceNode):
            return [self]
        if not self._node.value:
            raise self.error("an empty list")
        return [YamlValue(node, self._file) for node in self._node.value]


def compose(text: str, file: str) -> YamlValue:
    """The top of a YAML text.

    Raises:
        ConfigError: it is not YAML, or empty.
    """
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        why = getattr(error, "problem", None) or error
        raise ConfigError(f"{file}{where}: not YAML: {why}") from None
    if node is None:
        raise ConfigError(f"{file}, line 1: the file is empty")
    return YamlValue(node, file)


def _plain(node: Any, given: YamlValue) -> Any:
    loader = yaml.SafeLoader("")
    try:
        return loader.construct_document(node)
    except yaml.YAMLError as error:
        raise given.error(getattr(error, "problem", None) or str(error)) from None
    finally:
        loader.dispose()

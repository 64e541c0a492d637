"""Validate files and flags against dataclasses, with pydantic (imported only when used)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar

import yaml

from .formatting import nearest, plain, shown
from .text_files import TextError, parse_yaml

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, TypeAdapter, ValidationError
    from pydantic_core import CoreSchema

T = TypeVar("T")


class ConfigError(ValueError):
    """A value cannot be used; the message says where it stands, and why."""


class MisplacedError(ConfigError):
    """A part of a value cannot be used: ``at`` leads from the value to it, or to its key."""

    def __init__(self, why: str, *at: str | int, is_key: bool = False) -> None:
        super().__init__(why)
        self.at = at
        self.is_key = is_key


def refuse_twice(values: Sequence[Any], *at: str) -> None:
    """Refuse a value that stands twice in a list, with a :class:`MisplacedError`."""
    for place, value in enumerate(values):
        if list(values).count(value) > 1:
            raise MisplacedError(f"{plain(value)} stands twice", *at, place)


# --- types of fields ------------------------------------------------------------------------------


class Config:
    """A dataclass whose fields are the only keys allowed; ``line`` is set by the reader instead."""

    __slots__ = ()
    __pydantic_config__: ClassVar[Any] = {"arbitrary_types_allowed": True}
    called: ClassVar[str] = "key"  # What messages call a key
    read_before: ClassVar[tuple[str, ...]] = ()  # Keys that are taken out before

    @classmethod
    def __get_pydantic_core_schema__(cls, kind: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema

        return core_schema.no_info_before_validator_function(cls._with_known_keys, handler(kind))

    @classmethod
    def _with_known_keys(cls, values: Any) -> Any:
        keys = [field for field in fields(cls) if field.name != "line"]  # type: ignore[arg-type]
        keys.sort(key=lambda key: not (key.default is key.default_factory is MISSING))
        known = [key.name for key in keys]
        if not isinstance(values, Mapping):
            raise ValueError(f"should be a mapping with the keys {', '.join(known)}")
        for key in values:
            if key not in known:
                why = f"no {cls.called} {shown(key)}{nearest(str(key), [*known, *cls.read_before])}"
                raise MisplacedError(why, key, is_key=True)
        return values


class Expected:
    """Describes the expected value; ``limits`` are pydantic core's, ``secret`` hides the value."""

    def __init__(self, words: str, *, secret: bool = False, **limits: Any) -> None:
        self._words = words
        self._type = "secret" if secret else "expected"
        self._limits = limits

    def __get_pydantic_core_schema__(self, kind: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema

        limited: Any = {**handler(kind), **self._limits}
        return core_schema.custom_error_schema(
            limited, self._type, custom_error_message=self._words
        )


class Checked:
    """Passes a value through a function after (or ``before``) its type check; it may refuse."""

    def __init__(self, check: Callable[[Any], Any], *, before: bool = False) -> None:
        self._check = check
        self._before = before

    def __get_pydantic_core_schema__(self, kind: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema

        if self._before:
            return core_schema.no_info_before_validator_function(self._check, handler(kind))
        return core_schema.no_info_after_validator_function(self._check, handler(kind))


def _as_list(value: Any) -> Any:
    if value == []:
        raise ValueError("an empty list")
    return value if isinstance(value, list) else [value]


Name = Annotated[str, Expected("a name", strict=True, min_length=1)]
Text = Annotated[str, Expected("a text", strict=True)]
YesNo = Annotated[bool, Expected("true or false", strict=True)]
Whole = Annotated[int, Expected("a whole number", strict=True)]
Count = Annotated[int, Expected("a whole number, at least 1", strict=True, ge=1)]
_NUMBER: Mapping[str, Any] = {"strict": True, "allow_inf_nan": False}
Number = Annotated[float, Expected("a number, at least 0", ge=0, **_NUMBER)]
Seconds = Annotated[float, Expected("seconds, more than 0", gt=0, **_NUMBER)]
Dollars = Annotated[float, Expected("US dollars, more than 0", gt=0, **_NUMBER)]
Values = Annotated[Mapping[str, Any], Expected("a mapping of names to values")]
# A list; a value alone stands for a list of it
Several = Annotated[tuple[T, ...], Checked(_as_list, before=True)]
SeveralOrAll = Annotated[
    tuple[T, ...] | Literal["all"],
    Checked(lambda value: value if value == "all" else _as_list(value), before=True),
]


def config_from(kind: type[T], values: Any, spelled: Callable[[str], str] = lambda key: key) -> T:
    """Make a :class:`Config`, or raise a MisplacedError; ``spelled`` spells names as users do."""
    from pydantic import ValidationError

    adapter: TypeAdapter[T] = _adapter(kind)  # type: ignore[arg-type]
    try:
        return adapter.validate_python(values)
    except ValidationError as error:
        raise _first(error, spelled) from None


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def _first(error: ValidationError, spelled: Callable[[str], str]) -> MisplacedError:
    result = error.errors(include_url=False)[0]
    at, what = result["loc"], result["type"]
    if what == "value_error":
        why = result["ctx"]["error"]
        inner, is_key = getattr(why, "at", ()), getattr(why, "is_key", False)
        return MisplacedError(str(why), *at, *inner, is_key=is_key)
    # pydantic also names the branch of a union: `tuple[…]`.
    names = [spelled(key) for key in at if isinstance(key, str) and "[" not in key]
    if what == "missing":
        return MisplacedError(f"{names[-1]} is missing", *at[:-1])
    given = f"{shown(result['input'])} " if what == "expected" else ""
    expected = result["msg"].removeprefix("Input should be ")
    return MisplacedError(": ".join([*names[-1:], f"{given}should be {expected}"]), *at)


# --- YAML with line numbers for error messages ----------------------------------------------------


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

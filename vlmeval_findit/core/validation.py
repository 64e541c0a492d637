"""Validate what is read from files, servers and YAML: the only way from plain values to types.

Pydantic does it (msgspec for many rows at once), and is imported only when it is used:
:class:`Expected` and :class:`Checked` stand in annotations for its ``Field`` and its validators,
which would take every command 0.1 s to import.
A refusal is a :class:`MisplacedError`; who reads knows file and row, and adds them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from functools import cache
from inspect import signature
from math import isfinite
from sys import float_info
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar

from .formatting import suggestion
from .quoted_values import plain_value, quoted_value
from .redaction import is_secret_name

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, TypeAdapter, ValidationError
    from pydantic_core import CoreSchema, ErrorDetails

T = TypeVar("T")


class MisplacedError(ValueError):
    """A part of a value cannot be used: ``at`` leads from the value to it, or to its key.

    ``why`` is the message without the ``name`` of the part.
    """

    def __init__(self, why: str, *at: str | int, is_key: bool = False, name: str = "") -> None:
        super().__init__(f"{name}: {why}" if name else why)
        self.why = why
        self.at = at
        self.is_key = is_key

    @property
    def place(self) -> tuple[str | int, ...]:
        """Return the way to the part, or to what has the key: ``why`` names the key."""
        return self.at[:-1] if self.is_key else self.at

    def below(self, root: str = "") -> str:
        """Return the message with the whole way to the part, from ``root``.

        >>> MisplacedError("-1 should be a count", "tokens", 3).below("findit")
        'findit.tokens.3: -1 should be a count'
        """
        steps = [root, *self.place] if root else self.place
        path = ".".join(map(str, steps))
        return f"{path}: {self.why}" if path else self.why


def refuse_duplicates(values: Sequence[Any], *at: str) -> None:
    """Raise a :class:`MisplacedError` at the first of equal values in a list."""
    for place, value in enumerate(values):
        if value in values[place + 1 :]:
            raise MisplacedError(f"duplicate {plain_value(value)}", *at, place)


def refuse_unknown(names: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a setting of another name than the known ones; say which is near.

    >>> refuse_unknown(["temperatur"], ["model", "temperature"])
    Traceback (most recent call last):
    ValueError: unknown setting 'temperatur': did you mean temperature?
    """
    known = list(dict.fromkeys(known))
    for name in names:
        if name not in known:
            raise ValueError(f"unknown setting {name!r}{suggestion(name, known)}")


def names_of_arguments(function: Callable[..., Any]) -> list[str]:
    """Return the names of a function's arguments, but for ``self`` and those of any name."""
    given = signature(function).parameters.values()
    return [
        each.name for each in given if each.kind is not each.VAR_KEYWORD and each.name != "self"
    ]


# --- types of fields ------------------------------------------------------------------------------


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


def row_of(table: Collection[str], what: str, *others: str) -> Checked:
    """Refuse a name that is neither a row of a table nor one of ``others``; say which is near."""

    def check(name: str) -> str:
        if name not in others and name not in table:
            raise ValueError(f"unknown {what} {name!r}{suggestion(name, table)}")
        return name

    return Checked(check)


# A text of at least one character
Name = Annotated[str, Expected("a name", strict=True, min_length=1)]
# A text, which may be empty; numbers are not converted
Text = Annotated[str, Expected("a text", strict=True)]
# True or false; 0, 1 and "yes" are refused
YesNo = Annotated[bool, Expected("true or false", strict=True)]
Whole = Annotated[int, Expected("a whole number", strict=True)]  # A whole number of any sign
# A whole number, at least 1
Count = Annotated[int, Expected("a whole number, at least 1", strict=True, ge=1)]
_NUMBER: Mapping[str, Any] = {"strict": True, "allow_inf_nan": False}
# A number of any sign, neither NaN nor infinite
Finite = Annotated[float, Expected("a finite number", **_NUMBER)]
# A finite number, at least 0
Number = Annotated[float, Expected("a number, at least 0", ge=0, **_NUMBER)]
# A number from 0 to 1
Share = Annotated[float, Expected("a number from 0 to 1", ge=0, le=1, **_NUMBER)]
# Seconds, more than 0
Seconds = Annotated[float, Expected("seconds, more than 0", gt=0, **_NUMBER)]
# US dollars, more than 0
Dollars = Annotated[float, Expected("US dollars, more than 0", gt=0, **_NUMBER)]
# A mapping of names to values that are not checked
Values = Annotated[Mapping[str, Any], Expected("a mapping of names to values")]


def _as_list(value: Any) -> Any:
    if value == []:
        raise ValueError("the list is empty")
    return value if isinstance(value, list) else [value]


# A list; a value alone stands for a list of it
Several = Annotated[tuple[T, ...], Checked(_as_list, before=True)]
# A list, or a value alone for a list of it, or the word "all"
SeveralOrAll = Annotated[
    tuple[T, ...] | Literal["all"],
    Checked(lambda value: value if value == "all" else _as_list(value), before=True),
]


# --- dataclasses ----------------------------------------------------------------------------------


class Config:
    """A dataclass whose fields are the only keys allowed; the reader sets ``where`` instead."""

    __slots__ = ()
    __pydantic_config__: ClassVar[Any] = {"arbitrary_types_allowed": True}
    called: ClassVar[str] = "key"  # What messages call a key
    read_before: ClassVar[tuple[str, ...]] = ()  # Keys that are taken out before
    instead_of_secret: ClassVar[str] = ""  # What to do instead of writing a secret there
    belong_elsewhere: ClassVar[Mapping[str, str]] = {}  # Where keys of other levels belong

    @classmethod
    def __get_pydantic_core_schema__(cls, kind: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema

        return core_schema.no_info_before_validator_function(cls._with_known_keys, handler(kind))

    @classmethod
    def _with_known_keys(cls, values: Any) -> Any:
        keys = [field for field in fields(cls) if field.name != "where"]  # type: ignore[arg-type]
        keys.sort(key=_has_default)  # Keys that must be given come first
        known = [key.name for key in keys]
        if not isinstance(values, Mapping):
            raise ValueError(f"should be a mapping with the keys {', '.join(known)}")
        for key in values:
            if key not in known:
                near = suggestion(str(key), [*known, *cls.read_before])
                if key in cls.belong_elsewhere:
                    why = f"write `{key}` {cls.belong_elsewhere[key]}, not here"
                    raise MisplacedError(why, key, is_key=True)
                if cls.instead_of_secret and is_secret_name(str(key)):
                    near = f": {cls.instead_of_secret}"
                raise MisplacedError(
                    f"unknown {cls.called} {quoted_value(key)}{near}", key, is_key=True
                )
        return values


def _has_default(key: Field[Any]) -> bool:
    return key.default is not MISSING or key.default_factory is not MISSING


# --- values of JSON -------------------------------------------------------------------------------


def _finite(value: Any, *at: str | int) -> Any:
    """Return a value of JSON; a MisplacedError for NaN and infinity, which JSON cannot hold."""
    if isinstance(value, float):
        if not isfinite(value):
            raise MisplacedError(f"{value} should be a finite number", *at)
    elif isinstance(value, dict):
        for key, part in value.items():
            _finite(part, *at, key)
    elif isinstance(value, list):
        for place, part in enumerate(value):
            _finite(part, *at, place)
    return value


LARGEST_NUMBER = int(float_info.max)  # A greater whole number cannot become a float

# Any object of JSON
JsonObject = Annotated[Mapping[str, Any], Expected("a JSON object"), Checked(_finite)]
# A whole number that a float can hold
_WholeOfFloat = Annotated[
    int, Expected("a whole number", strict=True, ge=-LARGEST_NUMBER, le=LARGEST_NUMBER)
]
# As it was written: 3 stays a whole number
PlainNumber = Annotated[_WholeOfFloat | Finite, Expected("a finite number")]


def keys_of(known: type) -> Checked:
    """Check those keys of an object that are fields of a dataclass; the object stays as it is."""

    def check(value: Any) -> Any:
        validate(known, value)
        return value

    return Checked(check)


# --- validation -----------------------------------------------------------------------------------

# What pydantic calls a wrong kind of value, and what should be there
_CONTAINERS = {
    "dataclass_type": "a mapping of names to values",
    "dict_type": "a mapping of names to values",
    "mapping_type": "a mapping of names to values",
    "list_type": "a list",
    "tuple_type": "a list",
}


def validate(kind: type[T], value: Any, spelled: Callable[[str], str] = str) -> T:
    """Return a plain value as a type, or raise a MisplacedError.

    Lists become tuples, and whole numbers floats, where the type says so; the types above convert
    nothing else. ``spelled`` spells names as users do.

    >>> validate(Whole, True)
    Traceback (most recent call last):
    vlmeval_findit.core.validation.MisplacedError: True should be a whole number
    """
    adapter: TypeAdapter[T] = _adapter(kind)  # type: ignore[arg-type]
    try:
        return adapter.validate_python(value)
    except RecursionError:
        raise MisplacedError("it is nested too deeply") from None
    except ValueError as error:
        # Imported only then: every row of a score passes here.
        from pydantic import ValidationError

        if not isinstance(error, ValidationError):
            raise
        raise _misplaced(error, spelled) from None


def parse_lines(kind: type[T], lines: str) -> list[T]:
    """Return lines of JSON as a type, without the rest of them as objects: the way for many rows.

    As strict as the types above, but for their limits; its ValueError is for no person.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Row:
    ...     index: int
    >>> parse_lines(Row, '{"index": 1, "boxes": []}\\n{"index": 2}\\n')
    [Row(index=1), Row(index=2)]
    """
    from msgspec.json import Decoder

    return Decoder(kind).decode_lines(lines)


def parse_plain_json(text: str, kind: Any = Any) -> Any:
    """Parse JSON three times as fast as Python does; its ValueError is for no person.

    What it takes, it reads as Python; it refuses NaN, infinity, numbers beyond floats and halves
    of surrogates. ``kind`` is the type of the value: keys that a TypedDict lacks are passed over.

    >>> parse_plain_json('{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    """
    from msgspec.json import decode

    return decode(text, type=kind)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def _misplaced(error: ValidationError, spelled: Callable[[str], str]) -> MisplacedError:
    """Say in our words what pydantic says first."""
    first = error.errors(include_url=False)[0]
    at = [spelled(step) if isinstance(step, str) else step for step in first["loc"]]
    # pydantic also names the branch of a union: `tuple[…]`.
    names = [step for step in at if isinstance(step, str) and "[" not in step]
    is_key = at[-1:] == ["[key]"]
    if is_key:
        at.pop()
    if first["type"] == "missing":
        return MisplacedError(f"{names[-1]} is missing", *at[:-1])
    if first["type"] == "value_error":
        why = first["ctx"]["error"]
        if isinstance(why, MisplacedError):
            return MisplacedError(why.why, *at, *why.at, is_key=why.is_key)
        return MisplacedError(str(why), *at)
    name = names[-1] if names else ""
    return MisplacedError(_expected(first), *at, is_key=is_key, name=name)


def _expected(error: ErrorDetails) -> str:
    """Say what was expected in place of a value."""
    expected = _CONTAINERS.get(error["type"]) or error["msg"].removeprefix("Input should be ")
    # Only what `Expected` describes is known to be no secret.
    given = f"{quoted_value(error['input'])} " if error["type"] == "expected" else ""
    return f"{given}should be {expected}"

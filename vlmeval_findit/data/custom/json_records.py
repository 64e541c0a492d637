"""Objects of JSON as dataclasses; keys that no field reads go into the ledger."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar, TypeVar

from ..ledger import Ledger
from .annotation_values import validated


class JsonRecord:
    """Base of a dataclass for one object of JSON; its fields are the keys that are read."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]
    called: ClassVar[str]  # In the plural: "shapes"
    not_needed: ClassVar[frozenset[str]] = frozenset()  # Keys that are known, and change no query


RecordT = TypeVar("RecordT", bound=JsonRecord)


def read_record(kind: type[RecordT], value: Any, where: str, ledger: Ledger) -> RecordT:
    """Return an object of JSON as a record, or raise an AnnotationError if it has another form."""
    record: RecordT = validated(kind, value, where)
    unread = value.keys() - {field.name for field in fields(kind)}
    ledger.keys(kind.called, unread, kind.not_needed, where)
    return record

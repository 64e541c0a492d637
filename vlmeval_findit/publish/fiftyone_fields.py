"""Fields of a FiftyOne dataset as its own files describe them: ``metadata.json``, ``samples.json``.

The layout is that of FiftyOne 1.0, which newer versions bring up to date when they read it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

VERSION = "1.0.0"

_FIELDS = "fiftyone.core.fields"
_LABELS = "fiftyone.core.labels"

Document = dict[str, Any]


def object_id(*of: object) -> Document:
    """An identifier that is always the same of the same."""
    digest = hashlib.sha256(repr(of).encode("utf-8", "backslashreplace")).hexdigest()
    return {"$oid": digest[:24]}


def random_of(*of: object) -> float:
    """The place of a sample in FiftyOne's random order, 0 to 1; always the same."""
    digest = hashlib.sha256(repr(of).encode("utf-8", "backslashreplace")).hexdigest()
    return int(digest[:12], 16) / 16**12


def field(
    name: str,
    kind: str,
    *,
    document: str | None = None,
    of: str | None = None,
    fields: Sequence[Document] = (),
    stored: str | None = None,
) -> Document:
    """A field: ``kind`` and ``of`` (its items) are classes of FiftyOne's, ``document`` an embedded
    one with ``fields`` of its own, ``stored`` its name in the database."""
    return {
        "name": name,
        "ftype": f"{_FIELDS}.{kind}",
        "embedded_doc_type": document,
        "subfield": f"{_FIELDS}.{of}" if of else None,
        "fields": list(fields),
        "db_field": stored or name,
        "description": None,
        "info": None,
        "read_only": False,
    }


def default_fields() -> list[Document]:
    """What every dataset of pictures has."""
    size = [
        field("size_bytes", "IntField"),
        field("mime_type", "StringField"),
        *(field(name, "IntField") for name in ("width", "height", "num_channels")),
    ]
    return [
        field("id", "ObjectIdField", stored="_id"),
        field("filepath", "StringField"),
        field("tags", "ListField", of="StringField"),
        field(
            "metadata",
            "EmbeddedDocumentField",
            document="fiftyone.core.metadata.ImageMetadata",
            fields=size,
        ),
        field("_media_type", "StringField"),
        field("_rand", "FloatField"),
        field("_dataset_id", "ObjectIdField"),
    ]


_LABEL = (
    field("id", "ObjectIdField", stored="_id"),
    field("tags", "ListField", of="StringField"),
    field("label", "StringField"),
    field("confidence", "FloatField"),
    field("query", "IntField"),
)


def detections_field(name: str) -> Document:
    """A field of boxes, each with its query, what became of it, and its overlap."""
    own = (
        *_LABEL,
        field("bounding_box", "ListField", of="FloatField"),
        field("eval", "StringField"),
        field("iou", "FloatField"),
    )
    return _labels_field(name, "Detections", "Detection", "detections", own)


def answers_field(name: str) -> Document:
    """A field of one label a query: what its answer was."""
    own = (*_LABEL, field("asked", "StringField"), field("goodness", "FloatField"))
    return _labels_field(name, "Classifications", "Classification", "classifications", own)


def _labels_field(name: str, many: str, one: str, items: str, own: Sequence[Document]) -> Document:
    held = field(
        items, "ListField", document=f"{_LABELS}.{one}", of="EmbeddedDocumentField", fields=own
    )
    document = f"{_LABELS}.{many}"
    return field(name, "EmbeddedDocumentField", document=document, fields=[held])

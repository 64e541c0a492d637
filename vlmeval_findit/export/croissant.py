"""Croissant metadata (MLCommons, version 1.1) of an exported folder: its files, and their columns.

``croissant.json`` is JSON-LD that dataset searches and loaders read. It says what is in the folder
and nothing that nobody stated: without a licence there is none, and no date.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import __version__
from ..core import atomic_write, file_sha256

CROISSANT = "croissant.json"

_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "arrayShape": "cr:arrayShape",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "containedIn": "cr:containedIn",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "description": {"@container": "@language"},
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isArray": "cr:isArray",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "name": {"@container": "@language"},
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
_VERSION = "http://mlcommons.org/croissant/1.1"
# Names of the vocabulary: they look like addresses, and lead nowhere of anybody's
VOCABULARY = frozenset(
    [_VERSION, *(each for each in _CONTEXT.values() if str(each).startswith("http"))]
)
_MEDIA_TYPES = {".parquet": "application/x-parquet", ".json": "application/json"}

# Types of fields, the first that of each number
TEXT = ("sc:Text",)
WHOLE = ("sc:Integer",)
NUMBER = ("sc:Float",)
YES_NO = ("sc:Boolean",)
BOX = ("cr:BoundingBox",)
BOXES = (*NUMBER, *BOX)  # An array of them; loaders read a box by itself only


@dataclass(frozen=True, slots=True)
class DescribedField:
    """A field of records."""

    name: str
    kinds: Sequence[str]
    what: str = ""
    # Of an array, its lengths, -1 where they differ: "-1,4"; "": it is none
    shape: str = ""


@dataclass(frozen=True, slots=True)
class DescribedRecords:
    """Records of one file of the folder."""

    name: str
    what: str
    file: str  # Below the folder
    fields: Sequence[DescribedField]
    # Where they stand in a file of JSON, as $.images[*]; "": fields are columns
    path: str = ""

    @property
    def file_id(self) -> str:
        """What the file is called here: mlcroissant reads lists of one file as one table."""
        return _id(f"{self.file}#{self.path}" if self.path else self.file)


def write_croissant(
    folder: Path,
    name: str,
    what: str,
    records: Sequence[DescribedRecords],
    licences: Iterable[str] = (),
) -> None:
    """Describe the files of a folder; ``licences`` are those that were stated, perhaps none."""
    values: dict[str, Any] = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": _VERSION,
        "name": name,
        "description": f"{what} Written by vlmeval_findit {__version__}.",
    }
    stated = [*dict.fromkeys(licences)]
    if stated:
        values["license"] = stated
    values["distribution"] = [_file(folder, each) for each in records]
    values["recordSet"] = [_records(each) for each in records]
    with atomic_write(folder / CROISSANT) as f:
        json.dump(values, f, indent=1, ensure_ascii=False)


def _id(name: str) -> str:
    """Return a name without blanks, which no identifier may have.

    >>> _id("runs/mIoU low")
    'runs/mIoU~low'
    """
    return re.sub(r"\s", "~", name)


def _file(folder: Path, records: DescribedRecords) -> Mapping[str, Any]:
    path = folder / records.file
    return {
        "@type": "cr:FileObject",
        "@id": records.file_id,
        "name": records.file,
        "contentUrl": records.file,
        "contentSize": f"{path.stat().st_size} B",
        "encodingFormat": _MEDIA_TYPES[path.suffix],
        "sha256": file_sha256(path),
    }


def _records(records: DescribedRecords) -> Mapping[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": _id(records.name),
        "name": records.name,
        "description": records.what,
        "field": [_field(records, field) for field in records.fields],
    }


def _field(records: DescribedRecords, field: DescribedField) -> Mapping[str, Any]:
    column = {"column": field.name}
    extract = {"jsonPath": f"{records.path}.{field.name}"} if records.path else column
    values: dict[str, Any] = {
        "@type": "cr:Field",
        "@id": _id(f"{records.name}/{field.name}"),
        "name": field.name,
        "dataType": field.kinds[0] if len(field.kinds) == 1 else [*field.kinds],
        "source": {"fileObject": {"@id": records.file_id}, "extract": extract},
    }
    if field.what:
        values["description"] = field.what
    if field.shape:
        values |= {"isArray": True, "arrayShape": field.shape}
    return values

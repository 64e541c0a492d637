"""Read texts of annotations: which encoding a file is in is told by one rule, for every reader.

A byte order mark says it, the zeros of UTF-16, or an XML declaration. Other files are in the
encoding that the user states, else in UTF-8. What is in neither is asked about: many encodings fit
the same bytes, so none is chosen.
"""

from __future__ import annotations

import codecs
import json
import re
import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from xml.etree import ElementTree

from ...core import find_twice, open_regular, quoted_value
from ..annotated_samples import AnnotationError

UTF_8 = "utf-8"
_MARK = "\ufeff"
# What texts that are not UTF-8 are in most often: Windows of the West, of Central Europe and of
# Cyrillic, simplified and traditional Chinese, Japanese, Korean
_OFTEN = ("cp1252", "cp1250", "cp1251", "gb18030", "big5", "cp932", "cp949")
# Encodings that texts declare, and the larger ones of the same codes that they are written in
_LARGER = {"gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932", "euc_kr": "cp949"}
_DECLARED = re.compile(rb"\s*<\?xml\s[^>]*?\bencoding\s*=\s*[\"']([\w.:-]+)[\"']")
# Bytes around one that is not UTF-8 which may be of the same name
_OF_NAME = re.compile(rb"[^\s\"'<>,;:|=/\[\]{}()]+")
_NEAR = 200
_SHOWN = 20


def known_encoding(name: str) -> str | None:
    """Return what Python calls an encoding of texts; None: it knows none of this name.

    >>> known_encoding("GBK"), known_encoding("hex"), known_encoding("Latin-9000")
    ('gbk', None, None)
    """
    try:
        "a".encode(name)
    except (LookupError, ValueError):
        return None
    return codecs.lookup(name).name


def encoding_of(head: bytes, stated: str | None) -> str:
    """Return what a file is in, by its first bytes; else the stated encoding, else UTF-8."""
    marked = json.detect_encoding(head)
    if marked != UTF_8:
        return marked
    declaration = _DECLARED.match(head)
    declared = known_encoding(declaration[1].decode()) if declaration else None
    if declared is not None:
        return _LARGER.get(declared, declared)
    return stated or UTF_8


def text_of(path: Path, stated: str | None) -> str:
    """Return the text of a file, without a byte order mark.

    A text that is not in the encoding that it declares is in the stated one, or in UTF-8.

    Raises:
        AnnotationError: it is in none of these, or is no text; the message names the line.
        OSError: it cannot be opened.
    """
    with open_regular(path) as file:
        head = file.peek()
        encoding = encoding_of(head, stated)
        _refuse_binary(path, head, encoding)  # A large file that is no text is not read
        data = file.read()
    for each in dict.fromkeys((encoding, stated or UTF_8)):
        try:
            return data.decode(each).removeprefix(_MARK)
        except UnicodeDecodeError as error:
            wrong = error
    line = data.count(b"\n", 0, wrong.start) + 1
    raise wrong_encoding(path, line, wrong, stated)


def _refuse_binary(path: Path, head: bytes, encoding: str) -> None:
    if "\0" in head.decode(encoding, "replace"):
        raise AnnotationError(f"{path}: is no text: it has zeros (UTF-16? Type --encoding utf-16)")


class Decoder:
    """Decodes a file that is read in parts."""

    def __init__(self, path: Path, file: BufferedReader, stated: str | None, errors: str) -> None:
        """Look at the beginning; ``errors`` is "strict", or "replace" for a first look.

        Raises an AnnotationError if the file is no text.
        """
        head = file.peek()
        encoding = encoding_of(head, stated)
        _refuse_binary(path, head, encoding)
        self._path = path
        self._stated = stated
        self._decoder = codecs.getincrementaldecoder(encoding)(errors)
        self._is_begun = False

    def decode(self, data: bytes, line: int) -> str:
        """Return the text of the next bytes, b"" for the last; ``line`` is that they begin in.

        Raises an AnnotationError where they are in another encoding.
        """
        try:
            text = self._decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            line += error.object.count(b"\n", 0, error.start)
            raise wrong_encoding(self._path, line, error, self._stated) from None
        if self._is_begun or not text:
            return text
        self._is_begun = True
        return text.removeprefix(_MARK)


def wrong_encoding(
    path: Path, line: int, error: UnicodeDecodeError, stated: str | None
) -> AnnotationError:
    """Make the question which encoding a text is in, with what a name of it would be in some."""
    byte = error.object[error.start]
    here = f"{path}, line {line}: byte {byte:#04x} is not {error.encoding.upper()}"
    if stated is not None:
        return AnnotationError(f"{here}. Type --encoding with another name, or leave it out")
    readings = _readings(_name_around(error.object, error.start))
    names = f": {', '.join(readings)};" if readings else ","
    return AnnotationError(
        f"{here}. Which encoding is it in? Type --encoding NAME{names} or save the file as UTF-8"
    )


def _name_around(data: bytes, place: int) -> bytes:
    begin = max(0, place - _NEAR)
    for match in _OF_NAME.finditer(data, begin, place + _NEAR):
        if match.start() <= place < match.end():
            return match[0]
    return b""


def _readings(name: bytes) -> list[str]:
    """Return the usual encodings in which a name would be letters, and which.

    >>> _readings("Käse".encode("cp1252"))
    ['cp1252 or cp1250 for Käse']
    """
    by_text: dict[str, list[str]] = {}
    for encoding in _OFTEN:
        with suppress(UnicodeDecodeError):
            text = name.decode(encoding)
            if _is_name(text):
                by_text.setdefault(text[:_SHOWN], []).append(encoding)
    return [f"{' or '.join(names)} for {text}" for text, names in by_text.items()]


def _is_name(text: str) -> bool:
    """Return whether all signs beyond ASCII are letters, in Latin words of Latin."""
    others = [sign for sign in text if sign > "\x7f"]
    is_latin = any(sign.isascii() and sign.isalpha() for sign in text)
    return all(
        unicodedata.category(sign)[0] in "LM"
        and (not is_latin or unicodedata.name(sign, "").startswith("LATIN"))
        for sign in others
    )


def xml_of(path: Path, stated: str | None) -> ElementTree.Element:
    """Return the outermost element of an XML file, whatever encoding it declares.

    Raises:
        AnnotationError: it is no XML, or see :func:`text_of`.
        OSError: it cannot be opened.
    """
    try:
        return ElementTree.fromstring(text_of(path, stated))
    except ElementTree.ParseError as error:
        raise AnnotationError(f"{path}: not XML: {error}") from None


def only_element(
    element: ElementTree.Element, tag: str, where: object
) -> ElementTree.Element | None:
    """Return the element of a tag in another one; None if there is none.

    Raises an AnnotationError if there are several: the first would count in silence.
    """
    there = element.findall(tag)
    if len(there) > 1:
        raise AnnotationError(
            f"{where}: {len(there)} times <{tag}>: which is meant? Leave one in place"
        )
    return there[0] if there else None


def refuse_attributes_twice(names: Iterable[str], where: object) -> None:
    """Raise an AnnotationError for two attributes of one name."""
    twice = find_twice(names)
    if twice is not None:
        raise AnnotationError(
            f"{where}: duplicate attribute {quoted_value(twice.name)}: leave one of them out"
        )


def only_text(element: ElementTree.Element, tags: str, where: object) -> str:
    """Return the text at the end of a path of tags, stripped; "" if there is none.

    Raises an AnnotationError as :func:`only_element`.
    """
    inner: ElementTree.Element | None = element
    for tag in tags.split("/"):
        if inner is not None:
            inner = only_element(inner, tag, where)
    text = None if inner is None else inner.text
    return (text or "").strip()

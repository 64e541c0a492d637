"""Read pickles of lists, texts and numbers; nothing that a pickle names is called."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any, NoReturn

from ...core import read_bytes
from ..annotated_samples import AnnotationError


class _PlainUnpickler(pickle.Unpickler):
    """Refuses everything that a pickle names: functions, classes, and objects stored elsewhere."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")

    def persistent_load(self, pid: Any) -> NoReturn:
        raise pickle.UnpicklingError(f"it asks for the object {pid!r} of another file")


def read_plain_pickle(path: Path) -> Any:
    """Return the plain values of a pickle, also of Python 2, whose texts are UTF-8 or Latin-1.

    Raises:
        AnnotationError: it holds anything else, or is damaged.
        OSError: it cannot be opened.
    """
    data = read_bytes(path)
    try:
        try:
            return _PlainUnpickler(io.BytesIO(data), encoding="utf-8").load()
        except UnicodeDecodeError:
            return _PlainUnpickler(io.BytesIO(data), encoding="latin-1").load()
    except Exception as error:  # A damaged pickle can raise any
        raise AnnotationError(
            f"{path}: not a pickle of lists, texts and numbers, so nothing of it is used: "
            f"{type(error).__name__}: {error}"
        ) from None

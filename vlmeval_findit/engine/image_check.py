"""An answer counts only if its images are those that the run planned: its key says them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..protocol.call_results import CallResult
from ..storage.image_content import (
    ImageChangedError,
    Shown,
    imported_contents,
    is_other_file,
    replaced_note,
)
from ..storage.image_files import ImageError
from .calls import Call, Cell, unread


def refuse_replaced(cells: Sequence[Cell]) -> None:
    """Raise an ImageError for images of imported tables that are not those of the import."""
    expected: dict[Path, Shown] = {}
    others: dict[Path, str] = {}
    for cell in cells:
        table = cell.prompts.dataset.table
        images = cell.prompts.images
        if table not in expected:
            expected[table] = imported_contents(table)
        known = expected[table]
        if not known:
            continue
        for number in set(cell.prompt_hashes.images):
            shown = zip(
                images.files[number], images.names[number], images.contents(number), strict=True
            )
            for file, name, content in shown:
                if name in known and not unread(content) and known[name] != content:
                    others[file] = name
    if others:
        file, name = next(iter(others.items()))
        folder = file.parents[len(Path(name).parts) - 1]
        raise ImageError(replaced_note(list(others.values()), folder))


def about_planned_images(call: Call, answer: CallResult) -> CallResult:
    """Return an answer, or a failed one if an image changed between planning and reading it.

    A model that reports the hashes of what it read is taken at its word. Requests over HTTP were
    compared before they were sent. For other models, the files are compared again.
    """
    if answer.error is not None or answer.stop is not None:
        return answer
    record = answer.record
    if record.get("call"):
        return answer
    reported = [image.get("sha256") for image in record.get("images", ())]
    if reported and all(reported):
        pairs = zip(reported, call.image_sha256, strict=False)
        are_planned = [not is_other_file(content, sha256) for sha256, content in pairs]
    else:
        are_planned = list(map(call.cell.prompts.images.is_unchanged, call.images))
    for path, is_planned in zip(call.images, are_planned, strict=False):
        if not is_planned:
            return CallResult("", error=str(ImageChangedError(path)), seconds=answer.seconds)
    return answer

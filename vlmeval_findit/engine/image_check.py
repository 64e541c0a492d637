"""An answer counts only if its images are those that the run planned: its key says them."""

from __future__ import annotations

from ..core.answers import Answer
from ..core.image_content import ImageChangedError, is_other_file
from .calls import Call


def about_planned_images(call: Call, answer: Answer) -> Answer:
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
            return Answer("", error=str(ImageChangedError(path)), seconds=answer.seconds)
    return answer

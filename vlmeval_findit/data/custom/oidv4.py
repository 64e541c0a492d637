"""Read OIDv4 ToolKit's labels: ``Label/*.txt`` beside the images of each class, in pixels."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

from ...core import suffix_of
from ..annotated_samples import AnnotationError, BoxForm, Samples
from .annotation_values import IMAGE_SUFFIXES, written_number
from .collector import Collector, ListedFile
from .reader_options import ReaderOptions

_NUMBER = r"-?\d+(?:\.\d*)?(?:e[-+]?\d+)?"
# A class, whose words begin with no digit, the corners, and perhaps a flag
_OBJECT = re.compile(
    rf"([^\d\s-]\S*(?:\s+[^\d\s-]\S*)*)((?:\s+{_NUMBER}){{4}})(\s+difficult)?", re.IGNORECASE
)


def is_oidv4(line: str) -> bool:
    """Return whether a line of text is one of OIDv4's labels, whose numbers are no fractions.

    >>> [is_oidv4(f"{name} 72.9 14.5 448.06 435.3") for name in ("Human face", "a.jpg", "0")]
    [True, False, False]
    >>> is_oidv4("cat 0.5 0.5 0.1 0.1")
    False
    """
    fields = _OBJECT.fullmatch(line.strip())
    if fields is None or suffix_of(PurePosixPath(fields[1])) in IMAGE_SUFFIXES:
        return False
    return max(map(float, fields[2].split())) > 1


def read_oidv4(path: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
    """Read a label file, or all below a folder; an image is in the folder above its label file.

    An image that was downloaded for two classes is two images, each with the boxes of its class.

    Raises an AnnotationError for other lines.
    """
    collector = Collector(path, images, options, form=BoxForm.CORNERS)
    form = collector.options.form or BoxForm.CORNERS
    for file in collector.files(path, ".txt", "label file"):
        stem = _without_label_folder(file.stem)
        image = collector.image_of_file(
            ListedFile(file.path, stem), [stem], "its name", "label file"
        )
        for where, line in collector.lines(file.path):
            fields = _OBJECT.fullmatch(line)
            if fields is None:
                raise AnnotationError(
                    f"{where}: OIDv4's labels are class left top right bottom, not {line:.60}"
                )
            first, second, third, fourth = (
                written_number(word, where) for word in fields[2].split()
            )
            corners = form.corners((first, second, third, fourth))
            flags = {"difficult": fields[3] is not None}
            collector.add(image, fields[1], corners, where, flags)
    return collector.samples()


def _without_label_folder(stem: str) -> str:
    """Return the path of an image without its suffix.

    >>> _without_label_folder("validation/Cat/Label/a"), _without_label_folder("Label/a")
    ('validation/Cat/a', 'a')
    """
    path = PurePosixPath(stem)
    folder = path.parent.parent if path.parent.name == "Label" else path.parent
    return (folder / path.name).as_posix()

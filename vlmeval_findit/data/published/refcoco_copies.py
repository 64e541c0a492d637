"""RefCOCO, RefCOCO+ and RefCOCOg whole: every expression of a published split, of any copy.

Published figures are of UNC's splits (RefCOCOg: UMD's), an expression a query.  The counts of
expressions and images are those of the catalogue of TensorFlow Datasets (``ref_coco``) and of the
hub's viewer of jxu124/refcoco-benchmark.  UNC and UMD divide images, Google divides objects.

What people have, established from cards and from programs that read it:

* Qwen-VL's lines, which InternVL's README links: ``refcoco+_testA.jsonl``, an expression a line,
  ``bbox`` as corners in pixels;
* the authors' ``refs(unc).p`` (a pickle of Python 2) with COCO's ``instances.json``;
* jxu124/refcoco of the hub: an object a row, ``bbox`` as corners; testA is called ``test``;
* jxu124/refcoco-benchmark: an image a row, with providers apart;
* lmms-lab/RefCOCO (RefCOCOplus, RefCOCOg): an object a row, ``answer`` has its expressions,
  ``bbox`` is [x, y, width, height].  ``val`` has 8,811 objects (RefCOCOg: 7,573): those of UNC's
  val and 5,000 more, which is the size of Google's (lmms-eval#1066).  ``test`` is no split of UNC;
* Kangheng/refcoco (refcocop, refcocog): an expression a row, ``question``, with its image; ``bbox``
  is a text of JSON, corners in pixels;
* VLM-R1's ``refcocop_testA.json``: a list of expressions, ``normal_caption``, with corners in
  pixels as ``solution``;
* VLMEvalKit's ``RefCOCO.tsv``: all splits, the question has InternVL's prompt around the
  expression, the answer is in fractions, and expressions can have lost a blank (VLMEvalKit#1330).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ..annotated_samples import AnnotationError, Samples
from ..sources import PublishedPart
from .refcoco_files import AUTHORS, QWEN_VL, VLM_R1, VLMEVALKIT
from .refcoco_hub import JXU124, JXU124_BENCHMARK, KANGHENG, LMMS_LAB
from .refcoco_splits import SPLITS, Copy, Split, train2014

# The copies, the most exact first
COPIES = (
    QWEN_VL,
    AUTHORS,
    VLM_R1,
    JXU124,
    JXU124_BENCHMARK,
    KANGHENG,
    LMMS_LAB,
    VLMEVALKIT,
)


def find_refcoco(folder: Path, stem: str) -> Sequence[PublishedPart]:
    """Return the splits of a set (refcoco, refcoco+, refcocog) that a folder has in any copy.

    Raises:
        AnnotationError: it has none.
    """
    parts = []
    for name in SPLITS[stem]:
        split = Split(stem, name)
        there = [copy for copy in COPIES if copy.files(folder, split)]
        if there:
            parts.append(PublishedPart(name, partial(_read, folder, split, there)))
    if not parts:
        raise AnnotationError(f"{folder}: no split of {stem} in any copy that is known")
    return parts


def _read(folder: Path, split: Split, there: Sequence[Copy]) -> Samples:
    """Read the first copy that has its images, and say which it is and how it differs."""
    at_hand = train2014(folder) is not None
    ready = [copy for copy in there if copy.has_images or at_hand]
    copy = (ready or there)[0]
    files = copy.files(folder, split)
    copied = copy.read(folder, split, files)
    copied.ledger.note(f"this copy is {copy.name}: {copy.differs}", str(files[0]))
    for other in there:
        if other is not copy:
            place = str(other.files(folder, split)[0])
            copied.ledger.not_read(f"another copy of the split: {other.name}", place)
    return copied.samples()

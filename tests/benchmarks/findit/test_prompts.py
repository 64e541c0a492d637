"""What is asked.  The prompt is the experiment: every wording is in ``golden/prompts.txt``.

After a change that is meant, raise ``prompts.VERSION`` and write the file again with
``FINDIT_WRITE_GOLDEN=1 python -m pytest tests/benchmarks/findit/test_prompts.py``.
"""

from __future__ import annotations

import hashlib
import json
import os

from grids import grid
from hypothesis import given
from hypothesis import strategies as st
from paths import GOLDEN as GOLDEN_FOLDER

from vlmeval_findit.benchmarks.findit import (
    CENTRES,
    MARKS,
    FindItQuery,
    FindItVariant,
    message,
    parse,
)
from vlmeval_findit.boxes import BOX_KEYS, OUTPUTS, REPRESENTATIONS, Truth
from vlmeval_findit.boxes import PAPER_REPRESENTATIONS as BOXES
from vlmeval_findit.protocol import Message, Part, PartKind, image, prompt_hash, text

GOLDEN = GOLDEN_FOLDER / "prompts.txt"

LABELS = {"Pascal": "dog", "iGround": "dog", "RefCOCO": "dog on the left", "D3": "a sleeping dog",
          "Flickr30k": "the dog"}  # fmt: skip


def query_for(v: FindItVariant) -> FindItQuery:
    """A synthetic query of a variant's dataset."""
    return FindItQuery(
        index=7,
        label="dog, traffic light" if v.multilabel else LABELS.get(v.dataset, "obj_000010"),
        width=640,
        height=480,
        images=tuple(f"{n}.jpg" for n in range(1, v.frames + 1)),
        truth=Truth((), ()),
        support=_support(v),
        caption="A dog waits at a traffic light." if v.data.has_caption else "",
        frame_indices=tuple(range(v.frames)) if v.data.family.is_video else (),
    )


def _support(v: FindItVariant) -> tuple[str, ...]:
    if v.mark is not None:
        return (f"{v.mark}.png",)
    return ("shot1.jpg", "shot2.jpg") if v.family.has_references else ()


def written(parts: Message) -> str:
    """A message as a readable text: images in angle brackets."""
    return "\n".join(f"<{p.value}>" if p.kind is PartKind.IMAGE else p.value for p in parts)


SPELT_OUT = (
    # Every family, as text and as JSON.
    *(f"{stem}_xyxy_{output}" for stem in (
        "Pascal", "Pascal_multilabel", "RefCOCO", "Flickr30k", "Flickr30k_caption", "D3",
        "HRInsDet_easy", "RoboTools_f1", "RoboTools_f3", "iGround_f1", "iGround_f3",
        "iGround_multilabel_f3", "iGround_caption_f3", "iGround_multilabel_caption_f3",
    ) for output in OUTPUTS),
    # Every representation, and what each leaves to the model.
    *(f"Pascal_{name}_{output}" for name in BOXES for output in OUTPUTS),
    "Pascal_multilabel_unconstrained_text", "RefCOCO_unconstrained_text",
    "iGround_f3_unconstrained_text", "iGround_multilabel_f3_unconstrained_text",
    "iGround_f3_all_text", "iGround_f3_all_json",
    # Every key and structure.
    *(f"Pascal_xyxy_json_{key}{structure}"
      for key in BOX_KEYS[1:-1] for structure in ("", "_nested")),
    *(f"Pascal_multilabel_xyxy_json_{key}{structure}"
      for key in BOX_KEYS for structure in ("", "_nested")),
    *(f"Pascal_{name}_json_decomposed" for name in BOXES if REPRESENTATIONS[name].keys),
    "Pascal_multilabel_xyxy_json_decomposed", "RefCOCO_xyxy_json_nested", "D3_xyxy_json_nested",
    "iGround_f3_xyxy_json_nested", "iGround_f3_xyxy_json_decomposed",
    "iGround_multilabel_f3_xyxy_json_nested", "iGround_multilabel_f3_xyxy_json_class_name",
    "iGround_multilabel_f3_xyxy_json_class_name_nested",
    # The centre experiments.
    *(f"Pascal_cxcywh_{output}_cx-{centre}" for centre in CENTRES for output in OUTPUTS),
    # Every mark.
    *(f"HRInsDet_easy_xyxy_text_vp-{mark}" for mark in MARKS), "RoboTools_f3_xyxy_json_vp-oval",
    # Points.
    *(f"{stem}_point_{output}" for stem in (
        "Pascal", "Pascal_multilabel", "RefCOCO", "D3", "HRInsDet_easy", "iGround_f3",
    ) for output in OUTPUTS),
    *(f"Pascal_point_json_{rest}" for rest in (
        "point_2d", "coordinates", "nested", "point_2d_nested", "decomposed",
    )),
    "Pascal_multilabel_point_json_class_name",
)  # fmt: skip
"""The wordings that the snapshot spells out; its last lines have hashes of all."""


def snapshot() -> str:
    variants = [parse(f"FindIt_{name}") for name in dict.fromkeys(SPELT_OUT)]
    entries = [f"# {v.name}\n{written(message(query_for(v), v))}" for v in variants]
    for which, marks in (("", (None,)), ("marked ", MARKS)):
        all_of_it = [v for v in grid(marks=marks) if v.frames in (1, 3)]
        every = prompt_hash(message(query_for(v), v) for v in all_of_it)
        result = f"All {len(all_of_it)} {which}variants of the grid with 1 or 3 frames"
        entries.append(f"# {result}\n{every}")
    return "\n\n".join(entries) + "\n"


def test_the_wordings_are_those_of_the_snapshot() -> None:
    if os.environ.get("FINDIT_WRITE_GOLDEN") == "1":
        GOLDEN.write_text(snapshot(), encoding="utf-8")
    actual, golden = snapshot().split("\n\n# "), GOLDEN.read_text(encoding="utf-8").split("\n\n# ")
    for written_now, expected in zip(actual, golden, strict=False):
        assert written_now == expected
    assert len(actual) == len(golden)


def test_any_change_changes_the_hash() -> None:
    one = (image("a.jpg"), text("Find the dog."))
    others = [
        [one, one],
        [(image("a.jpg"), text("Find the dog"))],
        [(image("b.jpg"), text("Find the dog."))],
        [one[::-1]],
        [one[:1], one[1:]],
        [(text("a.jpg"), text("Find the dog."))],
    ]
    assert len({prompt_hash(messages) for messages in ([one], *others)}) == 7
    assert prompt_hash([one]) == prompt_hash(iter([one]))


_PARTS = st.tuples(st.sampled_from(PartKind), st.text())


@given(st.lists(st.lists(_PARTS, max_size=3), max_size=3))
def test_the_hash_of_prompts_is_that_of_their_json(
    messages: list[list[tuple[PartKind, str]]],
) -> None:
    """Runs recorded it, and go on only with the same."""
    lines = [json.dumps([[kind.value, value] for kind, value in parts]) for parts in messages]
    written_out = "".join(f"{line}\n" for line in lines)
    asked = [tuple(Part(*part) for part in parts) for parts in messages]
    assert prompt_hash(asked) == hashlib.sha256(written_out.encode()).hexdigest()

"""Questions about marks in the package: written at first use, as training makes them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cv2", reason="marks are drawn by opencv-python")

from training.shipped_tables import MARKS, MARKS_SEED, write_marks
from training.vp_questions.images import scene_images
from training.vp_questions.making import questions
from vlmeval_findit.benchmarks.vpbench import is_absent, question_kind
from vlmeval_findit.data import load_dataset
from vlmeval_findit.data.rendered import tables
from vlmeval_findit.storage import decode_image, meta_path, shipped_table

MINI = "VPBench_Scenes_mini"


@pytest.mark.slow
def test_what_ships_is_what_training_makes(lmu: Path) -> None:
    write_marks(MINI, lmu / f"{MINI}.tsv")
    assert (lmu / f"{MINI}.tsv").read_bytes() == shipped_table(MINI).read_bytes()


@pytest.mark.slow
def test_wordings_agree_with_rows_and_images_with_training(lmu: Path) -> None:
    source, count = MARKS[MINI]
    dataset = load_dataset(MINI)
    shown = questions(scene_images(source, count), count, MARKS_SEED)
    for query, each in zip(dataset.queries.values(), shown, strict=True):
        assert question_kind(query.question) is query.kind, query.question
        assert is_absent(query.question, dict(query.options)[query.answer]) is query.absent
        path = lmu / "images" / MINI / query.images[0]
        assert (np.asarray(decode_image(path)) == each.pixels).all(), query.images
        assert path.stat().st_size > each.pixels.size, "stored, not compressed: the same everywhere"


def test_a_set_is_written_when_new_or_changed(lmu: Path) -> None:
    table = lmu / f"{MINI}.tsv"
    facts = meta_path(lmu / f"{MINI}.tsv")

    def state() -> tuple[int, dict[str, str]]:
        files = [table, facts, *sorted((lmu / "images" / MINI).glob("*"))]
        checksums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
        return table.stat().st_mtime_ns, checksums

    load_dataset(MINI)
    recipe = tables.marked_recipe_sha256(MINI)
    assert json.loads(facts.read_text())["source_sha256"] == recipe
    built = state()
    load_dataset(MINI)
    assert state() == built

    facts.write_text(facts.read_text().replace(recipe, "0" * 64))
    tables.ensure_marked_scenes(MINI)
    again = state()
    assert again[0] != built[0]
    assert again[1] == built[1]

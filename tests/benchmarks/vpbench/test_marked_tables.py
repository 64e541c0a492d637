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
from vlmeval_findit.benchmarks import load
from vlmeval_findit.benchmarks.vpbench.vp_query import is_absent, kind_of
from vlmeval_findit.core.image_files import decode
from vlmeval_findit.core.table_files import meta_path
from vlmeval_findit.data.rendered import tables
from vlmeval_findit.data.rendered.tables import shipped

MINI = "VPBench_Scenes_mini"


def bytes_of(root: Path, name: str) -> dict[str, str]:
    files = [root / f"{name}.tsv", meta_path(root / f"{name}.tsv")]
    files += sorted((root / "images" / name).glob("*"))
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.parametrize("name", [MINI])
def test_what_ships_is_what_training_makes(name: str, lmu: Path) -> None:
    write_marks(name, lmu / f"{name}.tsv")
    built = (lmu / f"{name}.tsv").read_bytes()
    assert built == shipped(name).read_bytes()


def test_every_wording_agrees_with_its_row(lmu: Path) -> None:
    for query in load(MINI).queries.values():
        assert kind_of(query.question) is query.kind, query.question
        assert is_absent(query.question, dict(query.options)[query.answer]) is query.absent


def test_images_equal_those_of_training(lmu: Path) -> None:
    source, count = MARKS[MINI]
    task = load(MINI)
    shown = questions(scene_images(source, count), count, MARKS_SEED)
    for query, each in zip(task.queries.values(), shown, strict=True):
        path = lmu / "images" / MINI / query.images[0]
        assert (np.asarray(decode(path)) == each.pixels).all(), query.images
        assert path.stat().st_size > each.pixels.size, "stored, not compressed: the same everywhere"


def test_a_set_is_written_at_its_first_use_and_after_its_recipe_changed(lmu: Path) -> None:
    task = load(MINI)
    recipe = tables.marked_recipe_sha256(MINI)
    table, facts = lmu / f"{MINI}.tsv", meta_path(lmu / f"{MINI}.tsv")
    assert json.loads(facts.read_text())["source_sha256"] == recipe
    folder = lmu / "images" / MINI
    assert all((folder / query.images[0]).is_file() for query in task.queries.values())
    built = table.stat().st_mtime_ns, bytes_of(lmu, MINI)
    load(MINI)
    assert table.stat().st_mtime_ns == built[0]

    facts.write_text(facts.read_text().replace(recipe, "0" * 64))
    tables.ensure_marked(MINI)
    assert table.stat().st_mtime_ns != built[0]
    assert bytes_of(lmu, MINI) == built[1]

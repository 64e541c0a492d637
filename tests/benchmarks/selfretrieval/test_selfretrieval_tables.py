"""Tables of self-retrieval: their names, the authors' file, and pairs that are rendered."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cv2", reason="the program that writes the tables draws marks, too")

from training import shipped_tables as shipping
from training.pairs import scene_pair
from vlmeval_findit import benchmarks
from vlmeval_findit.benchmarks.selfretrieval import (
    BASELINES,
    PAIR_COUNT,
    PAIR_SETS,
    PROMPTS_NAME,
    ImagePair,
    describe_scenes,
    message,
    parse,
)
from vlmeval_findit.cli import main
from vlmeval_findit.core import file_sha256, sha256_of
from vlmeval_findit.data import load_dataset
from vlmeval_findit.protocol import DatasetNameError, PartKind, located
from vlmeval_findit.storage import image_folder, png, shipped_table

Capture = pytest.CaptureFixture[str]


def test_names_and_the_prompt() -> None:
    """After a change of words that is meant, raise ``VERSION`` and write the checksum again."""
    assert sorted(PAIR_SETS) == [
        "SelfRetrieval",
        "SelfRetrieval_Scenes",
        "SelfRetrieval_Scenes_mini",
    ]
    for name in PAIR_SETS:
        variant = benchmarks.parse(name)
        assert benchmarks.benchmark_of(name).name == "Self-Retrieval"
        assert (variant.board_dataset, variant.images, variant.frames) == (name, name, 2)
    with pytest.raises(DatasetNameError, match=r"did you mean SelfRetrieval_Scenes\?"):
        parse("SelfRetrieval_Scene")
    left, right, words = message(ImagePair(0, "7", ("l.jpg", "r.jpg")), parse("SelfRetrieval"))
    assert (left.value, right.value) == ("l.jpg", "r.jpg")
    assert PROMPTS_NAME == "self-retrieval-own-1"
    assert sha256_of(words.value.encode())[:16] == "fedf8fbf358c4be8"


def authors_file(pairs: int = PAIR_COUNT) -> dict[str, Any]:
    return {
        str(uid): {"left": f"coco/{2 * uid}.jpg", "right": f"coco/{2 * uid + 1}.jpg"}
        for uid in range(pairs)
    }


def prepare(tmp_path: Path, values: object, *flags: str) -> int:
    path = tmp_path / "dataset.json"
    path.write_text(values if isinstance(values, str) else json.dumps(values))
    return main(["data", "get", "SelfRetrieval", "--from", str(path), *flags])


def test_the_authors_file_becomes_the_table(lmu: Path, tmp_path: Path, capsys: Capture) -> None:
    assert prepare(tmp_path, authors_file()) == 0
    assert re.search(r"SelfRetrieval +247 queries +\d+ bytes", capsys.readouterr().out)
    dataset = load_dataset("SelfRetrieval")
    assert [pair.uid for pair in dataset.queries.values()] == [str(uid) for uid in range(247)]
    assert dataset.queries[3].images == ("coco/6.jpg", "coco/7.jpg")
    assert dataset.queries[3].captions is None
    meta = json.loads(dataset.table.with_suffix(".meta.json").read_text())
    assert meta["source_sha256"] == file_sha256(tmp_path / "dataset.json")
    assert "unlike published" not in meta
    unlike = "3 pairs, published are 247"
    assert prepare(tmp_path, authors_file(3), "--force") == 0
    assert f"not the authors' pairs: {unlike}" in capsys.readouterr().out
    meta = json.loads((lmu / "SelfRetrieval.meta.json").read_text())
    assert meta["unlike published"] == unlike


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ("{", "dataset.json: not JSON: Expecting"),
        ("{}", "should be an object"),
        ({"0": ["a", "b"]}, "uid '0', key 'left': None is not a path"),
        ({"0": {"left": "../a.jpg", "right": "b.jpg"}}, "key 'left': '../a.jpg' climbs out"),
        (authors_file(3), "3 pairs, published are 247"),
        ({**authors_file(246), "x": {"left": "a", "right": "b"}}, "uids are not 0 to 246"),
        (
            {**authors_file(), "246": {"left": "a", "right": "coco/1.jpg"}},
            "coco/1.jpg stands in several",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_damaged_files_are_refused(
    values: object, says: str, lmu: Path, tmp_path: Path, capsys: Capture
) -> None:
    assert prepare(tmp_path, values) == 2
    assert says in capsys.readouterr().err
    assert not list(lmu.iterdir())


MINI = "SelfRetrieval_Scenes_mini"


@pytest.mark.parametrize(
    "name",
    [
        MINI,
        *(pytest.param(n, marks=pytest.mark.slow) for n in shipping.PAIRS if n != MINI),
    ],
)
def test_what_ships_is_what_training_makes(name: str, tmp_path: Path) -> None:
    path = tmp_path / "table.tsv"
    shipping.write_pairs(name, path)
    assert path.read_bytes() == shipped_table(name).read_bytes()


def test_a_rendered_set_is_written_at_its_first_use(lmu: Path) -> None:
    first = load_dataset(MINI)
    table = lmu / f"{MINI}.tsv"
    written = table.stat().st_mtime_ns
    assert load_dataset(MINI).queries == first.queries
    assert table.stat().st_mtime_ns == written
    assert [int(pair.uid) for pair in first.queries.values()] == [*range(2**20, 2**20 + 50)]
    folder = image_folder(MINI).path
    for pair in [*first.queries.values()][:8]:
        built = scene_pair(int(pair.uid))
        assert pair.captions == (built.left_caption, built.right_caption)
        assert pair.attribute == built.attribute
        for name, shown in zip(pair.images, (built.left, built.right), strict=True):
            assert (folder / name).read_bytes() == png(shown.pixels)
    # A table of other code is written again.
    meta = lmu / f"{MINI}.meta.json"
    meta.write_text(meta.read_text().replace('"source_sha256": "', '"source_sha256": "0'))
    load_dataset(MINI)
    assert table.stat().st_mtime_ns > written


def test_the_baseline_describes_what_was_rendered(lmu: Path) -> None:
    dataset = load_dataset(MINI)
    pair = dataset.queries[1]
    asked = located(message(pair, dataset.variant), image_folder(MINI).path)
    reply, recorded = describe_scenes(asked, dataset.variant)
    assert list(json.loads(reply).values()) == list(pair.captions or ())
    assert recorded.finish_reason == "stop"
    swapped = tuple(part for part in (asked[1], asked[0]) if part.kind is PartKind.IMAGE)
    with pytest.raises(ValueError, match=f"{MINI}: no description of"):
        describe_scenes(swapped, dataset.variant)
    assert BASELINES["SceneDescriber"].annotation_tables == {"SelfRetrieval_Scenes", MINI}

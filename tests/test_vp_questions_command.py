"""``import --vp-questions``: the command from a dataset to a table that can be asked."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from vlmeval_findit.benchmarks import load
from vlmeval_findit.benchmarks.findit.names import forget_names
from vlmeval_findit.benchmarks.vpbench.query import is_absent, kind_of
from vlmeval_findit.benchmarks.vpbench.tables import read_table
from vlmeval_findit.cli import main
from vlmeval_findit.core.image_files import decode
from vlmeval_findit.core.table_files import meta_path
from training.vp_questions import sets
from training.vp_questions.sources import LONGEST_SIDE

LABELS = ("cup", "dog", "car", "tree", "sign")


@pytest.fixture
def data_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "lmu"
    root.mkdir()
    monkeypatch.setenv("LMUData", str(root))
    monkeypatch.chdir(tmp_path)
    forget_names()
    return root


@pytest.fixture
def own(data_root: Path, tmp_path: Path) -> str:
    """A dataset of one's own: six pictures, the last of which is large."""
    folder, lines = tmp_path / "pictures", ["image,label,x1,y1,x2,y2"]
    folder.mkdir()
    for number in range(6):
        scale = 5 if number == 5 else 1
        picture = Image.new("RGB", (240 * scale, 200 * scale), (200, 200, 190))
        for place in range(4):
            x, y = 60 + 110 * (place % 2), 20 + 100 * (place // 2)
            box = (x * scale, y * scale, (x + 50) * scale, (y + 60 - 2 * number) * scale)
            picture.paste((120, 140 + 20 * place, 160), box)
            name = LABELS[(place + number) % len(LABELS)]
            lines.append(f"{number}.png,{name},{','.join(map(str, box))}")
        picture.save(folder / f"{number}.png")
    listing = tmp_path / "boxes.csv"
    listing.write_text("\n".join(lines) + "\n")
    args = ["--csv", str(listing), "--images", str(folder), "--units", "pixels"]
    assert main(["data", "import", *args, "--name", "Yard"]) == 0
    return "Yard"


def ask(source: str, name: str, *more: str) -> int:
    return main(["data", "import", "--vp-questions", source, "--name", name, *more])


def bytes_of(root: Path, name: str) -> dict[str, str]:
    files = [root / f"{name}.tsv", meta_path(root / f"{name}.tsv")]
    files += sorted((root / "images" / name).glob("*"))
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_a_dataset_of_ones_own(
    own: str, data_root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert ask(own, "Marks", "--count", "24", "--seed", "5") == 0
    said = capsys.readouterr().out
    assert "mask, contour, scribble need outlines; Yard has boxes only" in said
    assert "counting 6, existence 6, localisation 6, reference 6" in said
    assert "A 6, B 6, C 6, D 6" in said
    assert "no 21, yes 3" in said
    assert said.endswith("Run it: python run_findit.py --data VPBench_Marks --model MODEL\n")

    queries = read_table(data_root / "VPBench_Marks.tsv")
    assert [query.index for query in queries] == [*range(1, 25)]
    folder = data_root / "images" / "VPBench_Marks"
    sizes = set()
    photographs = {one.images[0] for one in load(f"FindIt_{own}_xyxy_json").queries.values()}
    for query in queries:
        options = dict(query.options)
        assert kind_of(query.question) is query.kind
        assert is_absent(query.question, options[query.answer]) is query.absent
        assert not {"mask", "contour", "scribble"} & set(query.shapes)
        assert query.source == "Yard"
        assert query.cluster in photographs
        sizes.add(decode(folder / query.images[0]).size)
    assert sizes == {(240, 200), (LONGEST_SIDE, round(LONGEST_SIDE / 1.2))}
    task = load("VPBench_Marks")
    assert [*task.queries.values()] == queries

    first = bytes_of(data_root, "VPBench_Marks")
    assert ask(own, "Marks", "--count", "24", "--seed", "5") == 2
    assert "VPBench_Marks was made before (--replace)" in capsys.readouterr().err
    assert ask(f"{own}_multilabel", "Marks", "--count", "24", "--seed", "5", "--replace") == 0
    assert bytes_of(data_root, "VPBench_Marks") == first

    assert ask(own, "Marks", "--count", "8", "--replace") == 0
    assert len([*folder.glob("*.png")]) == 8, "pictures of the larger set are gone"


@pytest.mark.parametrize(
    ("source", "name", "more", "why"),
    [
        ("Yart", "Marks", (), "no dataset 'Yart': did you mean Yard?"),
        ("RefCOCO", "Marks", (), "RefCOCO is of the family refexp"),
        (
            "Scenes_mini_video",
            "Marks",
            (),
            "family objdet_video; questions about marks need one of",
        ),
        ("Pascal", "Marks", (), "no table Pascal_multilabel.tsv"),
        ("Yard", "Scenes_mini", (), "VPBench_Scenes_mini is a set of ours"),
        ("Yard", "demo", (), "VPBench_Demo is a set of ours"),
        ("Yard", "Stage1", (), "begins as the authors' own tables do"),
        ("Yard", "stage2_mine", (), "begins as the authors' own tables do"),
        ("Yard", "VPBench_Mine", (), "VPBench_ stands before it anyway"),
        ("Yard", "a/b", (), "only letters, digits, and single '_'"),
        ("Yard", "my-set", (), "only letters, digits, and single '_'"),
        ("Yard", "Marks", ("--count", "7"), "--count 7: 8 to 99999"),
        ("Yard", "Marks", ("--seed", "-1"), "--seed -1: 0 to"),
    ],
)
def test_refused(
    own: str,
    data_root: Path,
    capsys: pytest.CaptureFixture[str],
    source: str,
    name: str,
    more: tuple[str, ...],
    why: str,
) -> None:
    assert ask(source, name, *more) == 2
    assert why in capsys.readouterr().err
    assert [*data_root.glob("VPBench_*")] == []


def test_refused_without_its_pictures(
    own: str, data_root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pictures" / "2.png").unlink()
    assert ask(own, "Marks") == 2
    assert f"{tmp_path / 'pictures' / '2.png'} is missing" in capsys.readouterr().err
    assert [*data_root.glob("VPBench_*")] == []


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("--vp-questions", "Demo", "--images", "."), "--images is not for --vp-questions"),
        (("--csv", "a.csv", "--count", "8"), "--count is for --vp-questions"),
        (("--vp-questions", "Demo", "--csv", "a.csv"), "not allowed with argument"),
    ],
)
def test_flags_of_another_import(
    capsys: pytest.CaptureFixture[str], args: tuple[str, ...], why: str
) -> None:
    with pytest.raises(SystemExit):
        main(["data", "import", *args, "--name", "Marks"])
    assert why in capsys.readouterr().err


def test_a_set_is_made_when_asked_for_and_again_when_its_recipe_changed(
    data_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "VPBench_Scenes_mini"
    monkeypatch.setattr(sets, "SETS", {name: sets.OwnSet("Scenes_mini", 8)})
    task = load(name)
    assert len(task.queries) == 8
    table, facts = data_root / f"{name}.tsv", meta_path(data_root / f"{name}.tsv")
    assert json.loads(facts.read_text())["source_sha256"] == sets.recipe_sha256()
    folder = data_root / "images" / name
    assert all((folder / query.images[0]).is_file() for query in task.queries.values())
    made = table.stat().st_mtime_ns, bytes_of(data_root, name)
    load(name)
    assert table.stat().st_mtime_ns == made[0]

    facts.write_text(facts.read_text().replace(sets.recipe_sha256(), "0" * 64))
    sets.ensure(name)
    assert table.stat().st_mtime_ns != made[0]
    assert bytes_of(data_root, name) == made[1]


def test_stored_pictures_are_the_drawn_pixels(own: str, data_root: Path) -> None:
    assert ask(own, "Marks", "--count", "8") == 0
    for path in (data_root / "images" / "VPBench_Marks").glob("*.png"):
        pixels = np.asarray(decode(path))
        assert path.stat().st_size > pixels.size, "stored, not compressed: the same everywhere"

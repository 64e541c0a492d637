"""``check``: what is right passes, and every mistake is named with its row and key."""

from __future__ import annotations

import re
import runpy
from importlib import import_module
from pathlib import Path

import pytest
from few_fast import every_nth_fast, few_fast
from plugin_package import TEMPLATE, install, known_here
from refl4_stand_in import prepared

from vlmeval_findit.cli import main

PLATES = (TEMPLATE / "findit_plates" / "plates" / "benchmark.py").read_text(encoding="utf-8")


KINDS = ("right", "wrong", "unreadable", "empty", "failed")


@pytest.fixture(autouse=True)
def _data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMUData", str(tmp_path))
    monkeypatch.chdir(tmp_path)


# --- what is right --------------------------------------------------------------------------------


@pytest.mark.sees("check --encoder")
@pytest.mark.parametrize(
    ("words", "says"),
    few_fast(
        [
            ("FindIt_Scenes_mini_xyxy_json_bbox_2d", r"right replies: F1@0.5 100.0"),
            ("VPBench_Scenes_mini", r"wrong replies: Accuracy 0.0"),
            ("SelfRetrieval_Scenes_mini --encoder FindIt-Nano-SigLIP", "right replies: Pairs "),
        ],
        2,
    ),
)
def test_builtin_benchmarks_pass(words: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    if "encoder" in words:
        pytest.importorskip("torch")
    assert main(["check", *words.split()]) == 0
    reported = capsys.readouterr().out
    assert re.search(says, reported)
    assert reported.count(" asks:\n") == 3
    assert [kind for kind in KINDS if f"{kind} replies: 8 drawn" not in reported] == []


@pytest.mark.sees("check --out")
@pytest.mark.slow
def test_ref_l4_passes_and_leaves_its_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prepared(tmp_path, tmp_path / "parquet")
    assert main(["check", "Ref-L4", "--out", "tried"]) == 0
    assert "all right" in capsys.readouterr().out
    built = {path.parent.name.lower() for path in Path("tried").glob("*/*_score.csv")}
    assert built == {*KINDS}
    assert Path("tried/report.html").stat().st_size > 10_000


@pytest.mark.parametrize("name", ["letterbox", "point"])
def test_spaces_and_representations_pass(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", name]) == 0
    assert "1,000 random boxes come back" in capsys.readouterr().out


@pytest.mark.sees("check --from")
def test_the_template_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with known_here(install(tmp_path / "package")):
        its_tests = runpy.run_path(str(TEMPLATE / "test_rows.py"))
        for words in its_tests["ROWS"]:  # Of the last, AcmePlates, --from has a copy
            its_tests["test_nothing_is_missing"](words, tmp_path, monkeypatch)
        assert "its reader was not tried" not in capsys.readouterr().out
        assert main(["check", "AcmePlates"]) == 0
        assert "its reader was not tried: --from FOLDER" in capsys.readouterr().out


def test_a_checkpoint_that_is_here_shows_what_it_sees(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("transformers")
    assert main(["check", "FindIt-Nano"]) == 0
    assert "row 0: 78 tokens, 49 of images" in capsys.readouterr().out
    assert main(["check", "Qwen3-VL=no/where"]) == 0
    assert "its processor was not tried: no/where" in capsys.readouterr().out
    assert main(["check", "Qwen3-VL=nowhere"]) == 2
    assert "nowhere: the folder does not exist" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("leterbox", "or set 'leterbox': did you mean letterbox?"),
        ("RefCOCO", "check FindIt_RefCOCO_xyxy_json\n"),
        ("Foo", "or set 'Foo'; for names type"),
    ],
)
def test_a_name_that_nothing_has(name: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", name]) == 2
    assert says in capsys.readouterr().err


# --- what is wrong --------------------------------------------------------------------------------

DRAW = "    def draw("
BATCH = """    def score_batch(self, *given):
        from dataclasses import replace
        batch = super().score_batch(*given)
        return replace(batch, rows=tuple(replace(row, {}) for row in batch.rows))

    def draw("""
HEADLINE = '        "Accuracy (failed calls as misses)", {"right": 1}, {"asked": 1}\n'
LOWER = """"Errors", {{"failed": 1}}, {{"{}": 1}}, unit="px",
        better=__import__("vlmeval_findit.protocol").protocol.Better.LOWER
"""
RIGHT = 'AnswerScore({"right": int(said == query.plate)}'
MISTAKES = {
    "example": ("return query.plate", 'return "XXX"', "of right replies is 0.0", "example"),
    "typo": ('{"right": int(', '{"rigth": int(', "right replies", "has a sum 'rigth': did you"),
    "reason": ('ParseFailure("no plate")', '"?"', "unreadable replies", "row 0: reason is None"),
    "number": (RIGHT, 'AnswerScore({"right": None}', "right replies", "the sum 'right' is None"),
    "slice": ("details={", 'slices={"n": 3}, details={', "right replies", "the slice 'n' is 3"),
    "details": ('"said": said', '"said": {1: said}', "right replies", "after reading, not"),
    "image": ("image(query.images[0])", 'image("no.png")', "row 0 asks", "no.png"),
    "words": ('text("What', 'text("" and "What', "row 0 asks", "it has no words"),
    "drawing": ("DrawnLine(Role.TRUTH, query.plate)", "1", "right replies", "row 0 is not"),
    "always": (RIGHT, 'AnswerScore({"right": 1}', "of wrong replies", "is as good"),
    "failed": (DRAW, BATCH.format("failed=True"), "right replies", "row 0: failed is True"),
    "source": (DRAW, BATCH.format("source=''"), "right replies", "row 0: source is empty"),
    "index": (DRAW, BATCH.format("index=0"), "right replies", "rows [0, 0, 0, 0] for replies"),
    "cheap": (HEADLINE, LOWER.format("asked"), "Errors of unreadable replies", "0.0 is as good"),
    "silent": (HEADLINE, LOWER.format("right"), "Errors of unreadable replies", "has no value"),
    "counted": (
        DRAW, BATCH.format("sums={**row.sums, 'answered': 1}"), "Accuracy", "counts failed calls",
    ),
}  # fmt: skip


FORMATS = PLATES
for _old, _new in {
    "        table = name.removeprefix(PREFIX)\n": (
        '        table, _, way = name.removeprefix(PREFIX).partition("_")\n'
    ),
    'family_name="Plates")': 'family_name="Plates", format=way, format_place=(len(way),))',
    "    def variant_names(": (
        "    def formats(self, question):\n"
        '        return [self.parse(f"{PREFIX}Few_{way}") for way in ("bare", "quoted")]\n\n'
        "    def variant_names("
    ),
    '[f"{PREFIX}{table}" for': '[f"{PREFIX}{table}_bare" for',
}.items():
    assert FORMATS.count(_old) == 1, _old
    FORMATS = FORMATS.replace(_old, _new)
WAYS = '("bare", "quoted")'
FORMAT_MISTAKES = {
    "other": (WAYS, '("quoted",)', "formats of Plates_Few_bare", "not among them"),
    "twice": (WAYS, '("bare", "bare")', "format 'bare'", "is that of another"),
    "place": ("(len(way),)", "(1,)", "format 'quoted'", "its format_place (1,) is that of anoth"),
    "name": ("PlainVariant(name,", 'PlainVariant("Plates_Few_bare",', "'quoted'", "its name 'Pl"),
    "order": (WAYS, '(question.format, *{"bare", "quoted"} - {question.format})', "format 'quoted'",
              "another order"),
}  # fmt: skip


CASES = [
    *(pytest.param(PLATES, case, id=name) for name, case in MISTAKES.items()),
    *(pytest.param(FORMATS, case, id=f"format {name}") for name, case in FORMAT_MISTAKES.items()),
    pytest.param(FORMATS, ("", "", "", ""), id="formats without a mistake"),
]


@pytest.fixture(scope="module")
def plates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plates")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(TEMPLATE))
        import_module("findit_plates.__main__").main(folder)
    return folder


@pytest.mark.parametrize("name", ["FindIt", "findit", "Find-It", "VP Bench", "self_retrieval"])
def test_a_name_of_another_benchmark_is_refused(
    name: str, plates: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = Path("mine.py").absolute()
    text = PLATES.replace("from . import PREFIX", 'PREFIX = "Plates_"')
    mine.write_text(text.replace('name = "Plates"', f"name = {name!r}"))
    with known_here(files=(mine,)):
        assert main(["check", "Plates_Few"]) == 2
    assert f"its name {name!r} is that of another benchmark" in capsys.readouterr().err


@pytest.mark.parametrize(("base", "mistake"), every_nth_fast(CASES, 4))
def test_a_mistake_is_named_with_its_place(
    base: str,
    mistake: tuple[str, str, str, str],
    plates: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("FINDIT_TABLES", str(plates))
    monkeypatch.setenv("FINDIT_IMAGES", f"Plates={plates / 'Plates'}")
    right, wrong, where, why = mistake
    text = base.replace("from . import PREFIX", 'PREFIX = "Plates_"')
    if right:
        assert text.count(right) == 1
        text = text.replace(right, wrong)
    mine = Path("mine.py").absolute()
    mine.write_text(text)
    with known_here(files=(mine,)):
        status = main(["check", "Plates_Few" if base is PLATES else "Plates_Few_bare"])
    reported = capsys.readouterr().out
    assert status == bool(right), reported
    findings = re.split(r"^(?=ok |wrong )", reported, flags=re.MULTILINE)
    faults = [each for each in findings if each.startswith("wrong")]
    assert bool(right) == any(where in each and why in each for each in faults), reported
    assert right or "format 'quoted', Plates_Few_quoted" in reported


BROKEN_ROWS = """
from vlmeval_findit.boxes.representation import Representation

REPRESENTATIONS = Representation(
    "rounded", 4, ("a", "b", "c", "d"), (), lambda n: tuple(map(float, map(round, n))), lambda b: b
)
"""


def test_a_representation_that_loses_its_box(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tmp_path / "rows.py"
    rows.write_text(BROKEN_ROWS)
    with known_here(files=(rows,)):
        assert main(["check", "rounded"]) == 1
    assert "comes back as (" in capsys.readouterr().out

"""The format search: two stages, a stated rule for ties, a file that sweeps take as it is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from engine_fakes import FakeDeployment, FakeModel, Message, demo_sweep, go
from perfect_answers import perfect_answer

from vlmeval_findit.analysis import BestFormats, choose_best_format, write_formats
from vlmeval_findit.benchmarks.findit import all_tables, parse
from vlmeval_findit.boxes import Space
from vlmeval_findit.cli import main, report_formats
from vlmeval_findit.core import ConfigError
from vlmeval_findit.data import load_dataset
from vlmeval_findit.models import ModelEntry
from vlmeval_findit.scoring import CellResult, SearchError
from vlmeval_findit.sweeps import Sweep, all_variants, in_best_formats, parse_sweep, search_sweep

BEST = "FindIt_Demo_yxhw_json_bounding_box"


class Knowing(FakeModel):
    """Knows every answer of the demonstration, and says it right in some formats only."""

    def __init__(self, right: Sequence[str]) -> None:
        super().__init__()
        self._right = right

    def generate(self, message: Message, dataset: str) -> Any:
        self.calls += 1
        if dataset not in self._right:
            return "[]"
        loaded = load_dataset(dataset)
        image = message[0]["value"]
        text = message[-1]["value"]
        query = next(
            query
            for query in loaded.queries.values()
            if image.endswith(query.images[0]) and f'"{query.label}"' in text
        )
        return perfect_answer(loaded, query, Space("grid1000"))


def search(folder: Path, table: str = "Demo", limit: int = 8, **more: Any) -> Sweep:
    places = (folder / "search", folder / "calls.jsonl")
    return search_sweep(ModelEntry("FullImage"), all_tables()[table], limit, places, **more)


def test_the_second_stage_finds_the_key(tmp_path: Path) -> None:
    for right, best in (
        ([BEST, "FindIt_Demo_yxhw_text"], "yxhw_text"),  # a tie with the key: the grid's order
        ([BEST, "FindIt_Demo_yxhw_json_bbox_2d"], "yxhw_json_bbox_2d"),
        ([BEST], "xyxy_text"),  # nothing in stage 1 led to it
    ):
        (folder := tmp_path / best).mkdir()
        model = Knowing(right)
        results = go(search(folder), FakeDeployment(model))
        assert choose_best_format(results).format == best
        assert model.calls == (16 + 3) * 8, "bbox_2d at the winner was asked in the first stage"
        assert {result.variant.representation for result in results[16:]} == {best[:4]}
        assert {result.rows for result in results} == {8}


def test_marks_are_asked_of_the_winner_alone(tmp_path: Path) -> None:
    """A third stage: the best format with the object marked in place of a crop."""
    sweep = search(tmp_path, "Demo_insdet", 2, marks=("box", "point"))
    asked = [result.variant for result in go(sweep, FakeDeployment(FakeModel()))]
    assert [variant.mark for variant in asked[:19]] == [None] * 19
    assert [variant.mark for variant in asked[19:]] == ["box", "point"]
    assert replace(asked[19], mark=None) == replace(asked[20], mark=None)
    assert replace(asked[19], mark=None) in asked
    with pytest.raises(ValueError, match="Demo shows no reference images"):
        search(tmp_path, marks=("box",))


# --- the file -------------------------------------------------------------------------------------


def result(name: str, f1: int = 50) -> CellResult:
    """Return a result with a given F1."""
    sums = {"responses": 100, "adherent": 100, "tp": f1, "n_pred": 100, "n_gt": 100}
    sums |= {"iou_sum": f1, "n_gt_failed": 0}
    return CellResult("M", parse(name), sums, 100, 0, Path("x.json"), 100)


def test_the_best_format_was_run_on_every_table() -> None:
    xyxy = result("FindIt_Pascal_xyxy_text", 80)
    xywh = result("FindIt_SVG_xywh_text", 50)
    also = [result("FindIt_SVG_xyxy_text", 20), result("FindIt_Pascal_xywh_text", 60)]
    assert choose_best_format([xyxy, xywh, *also]).format == "xywh_text"
    with pytest.raises(SearchError, match="no format was run on every table"):
        choose_best_format([xyxy, xywh])


def test_sweeps_read_the_file_of_a_search(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    right = Knowing([BEST, "FindIt_Demo_yxhw_json_bbox_2d"])
    path = tmp_path / "best_formats.yaml"
    report_formats(go(search(tmp_path, limit=19), FakeDeployment(right)), path)
    best = "FullImage: best format of 19 on Demo (19 queries): yxhw_json_bbox_2d (F1@0.5 100.0)"
    printed = capsys.readouterr().out
    assert best in " ".join(printed.split())
    assert "Next" not in printed, "nothing is known of how the model was asked"
    assert BestFormats(path).models == {"FullImage": {"FindIt": "yxhw_json_bbox_2d"}}
    found = yaml.safe_load(path.read_text())["models"]["FullImage"]["FindIt"]
    # It is the best on both halves.
    low, high = found["elsewhere"]["F1@0.5 95 %"]
    assert (found["elsewhere"]["F1@0.5"], high) == (100.0, 100.0)
    assert f"  elsewhere: F1@0.5 100.0 ({low:.1f}–100.0)" in printed
    cells = found["cells"]
    assert len(cells) == 19
    for cell in cells:
        low, high = cell["F1@0.5 95 %"]
        assert low <= cell["F1@0.5"] <= high
        assert {"mIoU", "mIoU 95 %", "Adherence", "Adherence 95 %", "rows"} <= cell.keys()
    built = go(
        in_best_formats(demo_sweep(tmp_path), BestFormats(path)), FakeDeployment(FakeModel())
    )
    asked = [result.variant.name.removesuffix("_yxhw_json_bbox_2d") for result in built]
    assert asked == ["FindIt_Demo", "FindIt_Demo_multilabel"]


def test_models_of_earlier_searches_stay(tmp_path: Path) -> None:
    path = tmp_path / "formats.yaml"
    both = {"FindIt": {"winner": "xyxy_text"}}
    write_formats(path, {"A": both, "B": both})
    write_formats(path, {"B": {"FindIt": {"winner": "cx"}, "Letters": {"winner": "plain"}}})
    write_formats(path, {"A": {"Ref-L4": {"winner": "xyxy_json"}}})
    assert BestFormats(path).models == {
        "A": {"FindIt": "xyxy_text", "Ref-L4": "xyxy_json"},
        "B": {"FindIt": "cx", "Letters": "plain"},
    }
    path.write_text("hello: world\n")
    with pytest.raises(ConfigError, match=r"formats\.yaml, line 1: unknown key 'hello'"):
        write_formats(path, {"A": both})
    assert path.read_text() == "hello: world\n"


WINNER = "models:\n  FullImage:\n    FindIt:\n      winner: "


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("intervals: x", "formats.yaml, line 1: models is missing\nSearch and sweep write files"),
        ("models: [", "formats.yaml, line 1: not YAML: "),
        (WINNER.replace("winner", "winer") + "x", "unknown key 'winer': did you mean winner?"),
        (WINNER.replace("winner", "rule") + "x", "line 4: winner is missing"),
        (WINNER + "5", "line 4: winner: 5 should be a name"),
        (WINNER + "xyxy", "winner of FullImage: FindIt_Demo_insdet_xyxy: the output"),
        (WINNER + "xyxx_text", "unknown representation 'xyxx': did you mean"),
        (WINNER.replace("FindIt", "FindItt") + "all_json",
         "formats.yaml: no format of FindIt was chosen for 'FullImage' (there are: FindItt)"),
        ("models: {Other: {FindIt: {winner: xyxy_text}}}",
         "search --model FullImage --data FindIt_Demo_insdet_xyxy_text"),
    ],
)  # fmt: skip
def test_a_bad_file_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "formats.yaml"
    path.write_text(text)
    sweep = parse_sweep("models: FullImage\ndatasets: Demo_insdet")
    with pytest.raises(ValueError, match=re.escape(message)):
        in_best_formats(sweep, BestFormats(path))


def test_a_dry_run_says_which_formats_it_tells_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """First by what formats may differ on, then as those that were asked."""
    line = ["search", "--model", "FullImage", "--data", "Scenes_mini"]
    line += ["--work-dir", str(tmp_path)]
    assert main([*line, "--limit", "25", "--dry-run"]) == 0
    before = " ".join(capsys.readouterr().out.split())
    formats = len(all_variants(search(tmp_path, "Scenes_mini"), "FullImage"))
    assert f"{formats} formats: two are told apart with a chance of 80 % from" in before
    assert "where the two differ on 40 % of images" in before
    assert main([*line, "--limit", "25", "--out", str(tmp_path / "best.yaml")]) == 0
    capsys.readouterr()
    assert main([*line, "--limit", "25", "--dry-run"]) == 0
    after = " ".join(capsys.readouterr().out.split())
    assert f"as in {tmp_path}" in after.replace("- ", "-")
    assert "40 %" not in after
    assert main([*line[:-1], str(tmp_path / "new"), "--limit", "3", "--dry-run"]) == 0
    assert "too few images to tell two apart" in capsys.readouterr().out

"""A key that stands twice in what a user writes is refused wherever it is read, also if equal."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from few_fast import few_fast

from vlmeval_findit.cli import main
from vlmeval_findit.core import TextError, parse_json
from vlmeval_findit.data import AnnotationError, sections

DATA = "FindIt_Demo_xyxy_json"
RUN = ["run", "--data", DATA, "--model", "FindIt-Nano", "--limit", "1", "--dry-run"]
AT = ["--base-url", "http://127.0.0.1:9/v1"]
IMPORT = ["data", "import", "--name", "Mine"]
COCO = """{"images": [{"id": 1, "file_name": "a.png", "width": 9, "height": 9}],
"categories": [{"id": 1, "name": "cat"}], "annotations": [], "annotations": []}"""
ONE = '{"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 1, 2, 2]'
HEAD = """{"images": [{"id": 1, "file_name": "a.png", "width": 9, "height": 9}],
"categories": [{"id": 1, "name": "cat"}],
"annotations": ["""
BOXES = f'{HEAD}{ONE}}}, {ONE}, "bbox": [3, 3, 4, 4]}}, {ONE}}}, {ONE}}}]}}'
FLAGS = f'{HEAD}{ONE}}}, {ONE}, "attributes": {{"a": 1, "a": 2}}}}, {ONE}}}, {ONE}}}]}}'
SCORE = ["score", f"FullImage_{DATA}.json"]
ROW = '{"index": 1, "prediction": "[]"}'
TWICE = '{"index": 2, "prediction": "[]", "prediction": "[1]"}'
RECORDED = (
    '{"index": 1, "prediction": "[]", "extra_records": "{\\"findit\\": {}, \\"findit\\": {}}"}'
)


class Door(NamedTuple):
    """A command line, with what its files and its environment say."""

    words: list[str]
    files: Mapping[str, str] = {}
    environment: Mapping[str, str] = {}


DOORS: Mapping[str, Door] = {
    "settings of scoring": Door([*RUN, "--judge-args", '{"force": false, "force": false}']),
    "a space": Door([*RUN, "--space", '{"kind": "unit", "kind": "unit"}']),
    "a space of a score": Door(["score", "a.json", "--space", '{"kind": "unit", "kind": "unit"}']),
    "a space of a variable": Door(RUN, {}, {"FINDIT_SPACE": '{"kind": "unit", "kind": "unit"}'}),
    "fields of requests": Door([*RUN, *AT, "--extra-body", '{"a": {"b": 1, "b": 1}}']),
    "headers": Door([*RUN, *AT], {}, {"FINDIT_SERVER_HEADERS": '{"x-a": "b", "x-a": "b"}'}),
    "a sweep": Door(["sweep", "a.yaml"], {"a.yaml": "models: FullImage\nlimit: 1\nlimit: 1\n"}),
    "settings of a sweep's model": Door(
        ["sweep", "a.yaml"],
        {"a.yaml": f"models: [{{name: FullImage, settings: {{a: 1, a: 1}}}}]\ndatasets: {DATA}\n"},
    ),
    "best formats": Door(
        ["sweep", "a.yaml", "--formats", "b.yaml"],
        {"a.yaml": "models: FullImage\ndatasets: Scenes_mini\n", "b.yaml": "a: 1\na: 1\n"},
    ),
    "folders": Door(RUN, {"a.yaml": "root: .\nroot: .\n"}, {"FINDIT_CONFIG": "a.yaml"}),
    "lines of queries": Door(
        [*IMPORT, "a.jsonl"],
        {"a.jsonl": '{"image": "a.png", "label": "cat", "label": "cat", "boxes": []}\n'},
    ),
    "COCO": Door([*IMPORT, "a.json"], {"a.json": COCO}),
    "an annotation of COCO": Door([*IMPORT, "a.json"], {"a.json": BOXES}),
    "inside an annotation of COCO": Door([*IMPORT, "a.json"], {"a.json": FLAGS}),
    "predictions": Door(SCORE, {f"FullImage_{DATA}.json": f"[\n{ROW},\n{TWICE}\n]"}),
    "lines of predictions": Door(
        ["score", f"FullImage_{DATA}.jsonl"], {f"FullImage_{DATA}.jsonl": f"{ROW}\n{TWICE}\n"}
    ),
    "a record of a prediction": Door(SCORE, {f"FullImage_{DATA}.json": f"[{RECORDED}]"}),
    "reviews": Door(
        ["data", "reviews", "a.jsonl"],
        {"a.jsonl": '{"verdict": "label", "verdict": "model"}'},
    ),
    "YOLO": Door([*IMPORT, "data.yaml"], {"data.yaml": "names: [cat]\nnames: [cat]\n"}),
}


@pytest.mark.parametrize("door", DOORS)
def test_a_key_that_stands_twice_is_refused(
    door: str,
    demo_data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words, files, environment = DOORS[door]
    more: Mapping[str, Any] = {"LMUData": str(demo_data), "COLUMNS": "1000", **environment}
    for name, value in more.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    Path("a.json").write_text("[]")
    for name, text in files.items():
        Path(name).write_text(text)
    assert main(words) == 2
    assert "duplicate key" in capsys.readouterr().err


PAIRS = {
    "at once": '"bbox": [1, 1, 2, 2], "bbox": [3, 3, 4, 4]',
    "apart": '"bbox": [1, 1, 2, 2], "id": 7, "bbox": [1, 1, 2, 2]',
    "an escape": r'"bbox": [1, 1, 2, 2], "bbo\u0078": [3, 3, 4, 4]',
    "inside": '"id": 7, "attributes": {"a": {"b": 1, "b": 2}}',
    "in a list": '"id": 7, "parts": [{"a": 1}, {"a": 1, "a": 2}]',
}


@pytest.mark.parametrize("pairs", PAIRS)
@pytest.mark.parametrize("place", few_fast([0, 1, 700, 1999], 1))
def test_equal_keys_are_found_in_large_files(pairs: str, place: int, tmp_path: Path) -> None:
    """Files are decoded in parts, many elements at once; the line is that of the object."""
    elements = [f'{{"id": {number}, "bbox": [1, 2, 3, 4]}}' for number in range(2000)]
    elements[place] = f"{{{PAIRS[pairs]}}}"
    path = tmp_path / "a.json"
    path.write_text('{"annotations": [' + ",\n".join(elements) + "]}")
    with pytest.raises(AnnotationError, match=rf"a.json, line {place + 1}: duplicate key"):
        list(sections(path, None))
    with pytest.raises(TextError, match=rf"^line {place + 1}: duplicate key"):
        parse_json(path.read_text())


def test_values_that_look_like_keys_are_no_equal_keys(tmp_path: Path) -> None:
    element = {"id": 1, "name": "id", "of": ["name", "id"], "more": {"id": 2, "name": {"id": 3}}}
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"annotations": [element] * 900}))
    assert sum(part.value == element for part in sections(path, None)) == 900

"""A key that stands twice in what a user writes is refused wherever it is read, also if equal."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from vlmeval_findit.cli import main

DATA = "FindIt_Demo_xyxy_json"
RUN = ["run", "--data", DATA, "--model", "FindIt-Nano", "--limit", "1", "--dry-run"]
AT = ["--base-url", "http://127.0.0.1:9/v1"]
IMPORT = ["data", "import", "--name", "Mine"]
COCO = """{"images": [{"id": 1, "file_name": "a.png", "width": 9, "height": 9}],
"categories": [{"id": 1, "name": "cat"}], "annotations": [], "annotations": []}"""


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

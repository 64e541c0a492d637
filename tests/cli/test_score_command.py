"""``score`` of a folder: a file that is refused ends nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from few_fast import every_nth_fast
from scored_runs import World, saying

from vlmeval_findit.cli import main
from vlmeval_findit.storage import RunFiles

NAME = "FindIt_Pascal_xyxy_json"

ODD = {
    "logprobs of another form": '{"findit": {"logprobs": [0.5]}}',
    "tokens that are no numbers": '{"findit": {"tokens": {"prompt": "many"}}}',
    "images that are sizes": '{"findit": {"images": [640, 480]}}',
    "a model within a model": '{"findit": {"model": {"identifier": ["m"]}}}',
    "a call that is a list": '{"findit": {"call": [{"cost": 1}]}}',
    "a thought that is a flag": '{"findit": {"thought": true}}',
    "a flag that is a word": '{"findit": {"ends_in_thought": "no"}}',
    "a record within lists": '{"findit": [[{}]]}',
    "nested without end": '{"findit": ' * 50_000,
}


@pytest.mark.parametrize("record", every_nth_fast(ODD.values(), 3), ids=ODD)
def test_the_files_beside_an_odd_record_are_scored(
    record: str, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [world.predict(model, NAME, saying("[]")) for model in "ABC"]
    for path in paths:
        RunFiles(path).score.unlink()
    rows = json.loads(paths[1].read_text())
    rows[4]["extra_records"] = record
    paths[1].write_text(json.dumps(rows))
    assert main(["score", str(world.runs)]) == 1
    printed = capsys.readouterr()
    assert f"not scored: {paths[1]}, row 5, column extra_records: " in printed.err
    assert [RunFiles(path).score.exists() for path in paths] == [True, False, True]
    assert "A" in printed.out
    assert "C" in printed.out
    assert main(["score", str(paths[1])]) == 2, "of a file alone nothing is scored"
    assert f"error: {paths[1]}, row 5" in capsys.readouterr().err


def test_any_file_that_cannot_be_read_is_named(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    good = world.predict("Good", NAME, saying("[]"))
    RunFiles(good).score.unlink()
    bad: list[Path] = []
    for model, content in {
        "Nul": b"\0" * 999,
        "Cut": b'[{"index": 0',
        "Deep": b"[" * 99_999,
    }.items():
        bad.append(world.runs / f"{model}_{NAME}.json")
        bad[-1].write_bytes(content)
    bad.append(world.runs / f"Pipe_{NAME}.json")
    os.mkfifo(bad[-1])
    record = world.predict("Record", NAME, saying("[]"))
    RunFiles(record).identity.write_text("[" * 99_999)
    bad.append(RunFiles(record).identity)
    assert main(["score", str(world.runs), *map(str, bad[:-1])]) == 1
    printed = capsys.readouterr().err
    for path in bad:
        assert str(path) in printed, printed
    assert RunFiles(good).score.exists()


def test_boxes_that_no_benchmark_converts_are_told_what_to_do(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    boxes = world.folder / "boxes.json"
    boxes.write_text('[{"a": 1}]')
    assert main(["score", "--convert", str(boxes), "--data", NAME]) == 2
    said = capsys.readouterr().err
    assert f"to <model>_{NAME}.jsonl" in said
    assert "--space file_pixels" in said

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from paths import ROOT
from scored_runs import World, failing, saying, speaking

from vlmeval_findit.boxes import FormatFailure
from vlmeval_findit.protocol import Settings
from vlmeval_findit.scoring import RunError, load_run, load_runs, score_file, write_score
from vlmeval_findit.storage import RunFiles

JSON = "FindIt_Pascal_xyxy_json"
TEXT = "FindIt_Pascal_xyxy_text"


def test_a_run_is_what_was_scored(world: World) -> None:
    run = world.run("Some-Model", JSON, speaking(JSON, 0.6, 20))
    scored = score_file(run.path, Settings(space="grid1000"))
    assert (run.model, run.variant.name) == ("Some-Model", JSON)
    assert run.sums == pytest.approx(scored.sums)
    assert run.metric_values == scored.metric_values
    assert run.rows == scored.rows
    assert [row.index for row in run.rows] == list(range(12))
    assert {row.source for row in run.rows} == {f"{i}.jpg" for i in range(6)}
    known = run.provenance
    assert (known.prompts, known.rows, known.missing) == ("findit-own-1", frozenset(range(12)), ())
    assert known.spaces_in_words == ("grid1000 (recorded by the run)",)


def test_numbers_that_are_not_finite_and_labels(world: World) -> None:
    name = "FindIt_Pascal_multilabel_xyxy_json"
    reply = '[{"label": "cat", "bbox": [0, 0, 1e308, 1e308]}, {"label": "x", "bbox": [1, 2, 3, 4]}]'
    run = world.run("Huge", name, saying(reply))
    assert run.rows[0].details["boxes"][0] == pytest.approx([0, 0, 2e307, 1e307])
    # In fractions of 200x100 pixels the same number is more than any float holds.
    write_score(score_file(run.path, Settings(space="unit", force=True)), run.path)
    details = load_run(RunFiles(run.path).provenance).rows[0].details
    assert details["boxes"] == [[0, 0, None, None], [200, 200, 600, 400]]
    assert details["labels"] == run.rows[0].details["labels"] == ["cat", "x"]


def test_folders_are_searched_and_every_run_is_loaded_once(world: World) -> None:
    path = world.predict("A", JSON, saying("[]"), folder="A/T20260101")
    world.predict("A", TEXT, saying("[]"), folder="A")
    files = RunFiles(path)
    links = RunFiles(world.runs / "A" / path.name)
    links.provenance.symlink_to(files.provenance)
    links.details.symlink_to(files.details)
    for given in ([world.runs], [world.runs, path], [world.runs, links.provenance]):
        assert [run.variant.name for run in load_runs(given)] == [JSON, TEXT]
    assert [run.path.name for run in load_runs([files.details])] == [path.name]


def test_what_cannot_be_loaded_says_why(world: World, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_runs([tmp_path / "nowhere"])
    with pytest.raises(RunError, match=r"no scored runs in this folder.*run_findit\.py demo"):
        load_runs([empty])
    unscored = empty / f"B_{JSON}.json"
    unscored.write_text("[]")
    with pytest.raises(RunError, match=r"no scored runs in this folder.*run_findit\.py score"):
        load_runs([empty])
    with pytest.raises(RunError, match=r"not scored yet.*run_findit\.py score"):
        load_runs([unscored])
    path = world.predict("A", JSON, speaking(JSON, 1.0))
    files, replies = RunFiles(path), path.read_text()
    path.write_text("[]")
    with pytest.raises(RunError, match="changed after it was scored"):
        load_runs([path])
    path.write_text(replies)
    files.details.write_text("".join(files.details.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(RunError, match=r"totals\.responses is 12, but .* add up to 11"):
        load_runs([path])
    files.details.unlink()
    with pytest.raises(RunError, match=r"details\.jsonl is missing"):
        load_runs([path])
    files.provenance.write_text("{}")
    with pytest.raises(RunError, match=r"provenance\.json: model is missing; score it again"):
        load_runs([path])


def test_failed_calls_and_reasons(world: World) -> None:
    run = world.run("Fails", JSON, failing)
    first = run.rows[0]
    assert (run.failed, first.failed, first.reason) == (4, True, "failed call")
    assert first.sums["n_gt_failed"] == 2
    assert run.benchmark.query_score(first) == 0
    run = world.run("Talks", JSON, saying("I see a cat."))
    assert {row.reason for row in run.rows} == {FormatFailure.NOT_JSON.value}


def test_every_key_of_the_files_is_on_their_page(world: World) -> None:
    page = (ROOT / "docs" / "reference" / "files.md").read_text(encoding="utf-8")
    sections = {part.partition("\n")[0]: part for part in page.split("\n## ")}
    keys: dict[str, set[str]] = {"Details": set(), "Provenance": set(), "Identity": set()}
    cut_off = saying('[{"bbox": [0, 0, 500, 500]}, {"bbox": [1, 2')
    for model, answer in {"Good": speaking(JSON, 0.5), "Failing": failing, "Cut": cut_off}.items():
        files = RunFiles(world.run(model, JSON, answer).path)
        for line in files.details.read_text().splitlines():
            keys["Details"] |= json.loads(line).keys()
        keys["Provenance"] |= json.loads(files.provenance.read_text()).keys()
        keys["Identity"] |= json.loads(files.identity.read_text()).keys()
    assert {"errors", "lenient"} <= keys["Details"]
    for section, names in keys.items():
        assert names - {*re.findall(r"`(\w+)`", sections[section])} == set()

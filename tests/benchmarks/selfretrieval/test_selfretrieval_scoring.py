"""Self-retrieval scored: what is right, what is counted, by which encoder, and never mixed."""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scored_runs import World
from word_encoder import LONGEST, WordEncoder, features, install

from vlmeval_findit import models
from vlmeval_findit.analysis import StatisticsError, compare_runs
from vlmeval_findit.benchmarks.selfretrieval import (
    BENCHMARK,
    ImagePair,
    ZeroLengthError,
    is_right,
    similarities,
    write_table,
)
from vlmeval_findit.leaderboard import as_markdown, make_board
from vlmeval_findit.models import EncoderError
from vlmeval_findit.protocol import ChosenEncoder, Role, Settings, SettingsError, settings_from
from vlmeval_findit.scoring import Run, load_run, score_file, write_score

NAN = math.nan


@pytest.mark.parametrize(
    ("correct", "other", "right"),
    [
        (0.5, 0.4, True),
        (0.4, 0.5, False),
        (-0.4, -0.5, True),
        (0.5, 0.5, True),
        (0.0, -0.0, True),
        (NAN, 1.0, True),
        (1.0, NAN, False),
        (NAN, NAN, True),
    ],
)
def test_what_is_right(correct: float, other: float, right: bool) -> None:
    cosines = np.array([[correct, other]], dtype=np.float32)
    assert is_right(cosines).tolist() == [right]
    # The rule: the largest of [its image, other], NaN above all, the first of equals.
    assert (int(np.argmax(cosines)) == 0) == right


def test_features_without_length_are_refused() -> None:
    each = [[1.0, 0.0]]
    whose = ("a caption", "its image", "the other image")
    for at, what in enumerate(whose):
        features = [each, each, each]
        features[at] = [[0.0, 0.0]]
        with pytest.raises(ZeroLengthError, match=what):
            similarities(*features)
    # Short is not zero.
    assert similarities([[1e-30, 0]], each, [[0, 1]])[0].tolist() == [1.0, 0.0]


DESCRIBED = {
    **{"0l.png": "a red circle", "0r.png": "a red square"},
    **{"1l.png": "one cat sleeps", "1r.png": "two cats sleep"},
    **{"2l.png": "a bus", "2r.png": "a tram", "3l.png": "snow", "3r.png": "rain"},
}
PAIRS = [ImagePair(at, f"u{at}", (f"{at}l.png", f"{at}r.png")) for at in range(4)]


def captions(left: Any, right: Any) -> str:
    return json.dumps({"left_image": left, "right_image": right})


def honest(pair: ImagePair, *_: object) -> str:
    return captions(*(DESCRIBED[name] for name in pair.images))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("FINDIT_TABLES", str(tmp_path))
    write_table(tmp_path, "SelfRetrieval", PAIRS, {"source": "a test"})
    return World(tmp_path)


@pytest.fixture
def encoders(monkeypatch: pytest.MonkeyPatch) -> dict[str, WordEncoder]:
    return install(monkeypatch, DESCRIBED)


LONG = " ".join(["circle"] * (LONGEST + 1))
NOTHING = {"both": 0, "right": 0, "unread": 2, "ties": 0, "equal": 0, "pairs": 1, "captions": 2}
PUBLISHED = {"both": 0, "right": 0, "both_published": 1, "right_published": 2}
SCORED: list[tuple[str, dict[str, float]]] = [
    (captions("circle", "square"), {"both": 1, "right": 2, "right_published": 0}),
    (captions("square", "circle"), PUBLISHED),
    (captions("circle", "circle"), {"both": 0, "right": 1, "equal": 1, "right_published": 1}),
    (captions("red", "a red"), {"both": 1, "right": 2, "ties": 2, "both_published": 1}),
    (captions("red", "red"), {"both": 1, "ties": 2, "equal": 1}),
    (captions("circle", None), {"both": 0, "right": 1, "unread": 1}),
    (captions(" ", "square"), {"both": 0, "right": 1, "unread": 1}),
    ("none", NOTHING),
    (captions(LONG, "square"), {"both": 1, "cut": 1}),
    ("Failed to obtain answer", {"failed": 1, "pairs": 0, "captions": 0, "unread": 0, "asked": 1}),
]


@pytest.mark.parametrize(("reply", "sums"), SCORED, ids=[reply[:40] for reply, _ in SCORED])
def test_what_is_counted(
    reply: str, sums: dict[str, float], world: World, encoders: dict[str, WordEncoder]
) -> None:
    (row,) = world.run("m", "SelfRetrieval", lambda *_: reply, rows=1).rows
    assert {name: row.sums[name] for name in sums} == sums
    assert row.failed is ("Failed" in reply)


def test_metrics_as_published_accompany_the_default(
    world: World, encoders: dict[str, WordEncoder]
) -> None:
    def answer(pair: ImagePair, *_: object) -> str:
        return honest(pair) if pair.index < 3 else "Failed to obtain answer via API"

    result = score_file(world.predict("m", "SelfRetrieval", answer))
    expected = {"Pairs": 100.0, "Captions": 100.0}
    assert result.metric_values == expected | {f"{name} as published": 0.0 for name in expected}
    assert BENCHMARK.headline_counting_failures.value(result.sums) == 75.0
    assert encoders["SigLIP"].asked.count("0l.png") == 2  # once a scoring
    assert "3l.png" not in encoders["SigLIP"].asked


def rescored(path: Path, encoder: str | None) -> Run:
    chosen = ChosenEncoder(encoder) if encoder else None
    write_score(score_file(path, Settings(encoder=chosen)), path)
    return load_run(path.with_name(f"{path.stem}_provenance.json"))


def test_what_scored_is_recorded(world: World, encoders: dict[str, WordEncoder]) -> None:
    path = world.predict("m", "SelfRetrieval", honest)
    provenance = json.loads(path.with_name(f"{path.stem}_provenance.json").read_text())
    assert provenance["scorer"] == {
        "name": "SigLIP",
        "settings": {"revision": "of SigLIP", "padding": "as trained"},
        "source": "default of SelfRetrieval",
        "versions": {"torch": "9"},
    }
    assert ",SigLIP," in path.with_name(f"{path.stem}_score.csv").read_text()
    scorer = rescored(path, "owner/another").provenance.scorer
    assert scorer is not None
    assert (scorer.name, scorer.source) == ("owner/another", "setting")
    assert set(encoders) == {"SigLIP", "owner/another"}


def test_runs_that_different_encoders_scored_are_never_mixed(
    world: World, encoders: dict[str, WordEncoder]
) -> None:
    paths = {model: world.predict(model, "SelfRetrieval", honest) for model in ("a", "b", "c")}
    each = rescored(paths["a"], None)
    two = rescored(paths["b"], None)
    # By another name, but the same encoder: who chose it does not matter.
    same = rescored(paths["b"], "SigLIP")
    assert same.provenance.scored_under == each.provenance.scored_under
    other = rescored(paths["c"], "owner/another")
    assert set(compare_runs(each, two)) >= {"Pairs", "Captions as published"}
    with pytest.raises(StatisticsError, match="score both again by the same"):
        compare_runs(each, other)
    board = make_board([each, same, other])
    assert set(board.models) == {"a", "b"}
    assert [apart.run.model for apart in board.excluded] == ["c"]
    reason = "scored by owner/another, the rest by SigLIP: other revision; score it again by that"
    assert reason in board.excluded[0].reason
    text = as_markdown(board)
    assert "* SelfRetrieval: SigLIP (revision of SigLIP, padding as trained)" in text
    # The table is scored again by the encoder that the rest has, and all stand together.
    assert not make_board([each, same, rescored(paths["c"], "SigLIP")]).excluded


def test_an_unusable_encoder_is_refused_before_any_call(tmp_path: Path) -> None:
    variant = BENCHMARK.parse("SelfRetrieval")
    for name in ("SigLIP", "FindIt-Nano-SigLIP", "owner/name", str(tmp_path)):
        BENCHMARK.check(variant, Settings(encoder=ChosenEncoder(name)))
    wrong = Settings(encoder=ChosenEncoder("Siglib", "FINDIT_ENCODER"))
    with pytest.raises(SettingsError, match=r"'Siglib' \(FINDIT_ENCODER\).*did you mean SigLIP\?"):
        BENCHMARK.check(variant, wrong)
    with pytest.raises(SettingsError, match="is not a name"):
        settings_from({"encoder": 7})


def test_an_encoder_that_cannot_be_had_leaves_the_predictions_safe(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        install(patch, DESCRIBED)
        path = world.predict("m", "SelfRetrieval", honest)
    for module in ("loading", "towers"):  # another test may have imported them
        name = f"vlmeval_findit.models.dual_encoder.{module}"
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.delitem(vars(models), "named_encoder", raising=False)  # the room's door has it, too
    monkeypatch.setitem(sys.modules, "transformers", None)  # it is not installed
    expected = r"encoder SigLIP: (torch|transformers) is not installed: pip install .*\[local\]"
    with pytest.raises(EncoderError, match=expected) as caught:
        score_file(path)
    assert f"run_findit.py score --encoder ENCODER {path}" in str(caught.value)


def test_both_pictures_and_four_similarities_are_drawn(
    world: World, encoders: dict[str, WordEncoder]
) -> None:
    replies = iter([captions("circle", "red circle"), captions(LONG.replace("circle", "cat"), 3)])
    run = world.run("m", "SelfRetrieval", lambda *_: next(replies), rows=2)
    dataset = BENCHMARK.load("SelfRetrieval")
    first, second = (BENCHMARK.draw(dataset, row) for row in run.rows)
    shown = [(each.path, each.name) for each in first.images]
    assert shown == [("0l.png", "left"), ("0r.png", "right")]
    assert [(line.role, line.text.partition(": its image ")[0]) for line in first.lines] == [
        (Role.HIT, "caption of the left image"),
        (Role.MISS, "caption of the right image"),
        (Role.MISS, "as published, left image"),
        (Role.HIT, "as published, right image"),
    ]
    assert all(
        re.search(r": its image -?0\.\d{3}, the other -?0\.\d{3}", each.text)
        for each in first.lines
    )
    assert first.lines[0].text.endswith(" — circle")
    assert f"(cut: it has {LONGEST + 1} tokens) — cat cat" in second.lines[0].text
    assert second.lines[1].text == "caption of the right image: there is none (not_text)"
    assert len(second.lines) == 3


def test_similarities_that_are_not_finite_are_stored(
    world: World, encoders: dict[str, WordEncoder], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = features(["a red square"])
    images = np.concatenate([np.full_like(right, NAN), right])
    monkeypatch.setattr(WordEncoder, "images", lambda self, paths: images)
    run = world.run("m", "SelfRetrieval", honest, rows=1)
    assert run.rows[0].sums["right"] == 1  # the right image's NaN is right
    assert run.rows[0].details["left"]["default"]["own"] is None

"""How a model is asked to reproduce a figure, and what of it cannot be set."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from vlmeval_findit.data import ImageBounds, PublishedDecoding, PublishedFigure
from vlmeval_findit.models import ModelEntry, ModelOptions, RunningProgram
from vlmeval_findit.protocol import PictureSample
from vlmeval_findit.reproduction import (
    Answerer,
    AnsweringProgram,
    ConditionAgreement,
    ConditionSet,
    Setup,
    SetupError,
    Stated,
    choose_figure,
    find_variants,
    plan_setup,
)

SAMPLE = PictureSample(500)
HERE = AnsweringProgram(Answerer.HERE, "transformers 5.0")
VLLM = AnsweringProgram(Answerer.SERVER, "vllm 0.11.0")
SGLANG = AnsweringProgram(Answerer.SERVER, "sglang 0.5")
UNKNOWN = AnsweringProgram(Answerer.SERVER)
BY_HOST = AnsweringProgram(Answerer.HOST)
SERVED_BY_VLLM = AnsweringProgram(Answerer.SERVED, "vllm 0.11.0")
SERVED_BY_SGLANG = AnsweringProgram(Answerer.SERVED, "sglang 0.5")

AS_PUBLISHED, NOT_TOLD, CANNOT_BE_SET, YOURS = ConditionAgreement


def figure_of(name: str, **conditions: Any) -> PublishedFigure:
    """Return a model's figure, of scenes, in conditions."""
    scenes = choose_figure(ModelEntry("FindIt-Nano"), "Scenes refexp")
    figure = choose_figure(ModelEntry(name))
    changed = replace(figure.conditions, **conditions)
    return replace(figure, set=replace(scenes.set, metric="acc@0.5"), conditions=changed)


def planned(
    figure: PublishedFigure,
    deployment: AnsweringProgram,
    stated: Stated | None = None,
    **options: Any,
) -> Setup:
    if deployment.answerer is Answerer.SERVER:
        options["base_url"] = "http://localhost:1/v1"
    entry = ModelOptions(**options).entry(figure.model)
    return plan_setup(figure, entry, deployment, SAMPLE, stated)


def condition(setup: Setup, name: str) -> ConditionSet:
    (named,) = (each for each in setup.conditions if each.name == name)
    return named


def test_complete_conditions_are_set_as_published() -> None:
    figure = choose_figure(ModelEntry("FindIt-Nano"))
    setup = plan_setup(figure, ModelEntry("FindIt-Nano"), HERE, SAMPLE)
    assert {each.agreement for each in setup.conditions} == {AS_PUBLISHED}
    assert [variant.name for variant in setup.variants] == ["FindIt_Scenes_xyxy_json_bbox_2d"]
    assert setup.entry.settings == {
        "min_pixels": 2304, "max_pixels": 28224, "max_new_tokens": 768,
    }  # fmt: skip
    assert (setup.prompts, setup.entry.space) == ("", None)


# --- decoding -------------------------------------------------------------------------------------


def test_a_server_is_asked_to_sample_as_published() -> None:
    setup = planned(figure_of("Qwen3-VL-8B-Instruct"), VLLM)
    # Neutral values are sent, too: servers have defaults of the checkpoint's.
    assert setup.entry.settings == {
        "temperature": 0.7, "top_p": 0.8, "top_k": 20, "repetition_penalty": 1,
        "presence_penalty": 1.5, "seed": 3407, "max_new_tokens": 32768,
    }  # fmt: skip
    decoding = condition(setup, "decoding")
    assert decoding.agreement is AS_PUBLISHED
    assert decoding.here.endswith("max_tokens 32768, no thinking")
    assert setup.prompts == "qwen3-vl-1"
    assert condition(setup, "engine") == ConditionSet("engine", "vllm", "vllm 0.11.0", AS_PUBLISHED)


def test_what_this_process_cannot_sample_is_said() -> None:
    setup = planned(figure_of("Qwen3-VL-8B-Instruct"), HERE)
    assert setup.entry.settings == {"temperature": 0.7, "max_new_tokens": 32768}
    decoding = condition(setup, "decoding")
    assert decoding.agreement is CANNOT_BE_SET
    assert "takes no top_p 0.8, top_k 20, presence_penalty 1.5, seed 3407" in decoding.advice
    assert condition(setup, "engine").agreement is YOURS


@pytest.mark.parametrize(
    ("told", "options", "stated", "settings", "agreement", "here"),
    [
        ("unknown", {}, None, {}, NOT_TOLD, "greedy"),
        (PublishedDecoding(max_tokens=9), {}, None, {"max_new_tokens": 9}, NOT_TOLD,
         "greedy, max_tokens 9"),
        (PublishedDecoding(temperature=0), {}, None, {}, AS_PUBLISHED, "greedy"),
        (PublishedDecoding(temperature=0, top_p=0.8, seed=4), {}, None, {}, AS_PUBLISHED, "greedy"),
        (PublishedDecoding(temperature=0), {"temperature": 0.5}, None, {"temperature": 0.5}, YOURS,
         "temperature 0.5"),
        (PublishedDecoding(temperature=0.5), {"temperature": 0.5}, None, {"temperature": 0.5},
         AS_PUBLISHED, "temperature 0.5"),
        (PublishedDecoding(temperature=1), {"temperature": 0.0}, None, {"temperature": 0.0}, YOURS,
         "greedy"),
        (PublishedDecoding(temperature=0, max_tokens=9), {}, Stated(max_tokens=5),
         {"max_new_tokens": 5}, YOURS, "greedy, max_tokens 5"),
        (PublishedDecoding(temperature=1, top_k=5), {"extra_body": '{"top_k": 3}'}, None,
         {"temperature": 1, "top_k": 3}, YOURS, "temperature 1, top_k 3"),
    ],
)  # fmt: skip
def test_what_is_stated_wins_over_what_is_published(
    told: Any,
    options: dict[str, Any],
    stated: Stated | None,
    settings: dict[str, Any],
    agreement: ConditionAgreement,
    here: str,
) -> None:
    setup = planned(
        figure_of("InternVL3-8B", decoding=told, bounds="unknown"), VLLM, stated, **options
    )
    assert setup.entry.settings == settings
    decoding = condition(setup, "decoding")
    assert (decoding.agreement, decoding.here) == (agreement, here)


@pytest.mark.parametrize(
    ("model", "agreement"), [("Qwen3.5-9B", AS_PUBLISHED), ("Qwen3.5-9B-nothink", YOURS)]
)
def test_a_model_that_was_told_not_to_think_is_yours(
    model: str, agreement: ConditionAgreement
) -> None:
    figure = figure_of("InternVL3-8B", decoding=PublishedDecoding(temperature=0, thinking=True))
    setup = plan_setup(figure, ModelEntry(model), HERE, SAMPLE)
    assert condition(setup, "decoding").agreement is agreement


# --- bounds ---------------------------------------------------------------------------------------

TILES = ImageBounds(patches=6)
PIXELS = ImageBounds(min_pixels=100, max_pixels=9000)
IN_REQUEST = {"mm_processor_kwargs": {"max_dynamic_patch": 6}}
OF_CONVERTED = {"mm_processor_kwargs": {"crop_to_patches": True, "max_patches": 6}}
_RUNNING = RunningProgram("vllm", "0.11.0", "OpenGVLab/InternVL3-8B-hf")
CONVERTED = AnsweringProgram(Answerer.SERVER, _RUNNING.words, _RUNNING)


@pytest.mark.parametrize(
    ("model", "deployment", "bounds", "settings", "agreement", "advice"),
    [
        ("InternVL3-8B", VLLM, TILES, IN_REQUEST, AS_PUBLISHED, ""),
        ("InternVL3-8B", CONVERTED, TILES, OF_CONVERTED, AS_PUBLISHED, ""),
        ("InternVL3-8B", UNKNOWN, TILES, {}, CANNOT_BE_SET, "'{\"max_dynamic_patch\": 6}'"),
        ("InternVL3-8B", SGLANG, TILES, {}, CANNOT_BE_SET, "server's"),
        ("InternVL3-8B", SERVED_BY_SGLANG, TILES, {}, CANNOT_BE_SET, "--serve vllm"),
        ("InternVL3-8B", SERVED_BY_VLLM, TILES, {"patches": 6}, AS_PUBLISHED, ""),
        ("InternVL3-8B", HERE, TILES, {"patches": 6}, AS_PUBLISHED, ""),
        ("InternVL3-8B", HERE, PIXELS, {}, CANNOT_BE_SET, "takes no max_pixels"),
        ("InternVL3-8B", BY_HOST, TILES, {}, CANNOT_BE_SET, "VLMEvalKit's class"),
        ("Qwen3-VL-8B", HERE, PIXELS, {"min_pixels": 100, "max_pixels": 9000}, AS_PUBLISHED, ""),
        ("Qwen3-VL-8B", HERE, "unknown", {}, NOT_TOLD, ""),
    ],
)  # fmt: skip
def test_bounds_are_set_where_the_program_takes_them(
    model: str,
    deployment: AnsweringProgram,
    bounds: Any,
    settings: dict[str, Any],
    agreement: ConditionAgreement,
    advice: str,
) -> None:
    setup = planned(figure_of(model, bounds=bounds, decoding="unknown"), deployment)
    assert setup.entry.settings == settings
    told = condition(setup, "bounds")
    assert told.agreement is agreement
    assert advice in told.advice


def test_bounds_of_a_request_are_the_users() -> None:
    figure = figure_of("InternVL3-8B", decoding="unknown")
    for patches, agreement in ((6, AS_PUBLISHED), (12, YOURS)):
        body = f'{{"mm_processor_kwargs": {{"crop_to_patches": true, "max_patches": {patches}}}}}'
        setup = planned(figure, UNKNOWN, extra_body=body)
        assert setup.agreement("bounds") is agreement


# --- prompt, format and space ---------------------------------------------------------------------


def test_words_of_the_user_are_yours(tmp_path: Any) -> None:
    figure = figure_of("Qwen3-VL-8B-Instruct")
    setup = planned(figure, VLLM, Stated(prompts="findit-own-1"))
    assert (setup.prompts, setup.agreement("prompt")) == ("", YOURS)
    template = tmp_path / "words.jinja"
    template.write_text("Find {{ expression }}")
    setup = planned(figure, VLLM, prompt_template=str(template))
    assert (setup.prompts, setup.agreement("prompt")) == ("", YOURS)
    assert [each.here for each in setup.conditions if each.name == "prompt"] == [
        "your words: words.jinja"
    ]
    with pytest.raises(SetupError, match="exclude each other"):
        planned(figure, VLLM, Stated(prompts="glm-1"), prompt_template=str(template))


@pytest.mark.parametrize(
    ("model", "stated", "form"),
    [
        ("InternVL3-8B", Stated(), "xyxy_text"),
        ("Qwen3-VL-8B-Instruct", Stated(prompts="findit-own-1", format="xyxy_json"), "xyxy_json"),
    ],
)
def test_the_format_is_the_published_one_or_yours(model: str, stated: Stated, form: str) -> None:
    setup = planned(figure_of(model), VLLM, stated)
    assert [variant.format for variant in setup.variants] == [form]


def test_a_format_that_is_not_told_is_the_rows() -> None:
    figure = figure_of("InternVL3-8B", prompt="unknown", format="unknown")
    for model, form in {
        "Qwen3-VL-8B": "xyxy_json_bbox_2d",
        "Gemini-2.5-Flash": "yxyx_json",
        "InternVL3-8B": "xyxy_json",
    }.items():
        setup = plan_setup(figure, ModelEntry(model), UNKNOWN, SAMPLE)
        assert [variant.format for variant in setup.variants] == [form]
        assert setup.agreement("format") is NOT_TOLD
    points = replace(figure, set=replace(figure.set, metric="point in box"))
    setup = plan_setup(points, ModelEntry("Qwen3-VL-8B"), UNKNOWN, SAMPLE)
    assert [variant.format for variant in setup.variants] == ["point_json_point_2d"]
    assert not [each for each in setup.conditions if each.name == "iou"]


@pytest.mark.parametrize(
    ("stated", "why"),
    [
        (Stated(format="xyxy_json"), "the prompt qwen3-vl-1 is answered as xyxy_json_bbox_2d"),
        (Stated(prompts="qwen3-vl"), "--prompts qwen3-vl: unknown prompt set: did you mean qwen"),
        (Stated(prompts="findit-own-1", format="point_json"), "acc@0.5 is a metric of boxes"),
        (Stated(format="xyxy_jsn"), "--format xyxy_jsn: "),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(stated: Stated, why: str) -> None:
    with pytest.raises(SetupError) as error:
        planned(figure_of("Qwen3-VL-8B-Instruct"), VLLM, stated)
    assert why in str(error.value)


@pytest.mark.parametrize(
    ("model", "published", "options", "space", "agreement"),
    [
        ("InternVL3-8B", "grid1000", {}, None, AS_PUBLISHED),
        # No row knows its space: the published one is stated.
        ("InternVL3.5-8B", "grid1000", {}, {"kind": "grid1000"}, AS_PUBLISHED),
        ("InternVL3-8B", "grid1000", {"space": "unit"}, "unit", YOURS),
        ("InternVL3-8B", "unknown", {"space": "unit"}, "unit", NOT_TOLD),
        ("InternVL3-8B", "unknown", {}, None, NOT_TOLD),
        # Only the server knows its bounds, and refuses without them.
        ("InternVL3-8B", "smart_resize", {}, None, AS_PUBLISHED),
    ],
)
def test_the_space_is_the_published_one_or_yours(
    model: str, published: str, options: dict[str, Any], space: Any, agreement: ConditionAgreement
) -> None:
    setup = planned(figure_of(model, space=published), VLLM, **options)
    assert setup.entry.space == space
    assert setup.agreement("space") is agreement


# --- datasets -------------------------------------------------------------------------------------


def test_missing_datasets_come_with_the_commands_that_make_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("LMUData", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SetupError) as error:
        find_variants(choose_figure(ModelEntry("Qwen3-VL-8B")), "xyxy_json_bbox_2d")
    text = str(error.value)
    assert text.startswith("RefCOCO mean of 8: 8 of 8 datasets are not here (RefCOCOFull_val, ")
    for name in ("RefCOCOFull", "RefCOCOplusFull", "RefCOCOgFull"):
        assert text.count(f"python run_findit.py data get {name} --from PATH\n") == 1
    assert "--set" not in text
    with pytest.raises(SetupError, match="data get RefL4Full_test"):
        find_variants(choose_figure(ModelEntry("GLM-4.5V")), "xyxy_text")

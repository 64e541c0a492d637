"""A trainer's reward is the score of the same reply, whatever stands around it."""

from __future__ import annotations

import json
import logging
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from few_fast import few_fast

import vlmeval_findit as findit

BOX = [[64.0, 48.0, 320.0, 240.0]]
SIZE = [640, 480]
JSON = '[{"bbox_2d": [100, 100, 500, 500]}]'
COLUMNS: dict[str, Any] = {
    "truth": BOX,
    "size": SIZE,
    "format": "xyxy_json_bbox_2d",
    "space": "grid1000",
}
PROMPT = "<|im_start|>user\nWhere is the dog?<|im_end|>\n<|im_start|>assistant\n"


def by_trl(replies: Sequence[str], prompt: str, columns: dict[str, Any], **fixed: Any) -> list[Any]:
    many = {name: [value] * len(replies) for name, value in columns.items()}
    function = findit.reward_function("trl", **fixed)
    return function(prompts=[prompt] * len(replies), completions=replies, **many)


def by_ms_swift(
    replies: Sequence[str], prompt: str, columns: dict[str, Any], **fixed: Any
) -> list[Any]:
    """As its trainer calls: messages with the reply, and no prompt."""
    many = {name: [value] * len(replies) for name, value in columns.items()}
    opens = prompt.endswith("<think>\n")
    function = findit.reward_function("trl", **fixed, thought_opened=opens)
    messages = [[{"role": "assistant", "content": reply}] for reply in replies]
    return function(list(replies), messages=messages, trainer_state=None, **many)


def by_verl(
    replies: Sequence[str], prompt: str, columns: dict[str, Any], **fixed: Any
) -> list[Any]:
    extra = {name: value for name, value in columns.items() if name != "truth"}
    opens = prompt.endswith("<think>\n")
    function = findit.reward_function("verl", **fixed, thought_opened=opens)
    true = columns["truth"]
    ones = [function("data", reply, true, extra) for reply in replies]
    many = function(
        solution_strs=replies,
        ground_truths=[true] * len(replies),
        extra_infos=[extra] * len(replies),
    )
    assert ones == many
    return ones


def by_openrlhf(
    replies: Sequence[str], prompt: str, columns: dict[str, Any], **fixed: Any
) -> list[Any]:
    pytest.importorskip("torch")
    function = findit.reward_function("openrlhf", **fixed)
    queries = [prompt + reply + "<|im_end|>" for reply in replies]
    prompts = [prompt] * len(replies)
    label = json.dumps(columns, default=lambda value: value.tolist())
    rewards: list[Any] = function(queries, prompts, [label] * len(replies))["rewards"].tolist()
    return rewards


TRAINERS: Sequence[Callable[..., list[Any]]] = (by_trl, by_ms_swift, by_verl, by_openrlhf)

# Replies, and what is known of their template: the prompt, and arguments of the score
BARE: tuple[str, dict[str, Any]] = (PROMPT, {})
OPENED = (f"{PROMPT}<think>\n", {"thought_opened": True})
TAGS = (PROMPT, {"answer_marks": "<answer> </answer>"})
BOXED = (PROMPT, {"answer_marks": [r"\boxed{", "}"]})
BOTH = (f"{PROMPT}<think>\n", {"thought_opened": True, "answer_marks": ("<answer>", "</answer>")})
TEMPLATES = {"bare": BARE, "opened": OPENED, "tags": TAGS, "boxed": BOXED, "both": BOTH}
REPLIES = (
    JSON,
    f"<think>a dog</think>\n{JSON}",
    f"a dog</think>\n{JSON}",
    f"a dog {JSON}",
    f"<think>a dog {JSON}",
    f"<answer>{JSON}</answer>",
    f"<think>or {JSON}</think><answer>[]</answer>",
    f"or <answer>[]</answer></think><answer>\n```json\n{JSON}\n```\n</answer>",
    f"<answer>[]</answer> or <answer>{JSON}</answer>.",
    f"<answer>{JSON}",
    rf"\boxed{{{JSON}}}",
    rf"I think \boxed{{{JSON}}}.",
    "[]",
    "",
    "There is none.",
    '[{"bbox_2d": [100, 100, 500, 500]}, {"bbox_2d": [0, 0, 9, 9]}]',
    "[100, 100, 500, 500]",
)


@pytest.mark.parametrize("trainer", TRAINERS)
@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("truth", [BOX, []])
def test_a_reward_is_the_score_of_the_reply(
    trainer: Callable[..., list[Any]], template: str, truth: Any
) -> None:
    prompt, around = TEMPLATES[template]
    columns = {**COLUMNS, "truth": truth}
    fixed = {name: value for name, value in around.items() if name != "thought_opened"}
    rewards = trainer(REPLIES, prompt, columns, **fixed)
    options: dict[str, Any] = {"sizes": SIZE, "space": "grid1000", **around}
    scored = findit.score(REPLIES, [truth] * len(REPLIES), columns["format"], **options)
    for row, value, reply in zip(scored.queries, rewards, REPLIES, strict=True):
        sums = row.sums
        expected = sums.get("negatives_rejected", 0)
        if truth:
            expected = 2 * sums["tp"] / (sums["n_pred"] + sums["n_gt"])
        assert value == pytest.approx(expected), reply


def test_templates_are_read_as_they_are_meant() -> None:
    right = {"bare": 2, "opened": 3, "tags": 6, "boxed": 4, "both": 3}
    options: dict[str, Any] = {"sizes": SIZE, "space": "grid1000", "by": "adherence"}
    for name, (_, around) in TEMPLATES.items():
        values = findit.reward(
            REPLIES, [BOX] * len(REPLIES), COLUMNS["format"], **options, **around
        )
        assert values.sum() >= right[name], name


# --- tokens that end a reply ----------------------------------------------------------------------

ENDS = (
    *(
        "<|im_end|>",
        "<end_of_utterance>",
        "<｜end▁of▁sentence｜>",
        "<|END_OF_TURN_TOKEN|>",
        "<|eot|>",
    ),
    *(
        "<|eom_id|>",
        "[EOS]",
        "<|observation|>",
        "<pad>",
        "</s>",
        "<eos>",
        "<turn|>",
        "<end_of_turn>",
    ),
    *("<|im_end|>\n", " <|endoftext|> <|endoftext|>", "<|im_end|>" + "<|endoftext|>" * 30),
    *("<end_of_utterance>\n<pad><pad>", "<|call|>", "<EOT>"),
)


@pytest.mark.parametrize("end", ENDS)
def test_a_token_that_ends_a_reply_is_taken_off(end: str) -> None:
    pytest.importorskip("torch")
    function = findit.reward_function("openrlhf")
    assert function([PROMPT + JSON + end], [PROMPT], [COLUMNS])["rewards"].tolist() == [1]


def test_a_reply_of_ends_alone_is_empty(caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("torch")
    function = findit.reward_function("openrlhf", end_marks="##")
    replies = [f"{PROMPT}{end}" for end in ("<|im_end|>", "##", " ## <pad>\n")] * 80
    with caplog.at_level(logging.WARNING):
        function(replies, [PROMPT] * 240, [COLUMNS] * 240)
    assert "none is in its format (empty)" in caplog.text


def test_thousands_of_ends_are_taken_off_at_once() -> None:
    pytest.importorskip("torch")
    function = findit.reward_function("openrlhf", end_marks="##")
    reply = JSON + "<|im_end|>\n##" * 90_000
    assert function([PROMPT + reply], [PROMPT], [COLUMNS])["rewards"].tolist() == [1]


@pytest.mark.parametrize(
    ("reply", "space"),
    [
        ("<|begin_of_box|>[100, 100, 500, 500]<|end_of_box|>", "grid1000"),
        ("<|box_start|>(100,100),(500,500)<|box_end|>", "grid1000"),
        ("<answer>[100, 100, 500, 500]</answer>", "grid1000"),
        ("<loc0100><loc0100><loc0500><loc0500>", "grid1000"),
        ("dog</ref><|det|>[[100, 100, 500, 500]]<|/det|>", "grid1000"),
        ("<think>so [1, 2, 3, 4]</think>", "grid1000"),
        ("[100, 100, 500, 500]<|end_of_thought|>", "grid1000"),
    ],
)
def test_marks_of_answers_stay(reply: str, space: str) -> None:
    pytest.importorskip("torch")
    label = {**COLUMNS, "format": "xyxy_text", "space": space}
    options: dict[str, Any] = {"sizes": SIZE, "space": space, "by": "adherence"}
    expected = findit.reward(reply, BOX, "xyxy_text", **options)
    function = findit.reward_function("openrlhf", by="adherence")
    got = function([PROMPT + reply + "<|im_end|>"], [PROMPT], [label])["rewards"].tolist()
    assert got == [expected]


class Tokenizer:
    all_special_tokens = ("##STOP##", "<|box_end|>")


def test_ends_are_named_or_those_of_a_tokenizer() -> None:
    for named in ("##STOP##", ["##STOP##"], Tokenizer()):
        function = findit.reward_function("verl", end_marks=named, **COLUMNS)
        assert function("data", f"{JSON}##STOP##\n", BOX, None) == 1
    without = findit.reward_function("verl", **COLUMNS)
    assert without("data", f"{JSON}##STOP##", BOX, None) == 0
    with pytest.raises(ValueError, match=r"end_marks: .* should be texts"):
        findit.reward_function("verl", end_marks=[""])


# --- thoughts that the prompt opens ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("opening", "marks"),
    [
        ("<think>\n", None),
        ("<THINK>", None),
        ("[THINK]", None),
        ("◁think▷", None),
        ("<seed:think>\n", None),
        ("<|channel>thought\n", None),
        ("<plan>", "<plan> </plan>"),
    ],
)
def test_a_thought_that_the_prompt_opened_is_no_answer(opening: str, marks: str | None) -> None:
    pytest.importorskip("torch")
    label = {**COLUMNS, "thought_marks": marks}
    prompt = PROMPT + opening
    openrlhf = findit.reward_function("openrlhf")
    assert openrlhf([prompt + JSON], [prompt], [label])["rewards"].tolist() == [0]
    assert by_trl([JSON], prompt, label) == [0]
    # Instructions that name the mark open nothing.
    prompt = f"Think in {opening.strip()} first.{PROMPT}"
    assert openrlhf([prompt + JSON], [prompt], [label])["rewards"].tolist() == [1]
    assert by_trl([JSON], prompt, label) == [1]


def test_a_chat_that_begins_the_answer_opens_a_thought() -> None:
    chat = [{"role": "user", "content": "Where?"}, {"role": "assistant", "content": "<think>"}]
    many = {name: [value] for name, value in COLUMNS.items()}
    function = findit.reward_function("trl")
    assert function(prompts=[chat], completions=[JSON], **many) == [0]
    assert function(prompts=[chat], completions=[f"so</think>{JSON}"], **many) == [1]
    assert function(prompts=[chat[:1]], completions=[JSON], **many) == [1]
    opened = findit.reward_function("trl", thought_opened=True)
    assert opened(prompts=[chat[:1]], completions=[JSON], **many) == [0]


# --- columns --------------------------------------------------------------------------------------


def test_every_column_may_be_json_or_of_another_library() -> None:
    whole: dict[str, Any] = {
        **COLUMNS,
        "frames": 1,
        "multilabel": False,
        "thought_marks": ["<plan>", "</plan>"],
        "thought_opened": False,
        "answer_marks": ["<answer>", "</answer>"],
    }
    texts = {
        name: each if isinstance(each, str) else json.dumps(each) for name, each in whole.items()
    }
    arrays = {
        name: np.array(each) if isinstance(each, list) else each for name, each in whole.items()
    }
    numbers = {
        **whole,
        "frames": np.float64(1.0),
        "multilabel": np.bool_(False),
        "size": (640, 480),
    }
    for columns in (whole, texts, arrays, numbers):
        for trainer in TRAINERS:
            assert trainer([JSON, "[]"], PROMPT, columns) == [1, 0]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"size": [SIZE]}, "column size: 1 value for 2 completions"),
        ({"size": [SIZE] * 3}, "column size: 3 values for 2 completions"),
        ({"format": "xyxy_json"}, "column format: 'xyxy_json' is one value, not a list of 2"),
        ({"space": {"kind": "grid1000"}}, "column space: .* is one value"),
        ({"frames": 1}, "column frames: 1 is one value, not a list of 2.*frames=…"),
        ({"format": [1, 1]}, "query 0, column format: 1 should be a text"),
        ({"frames": ["many", 1]}, "query 0, column frames"),
        ({"frames": [1, 1.5]}, "query 1, column frames: 1.5 should be a whole number"),
        ({"frames": [True, 1]}, "query 0, column frames: True should be a whole number"),
        ({"multilabel": [False, "no"]}, "query 1, column multilabel: 'no' should be true or false"),
        ({"multilabel": [False, 2]}, "query 1, column multilabel: 2 should be true or false"),
        ({"size": [SIZE, "640x480"]}, "query 1, column size"),
        ({"size": [SIZE, [640]]}, "query 1, column size: .*should be"),
        ({"space": ["grid1000", "grid100"]}, "query 1, column space: unknown coordinate space"),
        ({"truth": [BOX, {"box": BOX}]}, "query 1, column truth: .* is no truth"),
        ({"truth": [BOX, [[1, 2, 3]]]}, "truth 1: boxes should be"),
        ({"size": [SIZE, {"width": 640}]}, "query 1, column size"),
        ({"truth": [BOX, [[64, 48, 64, 240]]]}, "truth 1: the box .* has no area"),
        ({"truth": [BOX, {"boxes": BOX}], "frames": [1, 2]}, "truth 1: it has no frames"),
        ({"truth": [BOX, {"boxes": BOX * 2, "labels": "ab"}]}, "labels should be a list of texts"),
        ({"truth": [BOX, {"boxes": BOX, "labels": [None]}]}, "labels should be a list of texts"),
        ({"answer_marks": ["<a>", "<a>"]}, "answer_marks: '<a>' is not a pair"),
    ],
)
def test_a_column_that_cannot_be_used(columns: dict[str, Any], message: str) -> None:
    many = {name: [value] * 2 for name, value in COLUMNS.items()}
    with pytest.raises(ValueError, match=message):
        findit.reward_function("trl")(["[]", "[]"], **{**many, **columns})


def test_a_bad_truth_is_named_by_its_row() -> None:
    """Rows that are read alike are one batch, whose own numbers help nobody."""
    many = {name: [value] * 4 for name, value in COLUMNS.items()}
    many["format"] = ["xyxy_text", "xyxy_json_bbox_2d"] * 2
    many["truth"] = [BOX, BOX, BOX, [[0, 0, 5000, 40]]]
    with pytest.raises(ValueError, match=r"truth 3: the box .* leaves its image"):
        findit.reward_function("trl")(["[]"] * 4, **many)


def test_verl_and_openrlhf_name_what_is_missing() -> None:
    verl = findit.reward_function("verl")
    for call in (
        lambda: verl("data", "[]", BOX, None),
        lambda: verl(solution_strs=["[]"], ground_truths=[BOX], extra_infos=[None]),
    ):
        with pytest.raises(ValueError, match="query 0: size is missing"):
            call()
    with pytest.raises(ValueError, match="ground_truths: 1 value for 2 solution_strs"):
        verl(solution_strs=["[]"] * 2, ground_truths=[BOX], extra_infos=[None] * 2)


# --- columns that stand twice ---------------------------------------------------------------------

EXTRA = {name: value for name, value in COLUMNS.items() if name != "truth"}

# Of each column: a value, the same one written otherwise, and another
WRITTEN: dict[str, tuple[Any, Any, Any]] = {
    "truth": (BOX, {"boxes": np.array(BOX), "labels": None}, [[64, 48, 320, 241]]),
    "size": (SIZE, "[640, 480]", [480, 640]),
    "format": ("xyxy_json_bbox_2d", "xyxy_json_bbox_2d", "xyxy_text"),
    "space": ("grid1000", '{"kind": "grid1000"}', "percent"),
    "frames": (1, np.float64(1), 2),
    "multilabel": (False, "false", True),
    "thought_marks": ("<plan> </plan>", ["<plan>", "</plan>"], "<p> </p>"),
    "thought_opened": (False, 0, True),
    "answer_marks": ("<answer> </answer>", '["<answer>", "</answer>"]', ["<a>", "</a>"]),
}


def of_verl(name: str, one: Any, other: Any) -> Any:
    """Reward a reply where a column stands in two places of verl."""
    extra = {**EXTRA, name: one}
    verl = findit.reward_function("verl")
    if name == "truth":
        many = verl(solution_strs=[JSON] * 2, ground_truths=[one, other], extra_infos=[extra] * 2)
        return many[1]
    return verl("data", JSON, BOX, extra, **{name: other})


@pytest.mark.parametrize("name", WRITTEN)
def test_a_column_that_stands_twice_must_be_the_same(name: str) -> None:
    value, same, other = WRITTEN[name]
    assert of_verl(name, value, same) == 1
    assert of_verl(name, same, value) == 1
    at = 1 if name == "truth" else 0
    with pytest.raises(ValueError, match=f"query {at}, column {name}: .* has .*, and .* has "):
        of_verl(name, value, other)


def test_a_truth_of_verl_may_stand_in_either_place() -> None:
    verl = findit.reward_function("verl")
    assert verl("data", JSON, BOX, EXTRA) == 1
    assert verl("data", JSON, None, COLUMNS) == 1
    assert verl("data", JSON, None, {}, **COLUMNS) == 1
    assert verl("data", JSON, "[]", {**EXTRA, "truth": []}) == 0
    with pytest.raises(ValueError, match="query 0: truth is missing"):
        verl("data", JSON, None, EXTRA)
    with pytest.raises(ValueError, match=r"truth: reward_model\.ground_truth .* extra_info"):
        verl("data", JSON, "[]", COLUMNS)


def test_equal_keys_in_the_json_of_a_column_are_refused() -> None:
    pytest.importorskip("torch")
    label = json.dumps(COLUMNS)
    twice = f'{label[:-1]}, "truth": []}}'
    with pytest.raises(ValueError, match="truth"):
        findit.reward_function("openrlhf")([PROMPT + JSON], [PROMPT], [twice])
    truth = f'{{"boxes": {BOX}, "boxes": []}}'
    for trainer in (by_trl, by_ms_swift, by_verl):
        with pytest.raises(ValueError, match="boxes"):
            trainer([JSON], PROMPT, {**COLUMNS, "truth": truth})


# --- truths ---------------------------------------------------------------------------------------

SLIPS = {
    "exchanged": ([[64, 48, 320, 600]], [640, 480], r"is size \(width, height\)\?"),
    "far": ([[6400, 48, 9999, 240]], [640, 480], "was it resized"),
    "before": ([[-90, 48, 320, 240]], [640, 480], "was it resized"),
    "thousandths": ([[100, 100, 990, 500]], [640, 480], "thousandths"),
    "fractions": ([[0.1, 0.1, 0.5, 0.5], [0.2, 0, 1, 1]], [640, 480], "fractions"),
    "ignored": (
        {"boxes": BOX, "ignored": [{"box": [600, 0, 700, 90]}]},
        [640, 480],
        "leaves its image",
    ),
}


def of_truth(value: Any) -> Any:
    if isinstance(value, dict):
        return findit.truth(value["boxes"], ignored=[each["box"] for each in value["ignored"]])
    return value


@pytest.mark.parametrize("slip", SLIPS)
def test_a_truth_outside_its_image_is_refused_everywhere(slip: str) -> None:
    pytest.importorskip("torch")
    true, size, why = SLIPS[slip]
    options: dict[str, Any] = {"sizes": size, "space": "grid1000"}
    columns = {**COLUMNS, "truth": true, "size": size}
    image = np.zeros((size[1], size[0], 3), np.uint8)
    places: list[Callable[[], Any]] = [
        lambda: findit.score(["[]"], [of_truth(true)], "xyxy_json", **options),
        lambda: findit.reward(["[]"], [of_truth(true)], "xyxy_json", **options),
        lambda: findit.draw(image, of_truth(true), []),
        *(lambda trainer=trainer: trainer(["[]"], PROMPT, columns) for trainer in TRAINERS),  # type: ignore[misc]
    ]
    for place in places:
        with pytest.raises(ValueError, match=why):
            place()


def test_arguments_are_checked_without_a_trainer() -> None:
    options: dict[str, Any] = {"sizes": SIZE, "space": "grid1000"}
    for changes, why in (
        ({"thought_opened": "false"}, "thought_opened: 'false' should be True or False"),
        ({"multilabel": "false"}, "multilabel: 'false' should be True or False"),
        ({"frames": 2}, "truth 0: it has no frames"),
    ):
        for call in (findit.score, findit.reward):
            with pytest.raises(ValueError, match=why):
                call(["[]"], [BOX], "xyxy_json", **options, **changes)  # type: ignore[operator]
    near = [[64, 48, 644, 480]]
    with pytest.raises(ValueError, match="was it resized"):
        findit.reward(["[]"], [near], "xyxy_json", **options)


def test_a_truth_may_leave_its_image_by_a_pixel() -> None:
    true = [[-1, 0, 641, 481], [0, 0, 1, 1]]
    assert findit.reward("[]", true, "xyxy_json", sizes=(640, 480), space="grid1000") == 0
    # What does not count may lie anywhere but outside; a small image may have small boxes.
    assert findit.reward("[]", [[0, 0, 1, 1]], "xyxy_json", sizes=(5, 5), space="grid1000") == 0


# --- pickles and warnings -------------------------------------------------------------------------


@pytest.mark.parametrize("trainer", ["trl", "verl", "openrlhf"])
def test_a_reward_function_is_pickled(trainer: Any) -> None:
    function = findit.reward_function(trainer, "soft_f1", end_marks="END", **COLUMNS)
    again = pickle.loads(pickle.dumps(function))
    assert (again.__name__, type(again)) == ("findit_soft_f1", type(function))
    if trainer == "verl":
        assert again("data", f"{JSON} END", BOX, None) == function("data", JSON, BOX, None) == 1


@pytest.mark.parametrize(
    ("replies", "said"),
    few_fast(
        [
            (["<answer>[]</answer>##"], "none is in its format.*answer_marks='<answer> </answer>'"),
            (['[{"bbox_2d": [1, 1, 9, 9]}]'], "all are in their format, but no box hits"),
            (["[]", JSON], ""),
            ([r"\boxed{[]}"], r"answer_marks='.*boxed\{ \}'"),
            (["What?"], r"none is in its format \(.*The last: 'What\?'"),
            (
                [f"{JSON}##STOP##", "[]##STOP##"],
                r"All end in '##STOP##': .*end_marks=\['##STOP##'\]",
            ),
            (["[]", "no"], ""),
        ],
        3,
    ),
)
def test_first_replies_that_earn_nothing_are_told_once(
    replies: list[str], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    function = findit.reward_function("trl", **{**COLUMNS, "truth": BOX})
    with caplog.at_level(logging.WARNING):
        for _ in range(400):
            function(replies)
    assert len(caplog.records) == bool(said)
    if said:
        assert pytest.importorskip("re").search(said, caplog.text)

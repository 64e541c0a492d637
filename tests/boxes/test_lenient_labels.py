"""Labels beside boxes in words and tags, under any key, and lost ones of adherent replies."""

from __future__ import annotations

import pytest
from lenient_replies import (
    GRID1000,
    JSON,
    JSON_LABELS,
    TEXT_LABELS,
    A,
    B,
    leniently,
)

import vlmeval_findit as findit
from vlmeval_findit.boxes import (
    FormatFailure,
    ParsedReply,
    Repair,
    ReplyFormat,
    parse_leniently,
    read,
)

# --- labels ---------------------------------------------------------------------------------------

TWO_LABELS = [
    # Grounding tags
    "<ref>dog</ref><box>[[100, 200, 300, 400]]</box>"
    "<ref>cat</ref><box>[[500, 600, 700, 800]]</box>",
    "<ref>dog</ref><box>100 200 300 400</box>\n<ref>cat</ref><box>500 600 700 800</box>",
    "<|ref|>dog<|/ref|><|det|>[[100,200,300,400]]<|/det|>"
    "<|ref|>cat<|/ref|><|det|>[[500,600,700,800]]<|/det|>",
    "<|object_ref_start|>dog<|object_ref_end|><|box_start|>(100,200),(300,400)<|box_end|>"
    "<|object_ref_start|>cat<|object_ref_end|><|box_start|>(500,600),(700,800)<|box_end|>",
    "<p>dog</p> (100, 200, 300, 400) beside a <p>cat</p> (500, 600, 700, 800)",
    "In the image, <ref>dog</ref><box>(100,200),(300,400)</box> is near "
    "<ref>cat</ref><box>(500,600),(700,800)</box>.",
    # Sentences and lists
    "The dog is at (100, 200, 300, 400). The cat is located at (500, 600, 700, 800).",
    "A dog (100, 200, 300, 400) and a cat (500, 600, 700, 800).",
    "The dog (100, 200, 300, 400) sits next to the cat (500, 600, 700, 800).",
    "Here are the boxes:\n\n1. **dog**: (100, 200), (300, 400)\n2. **cat**: (500, 600), (700, 800)",
    "**dog**\n- Top-left: (100, 200)\n- Bottom-right: (300, 400)\n\n"
    "**cat**\n- Top-left: (500, 600)\n- Bottom-right: (700, 800)",
    "dog:\n  x1: 100\n  y1: 200\n  x2: 300\n  y2: 400\n"
    "cat:\n  x1: 500\n  y1: 600\n  x2: 700\n  y2: 800",
    "Object: dog, box: (100, 200, 300, 400)\nObject: cat, box: (500, 600, 700, 800)",
    "The top-left corner of the dog is at (100, 200), its bottom-right corner at (300, 400). "
    "The top-left corner of the cat is at (500, 600), its bottom-right corner at (700, 800).",
    "(100, 200, 300, 400) dog\n(500, 600, 700, 800) cat",
    "dog: 100, 200, 300, 400\ncat: 500, 600, 700, 800",
    "dog,100,200,300,400\ncat,500,600,700,800",
    "| dog | 100 | 200 | 300 | 400 |\n| cat | 500 | 600 | 700 | 800 |",
    "dog：（100，200，300，400）；cat：（500，600，700，800）",
    # Lists side by side
    "{'<OD>': {'bboxes': [[100,200,300,400],[500,600,700,800]], 'labels': ['dog', 'cat']}}",
    '{"labels": ["dog", "cat"], "boxes": [[100,200,300,400],[500,600,700,800]], '
    '"scores": [0.9, 0.8]}',
    '{"objects": [{"bbox": [100,200,300,400], "type": "object", "name": "dog"}, '
    '{"bbox": [500,600,700,800], "name": "cat"}]}',
]


@pytest.mark.parametrize("form", [TEXT_LABELS, JSON_LABELS], ids=["text", "json"])
@pytest.mark.parametrize("reply", TWO_LABELS)
def test_marks_and_sentences_around_a_label_are_none_of_it(reply: str, form: ReplyFormat) -> None:
    result = leniently(reply, form)
    assert result is not None
    assert result.reading.boxes == (A, B)
    assert result.reading.labels == ("dog", "cat")
    assert result.repairs


KEYS_OF_LABELS = [
    '"Label": "dog"', '" label": "dog"', '"LABEL ": "dog"', "“label”: “dog”", "‘label’: ‘dog’",
    '"labels": ["dog"]', '"label": ["dog"]', '"description": "dog"', '"sub_label": "dog"',
    '"text_content": "dog"', '"class_name": ["dog"]', '"label": "<ref>dog</ref>"',
    '"label": "", "name": "dog"', '"label"： "dog"', "label: dog",
]  # fmt: skip


@pytest.mark.parametrize("pair", KEYS_OF_LABELS)
@pytest.mark.parametrize("end", ["},]", "}", "}]\n```"])
def test_a_label_under_another_key_is_a_named_repair(pair: str, end: str) -> None:
    result = leniently(f'[{{"bbox_2d": [100, 200, 300, 400], {pair}{end}', JSON_LABELS)
    assert result is not None
    assert (result.reading.boxes, result.reading.labels) == ((A,), ("dog",))
    assert result.repairs


@pytest.mark.parametrize("tag", ["ref", "object", "b"])
@pytest.mark.parametrize("asked", [(), ("cat", "dog")], ids=["nothing asked", "asked"])
@pytest.mark.parametrize("key", ["bbox_2d", "class_name"])
def test_tags_around_a_label_as_key_are_none_of_it(
    tag: str, asked: tuple[str, ...], key: str
) -> None:
    form = ReplyFormat("json", "xyxy", key=key, multilabel=True)
    reply = f'{{"<{tag}>dog</{tag}>": [100, 200, 300, 400]}}'
    strict = ParsedReply((), (), (), FormatFailure.NOT_JSON)
    result = parse_leniently(reply, form, strict, asked=asked)
    assert result is not None
    assert (result.reading.boxes, result.reading.labels) == ((A,), ("dog",))
    assert Repair.LABEL in result.repairs


def test_a_number_that_may_be_cut_off_is_no_number() -> None:
    for reply in ("x1: 100, y1: 200, x2: 300, y2: 4", "bbox: 100, 200, 300, 4"):
        cut = ParsedReply((), (), (), FormatFailure.TRUNCATED)
        assert parse_leniently(reply, JSON, cut) is None
        assert parse_leniently(f"{reply}00 ", JSON, cut) is not None


NO_LABEL = [
    "Here: (100, 200, 300, 400)",
    "I can see that it is at (100, 200, 300, 400)",
    '{"boxes": [[100,200,300,400],[500,600,700,800],[1,2,3,4]], "labels": ["dog", "cat"]}',
    '{"detections": [[100, 200, 300, 400]]}',
    "<OD>[100, 200, 300, 400]</OD>",
    "dog: (100, 200), cat: (300, 400)",
]


@pytest.mark.parametrize("reply", NO_LABEL)
def test_a_box_whose_label_cannot_be_told_is_not_read(reply: str) -> None:
    assert leniently(reply, TEXT_LABELS) is None
    assert leniently(reply, JSON_LABELS) is None


@pytest.mark.parametrize("label", ["person on the left", "The Beatles", "7-up", "man in red shirt"])
def test_a_label_of_several_words_stays_whole(label: str) -> None:
    result = leniently(f"{label} (100, 200, 300, 400)", TEXT_LABELS)
    assert result is not None
    assert result.reading.labels == (label,)


def test_a_full_width_comma_in_a_label_stays() -> None:
    result = leniently("狗，大的：（100，200，300，400）", TEXT_LABELS)
    assert result is not None
    assert result.reading.labels == ("狗，大的",)


ADHERENT = [
    (TEXT_LABELS, '[{"bbox_2d": [100, 200, 300, 400], "label": "dog"}, '
        '{"bbox_2d": [500, 600, 700, 800], "label": "cat"}]', Repair.OTHER_OUTPUT),
    (TEXT_LABELS, '```json\n{"dog": [100, 200, 300, 400], "cat": [500, 600, 700, 800]}\n```',
        Repair.OTHER_OUTPUT),
    (TEXT_LABELS, "- label: dog\n  bbox: [100, 200, 300, 400]\n- label: cat\n"
        "  bbox: [500, 600, 700, 800]", Repair.LABEL),
    (TEXT_LABELS, "- bbox: [100, 200, 300, 400]\n  label: dog\n- bbox: [500, 600, 700, 800]\n"
        "  label: cat", Repair.LABEL),
    (TEXT_LABELS, "1. **dog**: [100, 200, 300, 400]\n2. **cat**: [500, 600, 700, 800]",
        Repair.LABEL),
    (TEXT_LABELS, "“dog”: [100, 200, 300, 400]\n“cat”: [500, 600, 700, 800]", Repair.LABEL),
    (JSON_LABELS, '[{"bbox_2d": [100, 200, 300, 400], "Label": "dog"}, '
        '{"bbox_2d": [500, 600, 700, 800], "label": "<ref>cat</ref>"}]', Repair.LABEL),
]  # fmt: skip


@pytest.mark.parametrize(("form", "reply", "repair"), ADHERENT)
def test_lost_labels_of_an_adherent_reply_are_found(
    form: ReplyFormat, reply: str, repair: Repair
) -> None:
    strict = read(reply, form)
    assert strict.reason is None
    assert strict.labels != ("dog", "cat")
    result = leniently(reply, form)
    assert result is not None
    assert result.reading == strict._replace(labels=("dog", "cat"))
    assert repair in result.repairs
    truth = findit.truth([A, B], ["dog", "cat"])
    name = "xyxy_text" if form is TEXT_LABELS else "xyxy_json_bbox_2d"
    scored = findit.score(
        [reply], [truth], name, sizes=(1000, 1000), space="grid1000", multilabel=True
    )
    assert scored.metric_values["F1@0.5"] <= 50
    assert scored.metric_values["F1@0.5 (lenient)"] == 100
    kinds = {event["kind"] for event in scored.queries[0].details["errors"]}
    assert kinds == {"recoverable"}


@pytest.mark.parametrize(
    "reply",
    [
        "traffic light: [100, 200, 300, 400]\n7-up: [500, 600, 700, 800]",
        'the "stop" sign: [100, 200, 300, 400]',
        "dog: [100, 200, 300, 400] Note: {nothing else}",
    ],
)
def test_adherent_replies_with_labels_are_left_alone(reply: str) -> None:
    assert leniently(reply, TEXT_LABELS) is None


def test_a_missing_label_is_no_wrong_label() -> None:
    def kind(reply: str) -> str:
        truth = findit.truth([A], ["dog"])
        scored = findit.score(
            [reply], [truth], "xyxy_text", sizes=(1000, 1000), space="grid1000", multilabel=True
        )
        (event,) = scored.queries[0].details["errors"]
        assert (event["box"], event["object"]) == (0, 0)
        return str(event["kind"])

    assert kind("cat: [100, 200, 300, 400]") == "wrong label"
    assert kind('[{"bbox_2d": [100, 200, 300, 400], "label": "cat"}]') == "not readable"
    assert kind('[{"bbox_2d": [100, 200, 300, 400]}]') == "not readable"


SYNONYMS = [
    '{{"label": "{}", "bbox_2d": [100, 200, 300, 400]}}',
    '{{"objects": [{{"class": "{}", "box": [100, 200, 300, 400]}}]}}',
    "```json\n[{{'name': '{}', 'bbox_2d': [100, 200, 300, 400]}}]\n```",
    "The {} is at [100, 200, 300, 400].",
    "<ref>{}</ref><box>(100,200),(300,400)</box>",
]


@pytest.mark.parametrize("asked", ["person", "guy on the left", "woman"])
@pytest.mark.parametrize("called", ["person", "woman", "人", "man in a red shirt"])
@pytest.mark.parametrize("reply", SYNONYMS)
def test_where_one_label_is_asked_for_names_do_not_matter(
    reply: str, called: str, asked: str
) -> None:
    text = reply.format(called)
    result = parse_leniently(text, JSON, read(text, JSON), GRID1000, (asked,))
    assert result is not None
    assert result.reading.boxes == (A,)


WRAPPED = [
    ('{"result": [{"dog": [1, 2, 3, 4]}]}', ["dog"]),
    ('{"answer": {"dog": [1, 2, 3, 4]}}', ["dog"]),
    ('{"objects": [{"<dog>": [1, 2, 3, 4]}, {"cat": [1, 2, 3, 4]}]}', ["dog", "cat"]),
    ('[{"<dog>": [1, 2, 3, 4]}]', ["dog"]),
]


@pytest.mark.parametrize("asked", [(), ("dog", "cat")])
@pytest.mark.parametrize(("reply", "labels"), WRAPPED)
def test_a_wrapper_is_no_label(reply: str, labels: list[str], asked: tuple[str, ...]) -> None:
    form = ReplyFormat("json", "xyxy", "class_name", multilabel=True)
    result = parse_leniently(reply, form, read(reply, form), GRID1000, asked)
    assert result is not None
    assert list(result.reading.labels) == labels


BELOW = '{{"{}": {{"dog": [1, 2, 3, 4], "cat": [5, 6, 7, 8]}}}}'


@pytest.mark.parametrize("form", [JSON, JSON_LABELS])
@pytest.mark.parametrize("key", ["counts", "scores", "pose", "embedding", "velocity", "image_size"])
def test_labels_below_a_key_of_another_thing_have_no_boxes(key: str, form: ReplyFormat) -> None:
    asked = ("dog", "cat")
    for reply in (BELOW.format(key), f'{{"data": {BELOW.format(key)}}}'):
        assert parse_leniently(reply, form, read(reply, form), GRID1000, asked) is None


@pytest.mark.parametrize("key", ["counts", "scores", "image_size", "padding"])
def test_nor_have_they_where_no_label_is_known(key: str) -> None:
    reply = BELOW.format(key)
    strict = read(reply, JSON_LABELS)
    assert parse_leniently(reply, JSON_LABELS, strict, GRID1000) is None
    known = reply.replace(key, "detections")
    assert parse_leniently(known, JSON_LABELS, strict, GRID1000) is not None


@pytest.mark.parametrize("form", [JSON, JSON_LABELS])
@pytest.mark.parametrize("key", ["boxes", "results", "detected_objects", "bboxes_by_class", "1"])
def test_labels_below_a_key_of_boxes_or_objects_have_boxes(key: str, form: ReplyFormat) -> None:
    reply = BELOW.format(key)
    result = parse_leniently(reply, form, read(reply, form), GRID1000, ("dog", "cat"))
    assert result is not None
    assert result.reading.boxes == ((1, 2, 3, 4), (5, 6, 7, 8))


def test_a_label_between_angle_brackets_is_one_label() -> None:
    reply = '[{"label": "<traffic light>", "bbox_2d": [1, 2, 3, 4]}]'
    result = leniently(reply, JSON_LABELS)
    assert result is not None
    assert result.reading.labels == ("traffic light",)
    assert result.reading.boxes == ((1, 2, 3, 4),)


@pytest.mark.parametrize("key", ["bboxx_2d", "bbox_2", "bbox_2dd", "bbx_2d", "bbox2d"])
def test_the_requested_key_may_be_a_letter_off(key: str) -> None:
    result = leniently(f'[{{"{key}": [1, 2, 3, 4]}}]', JSON)
    assert result is not None
    assert result.repairs == (Repair.KEY,)


@pytest.mark.parametrize("key", ["rbox_2d", "bbox_3d", "obb_2d", "bins_2d"])
def test_another_word_is_not_the_requested_key(key: str) -> None:
    assert leniently(f'[{{"{key}": [1, 2, 3, 4]}}]', JSON) is None


@pytest.mark.parametrize("stated", ['"label": null, ', '"label": "", ', '"label": " ", ', ""])
@pytest.mark.parametrize("first", [True, False])
def test_a_box_without_a_label_costs_no_other(stated: str, first: bool) -> None:
    """What strict reading takes under no label says nothing of the boxes that it misses."""
    without = f'{{{stated}"bbox_2d": [1, 2, 3, 4]}}'
    nested = '{"label": "dog", "bbox_2d": [[100, 200, 300, 400]]}'
    items = [without, nested] if first else [nested, without]
    result = leniently(f"[{', '.join(items)}]", JSON_LABELS)
    assert result is not None
    assert list(zip(result.reading.boxes, result.reading.labels, strict=True))[-1] == (A, "dog")


@pytest.mark.parametrize("key", ["counts", "scores", "padding", "rgba"])
def test_numbered_values_of_another_thing_are_no_boxes(key: str) -> None:
    video = ReplyFormat("json", "xyxy", "bbox", frames=2)
    reply = f'{{"{key}": {{"1": [1, 2, 3, 4], "2": [5, 6, 7, 8]}}}}'
    for text in (reply, f'{{"data": {reply}}}'):
        assert parse_leniently(text, video, read(text, video), GRID1000, ("dog",)) is None
    boxes = reply.replace(key, "boxes")
    result = parse_leniently(boxes, video, read(boxes, video), GRID1000, ("dog",))
    assert result is not None
    assert result.reading.boxes == ((1, 2, 3, 4), (5, 6, 7, 8))


@pytest.mark.parametrize("key", ["bboxes_labels", "box_labels", "boxClasses"])
def test_a_list_of_names_is_one_of_labels(key: str) -> None:
    reply = f'{{"bboxes": [[1, 2, 3, 4], [5, 6, 7, 8]], "{key}": ["dog", "cat"]}}'
    result = leniently(reply, JSON_LABELS)
    assert result is not None
    assert result.reading.labels == ("dog", "cat")


@pytest.mark.parametrize("key", ["viewBox", "viewport", "view", "image_bbox", "padding"])
def test_a_key_of_another_thing_has_no_box(key: str) -> None:
    for reply in (f'{{"{key}": [1, 2, 3, 4]}}', f'{{"bbox": {{"{key}": [1, 2, 3, 4]}}}}'):
        assert leniently(reply, JSON) is None


@pytest.mark.parametrize("words", ["viewBox", "view box", "viewport", "image size"])
def test_words_of_another_thing_say_no_box(words: str) -> None:
    assert leniently(f"{words}: (1, 2, 3, 4)", JSON) is None

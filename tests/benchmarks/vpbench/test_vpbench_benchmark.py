"""VP-Bench as a benchmark: names, messages, both readings in every row, slices, baselines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from vpbench_stand_in import ROWS, write_tsv

from vlmeval_findit import benchmarks
from vlmeval_findit.benchmarks.vpbench import (
    AS_PUBLISHED,
    BENCHMARK,
    HALLUCINATION,
    MEAN_OVER_SOURCES,
    HintColumn,
    QuestionKind,
    VPQuery,
    draw,
    first_option,
    message,
    parse,
    prepare_stage1,
    random_option,
    scored_row,
    write_table,
)
from vlmeval_findit.data import load_dataset
from vlmeval_findit.protocol import (
    DatasetNameError,
    Reply,
    ReplyRecord,
    Role,
    SumKey,
    located,
    sum_rows,
)
from vlmeval_findit.scoring import check_replies, score_rows
from vlmeval_findit.statistics import clustered_sums, estimate_metrics, metric_intervals

QUERY = VPQuery(
    index=1,
    label="What is it?",
    images=("a.jpg",),
    hint="The mark is red.",
    question="What is it?",
    options=(("A", "cat"), ("C", "a  dog")),
    answer="C",
    amount="1",
    shapes=("oval", "box", "oval"),
    properties=("red",),
    kind=QuestionKind.REFERENCE,
    absent=False,
    source="",
    cluster="a.jpg",
)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("VPBench_Stage1_orignal", "did you mean VPBench_Stage1_original?"),
        ("VPBench_../../x", "unknown table"),
        ("VPBench_Mien", "did you mean VPBench_Mine?"),
        ("VPBench_Stage2", "unknown dataset of stage 2 'VPBench_Stage2'"),
        ("VPBench_Stage2_bpv", "did you mean VPBench_Stage2_bvp?"),
    ],
)
def test_a_name_that_is_none(name: str, says: str, lmu: Path) -> None:
    write_table(lmu, "VPBench_Mine", [QUERY], {})
    with pytest.raises(DatasetNameError) as raised:
        benchmarks.parse(name)
    assert says in str(raised.value)


def test_messages_and_what_the_original_layout_does_differently() -> None:
    def text_of(query: VPQuery, name: str) -> str:
        *images, text = message(query, parse(name))
        assert [part.value for part in images] == list(query.images)
        return text.value

    assert text_of(QUERY, "VPBench_Stage1") == (
        "The mark is red.\nWhat is it?\nA. cat\nC. a dog\n"
        "Which option is right? Reply with its letter alone."
    )
    two = replace(QUERY, hint=" ", images=("a.jpg", "b.jpg"))
    assert text_of(two, "VPBench_Stage1").startswith("What is it?\nA. cat")
    assert text_of(QUERY, "VPBench_Stage1_original").splitlines()[:6] == [
        "The mark is red.",
        "What is it?",
        "A. cat",
        "B. ",
        "C. a dog",
        "D. ",
    ]
    assert text_of(QUERY, "VPBench_Stage1_plain") == (
        text_of(QUERY, "VPBench_Stage1").removeprefix("The mark is red.\n")
    )
    lost = replace(QUERY, hint_column=HintColumn.CONTEXT)
    assert text_of(lost, "VPBench_Stage1_original").startswith("What is it?")


# --- scores ---------------------------------------------------------------------------------------


def row_of(text: str, query: VPQuery = QUERY, recorded: ReplyRecord | None = None) -> Any:
    return scored_row(query, Reply(query.index, text, recorded or ReplyRecord()))


def test_both_readings_are_in_every_row() -> None:
    row = row_of("Answer: C")
    assert row.source == "a.jpg"
    assert row.details == {"label": "What is it?", "chosen": "C", "as_published": "A"}
    assert (row.sums["right"], row.sums["right_as_published"]) == (1, 0)
    assert row.slices == {
        **{"shape": "box + oval", "amount": "1", "kind": "reference", "property": "red"},
        **{"colour": "red", "shape x colour": "box + oval, red"},
        "shape x property": "box + oval, red",
        "mark": "present",
    }


@pytest.mark.parametrize(
    ("properties", "colour", "width", "style"),
    [
        (("red", "tight", "width 6"), "red", "6", "tight"),
        (("color: Red",), "red", None, None),
        (("contrast", "digit round", "line width: 4"), "contrast", "4", "digit + round"),
        (("BLUE", "3 px", "filled"), "blue", "3", "filled"),
        (("red", "blue", "thickness=2"), "blue + red", "2", None),
        (("tired", "wide", "12"), None, None, None),
        ((), None, None, None),
    ],
)
def test_colour_width_and_style_are_slices(
    properties: tuple[str, ...], colour: str | None, width: str | None, style: str | None
) -> None:
    slices = row_of("C", replace(QUERY, shapes=("oval",), properties=properties)).slices
    assert [slices.get(name) for name in ("colour", "width", "style")] == [colour, width, style]
    assert slices.get("shape x colour") == (f"oval, {colour}" if colour else None)
    whole = " + ".join(sorted(properties))
    assert slices.get("shape x property") == (f"oval, {whole}" if properties else None)


@pytest.mark.parametrize("table", ["VPBench_Stage1", "VPBench_Scenes", "VPBench_Scenes_mini"])
def test_each_table_is_asked_without_its_hint(table: str) -> None:
    variant = parse(f"{table}_plain")
    assert (variant.table, variant.plain) == (table, True)
    assert variant.board_dataset != parse(table).board_dataset
    assert not parse(table).plain


def test_the_authors_figure_without_descriptions_is_shown() -> None:
    rows = [row for row in BENCHMARK.published() if row.dataset == "Stage1_plain"]
    assert [(row.model, row.values) for row in rows] == [
        ("InternVL3-78B", {AS_PUBLISHED.name: 81.3})
    ]


@pytest.mark.parametrize(
    ("text", "recorded", "reason"),
    [
        ("Failed to obtain answer via API.", ReplyRecord(), "failed call"),
        ("", ReplyRecord(call={"error": "no route"}), "failed call"),
        ("", ReplyRecord(), "empty"),
        ("", ReplyRecord(ends_in_thought=True, finish_reason="length"), "truncated while thinking"),
        ("I see a mark that", ReplyRecord(finish_reason="length"), "truncated"),
        ("C, I see a mark that", ReplyRecord(finish_reason="length"), None),
        ("<think>C", ReplyRecord(), "truncated while thinking"),
        ("A or C", ReplyRecord(), "ambiguous"),
        ("B", ReplyRecord(), "no_choice"),
        ("a dog", ReplyRecord(), None),
        ("C. The screen says: Failed to obtain answer via API.", ReplyRecord(), None),
        ("Failed to obtain answer via API.", ReplyRecord(finish_reason="stop"), "no_choice"),
    ],
)
def test_a_reply_without_a_letter_has_its_reason(
    text: str, recorded: ReplyRecord, reason: str | None
) -> None:
    row = row_of(text, recorded=recorded)
    assert row.reason == reason
    assert row.failed is (reason == "failed call")
    assert reason in (None, "failed call", *BENCHMARK.reasons)
    assert row.sums["readable"] == int(reason is None)
    assert row.sums["answered"] == int(not row.failed)


def test_the_published_score_counts_failed_calls_as_their_code_does() -> None:
    row = row_of("Failed to obtain answer via API.", replace(QUERY, answer="A"))
    assert AS_PUBLISHED.value(row.sums) == 100.0
    assert BENCHMARK.metrics[0].value(row.sums) is None
    assert BENCHMARK.headline_counting_failures.value(row.sums) == 0.0


def test_a_wrong_letter_about_an_absent_mark_is_a_hallucination() -> None:
    rates = {"A": 100.0, "C": 0.0, "cannot say": 0.0, "A or C": 0.0}
    for text, rate in {**rates, "Failed to obtain answer": None}.items():
        row = row_of(text, replace(QUERY, absent=True))
        assert HALLUCINATION.value(row.sums) == rate
        assert HALLUCINATION.value(row_of(text).sums) is None


def test_sources_weigh_the_same() -> None:
    rows = [row_of("C", replace(QUERY, source="a"))] * 3 + [row_of("A", replace(QUERY, source="b"))]
    assert MEAN_OVER_SOURCES.value(sum_rows(rows)) == 50
    assert AS_PUBLISHED.value(sum_rows(rows)) == 75


def test_intervals_of_stage_1_say_what_they_do_not_know() -> None:
    assert "which photograph" in BENCHMARK.interval_note(parse("VPBench_Stage1_original"))
    assert BENCHMARK.interval_note(parse("VPBench_Scenes")) == ""
    assert BENCHMARK.interval_note(BENCHMARK.parse("VPBench_Stage2_text")) == ""


def test_a_drawing_shows_options_truth_and_both_readings() -> None:
    lines = draw(QUERY, row_of("Answer: C")).lines
    assert [(line.role, line.text) for line in lines] == [
        (Role.OPTION, "A. cat"),
        (Role.TRUTH, "C. a  dog"),
        (Role.HIT, "C. a  dog"),
        (Role.MISS, "as published: A. cat"),
    ]
    assert [line.text for line in draw(QUERY, row_of("?")).lines[2:]] == []
    assert draw(QUERY, row_of("b")).lines[-1].text == "as published: B. is no option"


def test_a_run_is_scored_and_baselines_see_the_message_alone(lmu: Path) -> None:
    prepare_stage1(write_tsv(lmu / "stage.tsv"), lmu)
    for name in ("VPBench_Stage1", "VPBench_Stage1_original", "VPBench_Stage1_plain"):
        dataset = load_dataset(name)
        for query in dataset.queries.values():
            asked = message(query, dataset.variant)
            here, there = (located(asked, Path(place)) for place in ("/a", "/b/c"))
            assert first_option(here, dataset.variant)[0] == query.options[0][0]
            letter = random_option(here, dataset.variant)[0]
            assert letter in dict(query.options)
            assert letter == random_option(there, dataset.variant)[0]
    run = score_rows(check_replies("m", dataset, [Reply(index, "B") for index in dataset.queries]))
    right = 100 * sum(row["answer"] == "B" and bool(row["image"]) for row in ROWS) / 8
    assert run.metric_values["Accuracy"] == right
    assert run.metric_values["Accuracy (as published)"] == right
    # Of two questions about absent marks one has B as its answer.
    assert run.metric_values["Hallucination rate"] == 50.0
    assert run.sums[SumKey("asked", "kind", "counting")] == 1


def test_questions_about_one_photograph_are_a_cluster() -> None:
    """Four photographs, two of them always read: ten questions about each show little more."""
    rows = [
        row_of(
            "AC"[n % 2], replace(QUERY, index=n, cluster=f"{n % 4}.jpg", source="ab"[n % 4 == 0])
        )
        for n in range(40)
    ]
    result = estimate_metrics(BENCHMARK.metrics, clustered_sums(rows, "Mine"))
    accuracy = metric_intervals(result)["Accuracy"]
    assert accuracy is not None
    assert accuracy.high - accuracy.low > 60
    # Of a the share of 20 in 30, of b that of 0 in 10.
    assert result.value("Mean over sources (as published)") == pytest.approx(100 / 3)

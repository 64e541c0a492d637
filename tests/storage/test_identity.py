"""What a run is: the record, what contradicts it, and the journey to disk and back."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmeval_findit.core import MisplacedError
from vlmeval_findit.protocol import (
    HEADERS_KEY,
    IMAGES_KEY,
    MADE_WITH,
    NO_PROXY,
    PROXY_KEY,
    ROW_KEY,
    SOURCE_KEY,
    Answering,
    Identity,
    IdentityError,
    identity_conflicts,
    merge_for_resume,
    rows_from,
    rows_text,
)
from vlmeval_findit.storage import (
    RunFiles,
    identity_from,
    identity_values,
    read_identity,
    write_identity,
)

WHO = Answering(
    kind="FindItQwen3VL",
    row="Qwen3-VL",
    checkpoint="/models/a",
    revision="sha256:aa",
    settings={"bounds": {"max_pixels": 250_000}, "max_new_tokens": 768, "dtype": "float32"},
    runs_here=True,
)
RUN = Identity(
    model="Qwen3-VL",
    dataset="FindIt_Pascal_xyxy_json",
    answering=WHO,
    prompts="findit-own-1",
    prompt_hash="ab" * 32,
    table="Pascal.tsv",
    table_sha256="cd" * 32,
    rows=(0, 1, 2),
    space={"kind": "grid1000"},
    host={"ms-vlmeval": "0.0.20"},
    versions={"torch": "2.15.0", "transformers": "5.23.0"},
)
STEM = "Qwen3-VL_FindIt_Pascal_xyxy_json"


def who(**fields: Any) -> Identity:
    return replace(RUN, answering=replace(WHO, **fields))


def setting(**values: Any) -> Identity:
    return who(settings={**WHO.settings, **values})


@pytest.mark.parametrize(
    ("now", "says"),
    [
        (replace(RUN, model="Other"), "model: recorded Qwen3-VL, now Other"),
        (replace(RUN, dataset="FindIt_Pascal_xyxy_text"), "dataset: recorded FindIt_Pascal_xyxy_"),
        (who(kind="FindItGemma4"), "class: recorded FindItQwen3VL, now FindItGemma4"),
        (who(row="Gemma 4"), "row of the model table: recorded Qwen3-VL, now Gemma 4"),
        (who(revision="sha256:bb"), "revision: recorded sha256:aa, now sha256:b"),
        (who(revision="c0ffee"), "revision: recorded sha256:aa, now c0ffee"),
        (setting(max_new_tokens=64), "setting max_new_tokens: recorded 768, now 64"),
        (setting(dtype="bfloat16"), "setting dtype: recorded float32, now bfloat16"),
        (setting(template={"x": 1}), 'setting template: recorded not set, now {"x": 1}'),
        (who(settings={k: v for k, v in WHO.settings.items() if k != "max_new_tokens"}),
         "setting max_new_tokens: recorded 768, now not set"),
        (setting(bounds={"max_pixels": 1_605_632}),
         'setting bounds: recorded {"max_pixels": 250000}, now {"max_pixels": 1605632}'),
        (replace(RUN, prompts="findit-own-2"), "prompts: recorded findit-own-1, now findit-own-2"),
        (replace(RUN, prompt_hash="ef" * 32), "hash of the prompts: recorded abab"),
        (replace(RUN, table_sha256="ef" * 32), "SHA-256 of the table: recorded cdcd"),
        (replace(RUN, space={"kind": "unit"}), 'coordinate space: recorded {"kind": "grid1000"}'),
        (replace(RUN, rows=(0, 2)), "rows: recorded 0-2, now 0, 2"),
        (replace(RUN, versions={"torch": "2.15.0", "transformers": "5.24.0"}),
         "version of transformers: recorded 5.23.0, now 5.24.0"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)  # fmt: skip
def test_a_conflict_names_both_values(now: Identity, says: str) -> None:
    result = identity_conflicts(RUN, now)
    assert len(result) == 1
    assert str(result[0]).startswith(says)
    assert now.digest != RUN.digest
    with pytest.raises(IdentityError) as error:
        merge_for_resume(RUN, now, False, Path("x.json"))
    assert says in str(error.value)
    assert "--force" in str(error.value)
    forced = merge_for_resume(RUN, now, True, Path("x.json"))
    assert forced.forced == (f"went on: {result[0]}",)
    assert forced.answering == now.answering
    # And again: the note of what was forced stays, and nothing is forced again.
    assert merge_for_resume(forced, now, False, Path("x.json")).forced == forced.forced


@pytest.mark.parametrize(
    "now",
    [
        RUN,
        who(checkpoint="/elsewhere/a"),
        who(revision=None),
        setting(dtype=None),
        replace(RUN, rows=(0, 1, 2, 3)),
        replace(RUN, host={"VLMEvalKit": "e8e78f05"}),
        replace(RUN, left_out=(7,)),
        replace(RUN, versions={}),
    ],
    ids=[
        "the same",
        "the same files elsewhere",
        "a revision that is not known yet",
        "a type that is not known yet",
        "more rows",
        "another host of a local model",
        "rows without an image",
        "versions that are not known",
    ],
)
def test_what_contradicts_nothing(now: Identity) -> None:
    assert identity_conflicts(RUN, now) == []
    went_on = merge_for_resume(RUN, now, False, Path("x.json"))
    assert went_on.answering.revision == "sha256:aa"
    assert went_on.answering.settings["dtype"] == "float32"
    assert (went_on.host, went_on.versions) == (RUN.host, RUN.versions), "those at inference"
    assert went_on.rows == now.rows


def test_the_digest_does_not_depend_on_the_order_of_settings() -> None:
    other_order = who(settings=dict(reversed(WHO.settings.items())))
    assert list(other_order.answering.settings) != list(WHO.settings)
    assert other_order.digest == RUN.digest


def test_versions_count_where_the_answers_are_generated() -> None:
    other = {"torch": "9", "transformers": "9"}
    api = replace(RUN, answering=Answering(kind="ChatModel"))
    assert identity_conflicts(api, replace(api, versions=other)) == []
    hosts = who(in_vlmevalkit=True, runs_here=False)
    result = identity_conflicts(hosts, replace(hosts, host={"ms-vlmeval": "0.0.21"}))
    assert [each.what for each in result] == ["VLMEvalKit"]


def test_another_identifier_is_another_checkpoint() -> None:
    hub = who(checkpoint="Qwen/Qwen3-VL-8B-Instruct", revision=None)
    other = who(checkpoint="Qwen/Qwen3-VL-4B-Instruct", revision=None)
    assert [each.what for each in identity_conflicts(hub, other)] == ["checkpoint"]
    here, moved = (who(checkpoint=path, revision="sha256:12") for path in ("/a", "/b"))
    assert here.digest == moved.digest


def test_many_contradictions_are_counted() -> None:
    now = replace(RUN, model="a", dataset="b", prompts="c", prompt_hash="d", table_sha256="e",
                  space={"kind": "unit"}, rows=())  # fmt: skip
    with pytest.raises(IdentityError, match="and 1 more"):
        merge_for_resume(RUN, now, False, Path("x.json"))


def test_a_message_shows_both_ends_of_a_long_value() -> None:
    (whole,) = identity_conflicts(RUN, setting(template="a" * 400))
    assert str(whole) == f"setting template: recorded not set, now {'a' * 400}"
    (cut,) = identity_conflicts(RUN, setting(template="a" * 400 + "b" * 400))
    assert str(cut) == f"setting template: recorded not set, now {'a' * 200}…{'b' * 199}"


def test_what_an_answer_depends_on() -> None:
    whole = {IMAGES_KEY: "sent whole", ROW_KEY: "Qwen3-VL", "revision": "sha256:aa"}
    asked = {"bounds": {"max_pixels": 250000}, "max_new_tokens": 768}
    assert RUN.made_by == {
        **whole, MADE_WITH: asked, **RUN.versions,
        "dtype": "float32", "attention": None, "engine": None
    }  # fmt: skip
    assert replace(RUN, versions={}).made_by.keys() == RUN.made_by.keys() - RUN.versions.keys()
    elsewhere = who(runs_here=False, in_vlmevalkit=True, source="ab", endpoint="http://a")
    assert elsewhere.made_by == {**whole, "endpoint": "http://a", SOURCE_KEY: "ab", **RUN.host}
    limited = replace(elsewhere, space={"kind": "grid1000", "scene_max_size": 640})
    assert limited.made_by[IMAGES_KEY] == "sent with at most 640 pixels a side"
    assert IMAGES_KEY not in replace(elsewhere, space=None).made_by


def test_headers_and_the_proxy_of_a_server_are_recorded() -> None:
    here = who(endpoint="http://a")
    assert not {HEADERS_KEY, PROXY_KEY} & here.made_by.keys()
    for proxy, recorded in ((None, NO_PROXY), ("http://p", "http://p")):
        told = who(endpoint="http://a", headers={"X-Team": "b"}, proxy=proxy)
        assert told.made_by[HEADERS_KEY] == {"X-Team": "b"}
        assert told.made_by[PROXY_KEY] == recorded
        (conflict,) = identity_conflicts(told, who(endpoint="http://a", headers={"X-Team": "c"}))
        assert conflict.what == "header X-Team"


@pytest.mark.parametrize(
    ("endpoint", "server", "is_elsewhere"),
    [
        ("http://a/v1", "http://a/v1", False),
        ("http://a/v1", "http://b/v1", True),
        ("http://a/v1, http://b/v1", "http://b/v1 (2)", False),
        (None, "http://b/v1", False),
        ("http://a/v1", None, False),
        ("http://a/v1", 7, False),
    ],
)
def test_a_server_is_elsewhere_that_was_not_recorded(
    endpoint: str | None, server: object, is_elsewhere: bool
) -> None:
    assert Answering(endpoint=endpoint).is_elsewhere(server) is is_elsewhere


# --- the file -------------------------------------------------------------------------------------


def test_it_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / f"{STEM}.xlsx"
    assert read_identity(path) is None
    run = replace(RUN, left_out=(5, 6), forced=("x",), reads_like="Gemma 4")
    write_identity(RunFiles(path).identity, run)
    assert read_identity(path) == run
    # Upstream puts predictions into a folder of the run, one below.
    assert read_identity(tmp_path / "T20260101-000000" / path.name) == run


def test_a_record_that_says_the_same_is_not_written_again(tmp_path: Path) -> None:
    """As versions since 1.0 write it: a key a line, in any script."""
    path = tmp_path / "x_identity.json"
    run = replace(RUN, model="猫")
    text = json.dumps(identity_values(run), indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
    before = path.stat()
    write_identity(path, run)
    after = path.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    write_identity(path, RUN)
    assert read_identity(tmp_path / "x.json") == RUN


RECORDED = {
    "plugins": replace(RUN, plugins={"mine.py": "1.0"}),
    "asked_at": replace(RUN, asked_at="2026-11-30T12:00:00+00:00"),
    "custom_prompt": replace(RUN, custom_prompt={"question": "Where?"}),
    "space_source": replace(RUN, space_source="setting"),
    "earlier_proxies": replace(RUN, earlier_proxies=("http://proxy",)),
    "answering.server": who(server="vLLM 1"),
    "answering.attributes": who(attributes={"a": 1}),
    "answering.headers": who(headers={}),
}


@pytest.mark.parametrize("key", RECORDED)
def test_only_what_was_recorded_has_a_key(key: str) -> None:
    place, _, name = key.rpartition(".")
    plain, recorded = (identity_values(run) for run in (RUN, RECORDED[key]))
    if place:
        plain, recorded = plain[place], recorded[place]
    assert name not in plain
    assert recorded.keys() == {*plain, name}
    stored = json.loads(json.dumps(identity_values(RECORDED[key])))
    assert identity_from(stored) == RECORDED[key]


def test_no_number_that_json_has_not_is_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_identity(tmp_path / "x_identity.json", setting(temperature=float("nan")))


def test_a_setting_that_json_changes_is_the_same_setting(tmp_path: Path) -> None:
    run = setting(sizes=(256, 1280))
    write_identity(tmp_path / "x_identity.json", run)
    recorded = read_identity(tmp_path / "x.json")
    assert recorded is not None
    assert recorded.answering.settings["sizes"] == [256, 1280]
    assert identity_conflicts(recorded, run) == []


@pytest.mark.parametrize(
    "content", ["", "7", "[]", "{}", '{"answering": 7}', "[" * 100_000, "\\xff"]
)
def test_a_record_that_is_none_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / f"{STEM}_identity.json").write_text(content)
    with pytest.raises(IdentityError, match="not a record of a run"):
        read_identity(tmp_path / f"{STEM}.json")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"model": 7}, "model: 7 should be a text"),
        ({"model": None}, "model: None should be a text"),
        ({"answering": 7}, "answering: should be a mapping with the keys kind, row, "),
        ({"answering": {"runs_here": 1}}, "answering.runs_here: 1 should be true or false"),
        ({"answering": {"settings": []}}, "answering.settings: [] should be a mapping of names"),
        ({"answering": {"kinds": "A"}}, "answering: unknown key 'kinds': did you mean kind?"),
        ({"rows": 7}, "rows: 7 should be rows and ranges of rows, as '0-3, 7'"),
        ({"rows": "3-x"}, "rows: '3-x' should be rows and ranges of rows"),
        ({"rows": "0-99999999999"}, "rows: '0-99999999999' should be rows and ranges of rows"),
        ({"forced": "all"}, "forced: should be a list"),
        ({"forced": [7]}, "forced.0: 7 should be a text"),
        ({"versions": {"torch": 2.5}}, "versions.torch: 2.5 should be a text"),
        ({"resolved_options": {"mark": ["oval"]}}, "resolved_options.mark: ['oval'] should be"),
        ({"modle": "A"}, "unknown key 'modle': did you mean model?"),
    ],
)
def test_a_damaged_key_of_an_identity_is_named(
    tmp_path: Path, changes: dict[str, Any], why: str
) -> None:
    path = tmp_path / f"{STEM}_identity.json"
    path.write_text(json.dumps({**identity_values(RUN), **changes}))
    with pytest.raises(IdentityError) as refused:
        read_identity(tmp_path / f"{STEM}.json")
    assert str(refused.value).startswith(f"{path}: not a record of a run: {why}")


@pytest.mark.parametrize("name", ["model", "dataset", "answering", "rows", "left_out", "forced"])
def test_a_missing_key_of_an_identity_is_named(name: str) -> None:
    values = identity_values(RUN)
    del values[name]
    with pytest.raises(MisplacedError, match=f"^{name} is missing$"):
        identity_from(values)


ODD_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.sampled_from(sorted(identity_values(RUN))), ODD_VALUES | st.just(10**400))
def test_any_value_in_an_identity_is_usable_or_refused(name: str, value: Any) -> None:
    try:
        run = identity_from({**identity_values(RUN), name: value})
    except MisplacedError:
        return
    assert len(run.digest) == 12
    identity_conflicts(RUN, run)
    _ = run.made_by, run.answering.sampling_note


@given(
    st.sampled_from([field.name for field in fields(Answering)]),
    ODD_VALUES | st.fixed_dictionaries({"temperature": ODD_VALUES}),
)
def test_any_value_in_who_answers_is_usable_or_refused(name: str, value: Any) -> None:
    values = identity_values(RUN)
    answering = {**values["answering"], name: value}
    try:
        run = identity_from({**values, "answering": answering})
    except MisplacedError:
        return
    assert len(run.digest) == 12
    identity_conflicts(RUN, run)
    _ = run.made_by, run.answering.sampling_note


@given(st.sets(st.integers(0, 10_000)))
def test_rows_as_ranges_are_read_back(rows: set[int]) -> None:
    assert set(rows_from(rows_text(rows))) == rows


@given(st.text(), st.lists(st.integers(0, 99), unique=True).map(sorted))
def test_any_names_come_back_from_json(name: str, rows: list[int]) -> None:
    run = replace(RUN, model=name, rows=tuple(rows), reads_like=name or None)
    assert identity_from(json.loads(json.dumps(identity_values(run)))) == run


# --- objects that VLMEvalKit passes ------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "now", "says"),
    [
        ({"top_p": 1.0}, {"top_p": 0.9}, "attribute top_p: recorded 1.0, now 0.9"),
        ({"top_p": None}, {"top_p": 0.9}, "attribute top_p: recorded None, now 0.9"),
        ({}, {"best_of": 4}, None),
        ({"n": 1}, {"n": 1, "best_of": 4}, "attribute best_of: recorded not set, now 4"),
        (None, {"best_of": 4}, None),
        ({"best_of": 4}, None, None),
    ],
)
def test_attributes_are_compared_where_both_are_known(
    tmp_path: Path, before: Any, now: Any, says: str | None
) -> None:
    predictions = tmp_path / f"{STEM}.json"
    write_identity(RunFiles(predictions).identity, who(attributes=before))
    recorded = read_identity(predictions)
    assert recorded is not None
    conflicts = identity_conflicts(recorded, who(attributes=now))
    assert [str(each) for each in conflicts] == ([] if says is None else [says])


def test_how_often_a_call_was_tried_is_no_other_run() -> None:
    """Runs of 1.0 of VLMEvalKit's classes recorded it."""
    assert identity_conflicts(setting(retry=6, verbose=False), setting(retry=1, timeout=5)) == []


@pytest.mark.parametrize(
    "attributes", [{"temperature": 0.7}, {"default_kwargs": {"temperature": 0.7, "top_p": 1}}]
)
def test_an_object_that_samples_is_sampled(attributes: dict[str, Any]) -> None:
    note = Answering(attributes=attributes).sampling_note
    assert note == "replies were sampled at temperature 0.7"


@pytest.mark.parametrize("temperature", [None, 0, 0.0, "0", "0.0", False])
def test_a_temperature_of_zero_is_greedy(temperature: Any) -> None:
    assert Answering(settings={"temperature": temperature}).sampling_note is None


@pytest.mark.parametrize(
    ("settings", "note"),
    [
        ({"temperature": "0.7"}, "0.7"),
        ({"temperature": "warm"}, "warm"),
        ({"temperature": [0]}, "[0]"),
        ({"temperature": 0.7, "sample": 3}, "0.7 (sample 3)"),
        ({"temperature": 0.7, "sample": "consensus of 3"}, "0.7 (consensus of 3 samples)"),
    ],
)
def test_a_note_says_how_replies_were_sampled(settings: dict[str, Any], note: str) -> None:
    said = Answering(settings=settings).sampling_note
    assert said == f"replies were sampled at temperature {note}"

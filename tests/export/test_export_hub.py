"""``export --to hub``: a dataset with everything to check its values, and nothing private."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from boards import JSON, TEXT
from costly_runs import with_records
from scored_runs import World, failing, saying, speaking
from stored_reproductions import reproduced

from vlmeval_findit.api import load_scores, open_runs
from vlmeval_findit.cli import main
from vlmeval_findit.core import file_sha256
from vlmeval_findit.export import Private
from vlmeval_findit.leaderboard import (
    escape_markdown,
    how_to_read,
    legend_of,
    make_board,
    metric_table,
    overall_table,
    to_markdown,
)
from vlmeval_findit.protocol import Answering, Identity, Reply, ReplyRecord, TokenLogprobs
from vlmeval_findit.scoring import load_runs
from vlmeval_findit.storage import CHECKSUMS, read_predictions, record_text, write_rows

SECRET = "sk-or-" + "v1-0123456789abcdef"


@pytest.fixture
def out(world: World) -> Path:
    return world.folder / "dataset"


def export(world: World, out: Path, *more: str) -> int:
    return main(["export", str(world.runs), "--to", "hub", "--out", str(out), *more])


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def published(out: Path) -> Iterator[tuple[str, bytes]]:
    """Yield all files, those of Parquet also as text: they are compressed."""
    yield from contents(out).items()
    for path in (out / "data").iterdir():
        yield path.name, json.dumps(pq.read_table(path).to_pylist(), ensure_ascii=False).encode()


def query_rows(out: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(out / "data" / "queries.parquet").to_pylist()
    return rows


def mixed(world: World) -> None:
    """Predict a run with answers, a run with failed calls and an unreadable run."""
    world.predict("Good", JSON, speaking(JSON, 0.8, 10))
    world.predict("Failing", JSON, failing)
    world.predict("Odd", TEXT, saying("half a pair: \ud83d | <b>bold</b>"))


# --- the dataset ----------------------------------------------------------------------------------


def test_datasets_loads_both_tables_and_commands_read_the_runs(world: World, out: Path) -> None:
    datasets = pytest.importorskip("datasets")
    mixed(world)
    assert export(world, out) == 0
    cache = str(world.folder / "cache")
    queries = datasets.load_dataset(str(out), cache_dir=cache)["test"]
    table = datasets.load_dataset(str(out), "runs", cache_dir=cache)["test"]
    known = open_runs(world.runs)
    assert len(queries) == sum(len(run.rows) for run in known) == 36
    assert table["model"][:] == [run.model for run in known]
    for name in ("F1@0.5", "F1@0.5 low", "mIoU", "Adherence high"):
        expected = [None if value != value else value for value in load_scores(world.runs)[name]]
        assert table[name][:] == expected
    copies = open_runs(out / "runs")
    assert [run.metric_values for run in copies] == [run.metric_values for run in known]
    assert main(["leaderboard", str(out / "runs"), "--out", str(world.folder / "board")]) == 0
    assert main(["score", str(copies[0].path)]) == 0


def test_no_box_not_readable_and_failed_stay_three_things(world: World, out: Path) -> None:
    mixed(world)
    assert export(world, out) == 0
    rows = query_rows(out)
    facts = ("model", "failed", "reason", "reply")
    kinds = {tuple(row[fact] for fact in facts) for row in rows if row["model"] != "Good"}
    assert kinds == {
        ("Failing", True, "failed call", None),
        ("Failing", False, None, "[]"),
        ("Odd", False, "no box", "half a pair: \ufffd | <b>bold</b>"),
    }
    assert {row["error"] for row in rows if row["failed"]} == {"Failed to obtain answer via API."}


def test_the_columns_do_not_depend_on_the_answers(world: World, out: Path) -> None:
    schemas = []
    for model, answer in (("Silent", saying("[]")), ("Good", speaking(JSON, 0.8, 10))):
        world.predict(model, JSON, answer)
        assert export(world, out) == 0
        schemas.append(pq.read_table(out / "data" / "queries.parquet").schema)
    for name in ("reply", "boxes", "ious", "hits", "assigned", "score", "tp", "error"):
        assert schemas[0].field(name).type == schemas[1].field(name).type, name


def test_the_card_has_every_value_and_its_doubts(world: World, out: Path) -> None:
    forced = ("coordinate space: recorded pixels, now grid1000",)
    world.predict("Good", JSON, speaking(JSON, 0.8, 10), change=lambda r: replace(r, forced=forced))
    world.predict("A|B", TEXT, failing)
    assert export(world, out, "--licence", "cc-by-4.0") == 0
    card = (out / "README.md").read_text(encoding="utf-8")
    values = [f"{run.metric_values['F1@0.5']:.1f}" for run in open_runs(world.runs)]
    for text in (
        *values,
        "license: cc-by-4.0",
        "contradicts the record: coordinate space: recorded pixels",
        "calls failed; its F1@0.5 is 0.0 with them as misses",
        r"A\|B",
    ):
        assert text in card
    board = make_board(load_runs([world.runs]))
    tables = [overall_table(board, formats=True)]
    tables.append(metric_table(board, board.headline.name, formats=True))
    for table in tables:
        assert to_markdown(table) in card, table.title
    for line in (*map(escape_markdown, legend_of(tables)), how_to_read(board)):
        assert line in card
    assert export(world, out) == 0
    card = (out / "README.md").read_text(encoding="utf-8")
    assert "license:" not in card
    assert "None is named" in card


def test_the_card_has_no_counts_that_say_nothing(world: World, out: Path) -> None:
    path = world.predict("Good", JSON, speaking(JSON, 1.0))
    call = {"cost": 0.001, "cost_from": "given prices 1/5", "batch": "b1"}
    record = {"tokens": {"prompt": 900, "completion": 20}, "call": call}
    with_records(path, lambda index: record if index else {"call": call})
    assert main(["export", str(world.runs), "--to", "hub", "--out", str(out)]) == 0
    card = (out / "README.md").read_text(encoding="utf-8")
    names = next(line for line in card.splitlines() if line.startswith("| model ")).split(" | ")
    costs = ["tokens in", "tokens out", "USD per 1000", "USD source", "answers"]
    assert names[-9:] == [*costs, "tokens in known", "tokens out known", "batched", "digest |"]


def test_the_card_says_what_was_reproduced(world: World, out: Path) -> None:
    reproduced(world)
    assert export(world, out) == 0
    card = (out / "README.md").read_text(encoding="utf-8")
    line = (
        "* Qwen3-VL: lower than published on RefCOCO testA: 75.0 ± 4.0 (published 92.2, "
        "12 expressions, sglang 0.5.15; not as published: decoding, engine)\n"
    )
    assert f"\n\n## Against published figures\n\n{line}\n## " in card


def test_twice_is_the_same_bytes(world: World, out: Path) -> None:
    """A run that is missing later is deleted, and the folder of git stays."""
    mixed(world)
    assert export(world, out) == 0
    first = contents(out)
    assert export(world, out) == 0
    assert export(world, out.with_name("another")) == 0
    assert contents(out) == first == contents(out.with_name("another"))
    sums = json.loads(first[CHECKSUMS])["sha256"]
    assert sums == {n: file_sha256(out / n) for n in first if n != CHECKSUMS}
    (out / ".git").mkdir()
    (out / ".git" / "HEAD").write_text("ref")
    (good,) = world.runs.rglob("Good*_provenance.json")
    assert main(["export", str(good), "--to", "hub", "--out", str(out)]) == 0
    assert {path.name.split("_")[0] for path in (out / "runs").iterdir()} == {"Good"}
    assert (out / ".git" / "HEAD").read_text() == "ref"


def test_equal_names_in_two_folders(world: World, out: Path) -> None:
    world.predict("Good", JSON, speaking(JSON, 0.8, 10))
    world.predict("Good", JSON, speaking(JSON, 0.2, 10), rows=8, folder="others")
    assert export(world, out) == 0
    digests = {run.provenance.digest for run in open_runs(world.runs)}
    assert {path.name for path in (out / "runs").iterdir()} == digests
    assert len(open_runs(out / "runs")) == 2


# --- nothing of this machine ----------------------------------------------------------------------


def test_no_secret_and_no_path_of_this_machine(
    world: World, out: Path, monkeypatch, capsys
) -> None:
    """What remains of addresses and paths is listed before the upload."""
    monkeypatch.setenv("OPENROUTER_API_KEY", SECRET)
    foreign = "/mnt/secret-project/checkpoints/step-900"
    server = "http://me:hunter22@gpu7.lab.org:8000/v1"

    def elsewhere(run: Identity) -> Identity:
        return replace(run, answering=Answering("Test", checkpoint=foreign, endpoint=server))

    seen = f"I looked at {world.folder}/pictures/0.jpg and /usr/share/x.jpg"
    world.predict("Leaky", JSON, saying(f"my key is {SECRET}"))
    world.predict("Pathy", JSON, saying(seen))
    failed = saying(f"Failed to obtain answer via API. no {foreign}")
    world.predict("Broken", JSON, failed, change=elsewhere)
    assert export(world, out) == 0
    output = capsys.readouterr().out
    assert "were removed from (the card names all):\n  runs/Broken" in output
    assert "  http://***@gpu7.lab.org:8000/v1 in runs/Broken" in output
    assert "  /usr/share/x.jpg in runs/Pathy" in output
    assert f"\n  hf upload OWNER/NAME {out} . --repo-type dataset --private\n" in output
    private = (SECRET, str(world.folder), str(Path.home()), "secret-project", "hunter22")
    for name, data in published(out):
        for word in private:
            assert word.encode() not in data, (name, word)
    replies = {row["model"]: row["reply"] for row in query_rows(out)}
    # Other paths in a reply are its answer.
    assert replies["Pathy"] == "I looked at …/0.jpg and /usr/share/x.jpg"
    assert replies["Leaky"] == "my key is ***"
    assert len(open_runs(out / "runs")) == 3
    assert "Leaky_FindIt_Pascal_xyxy_json.json" in (out / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("and/or, 1/2, a/b/c", "and/or, 1/2, a/b/c"),
        ("http://host:8000/v1/models", "http://host:8000/v1/models"),
        ("http://me:pass@host/v1", "http://***@host/v1"),
        ("no /opt/models/ft-3/x.jpg: gone", "no …/x.jpg: gone"),
        (r"C:\Users\me\runs\x.json", "…/x.json"),
        ("file:///opt/models/ft", "…/ft"),
        ("/home/Jane Doe/My runs, final/x.json", "…/x.json"),
        ("no '/data/Doe, Jane (old)/ft': gone", "no '…/ft': gone"),
        ("PATH=/home/jane/bin:/home/jane/lib", "PATH=…/bin:…/lib"),
    ],
)
def test_paths_in_records(text: str, cleaned: str) -> None:
    private = Private()
    assert private.in_record(text) == cleaned
    assert private.in_record(cleaned) == cleaned


@pytest.mark.parametrize(
    ("reply", "cleaned"),
    [
        ("/pics/Our album/Doe, Jane/0.jpg", "…/0.jpg"),
        ("I saw /pics/Our album/Ann/0.jpg and /usr/x.jpg", "I saw …/0.jpg and /usr/x.jpg"),
        ("/pics/Our album/0.jpg, 3/4 of it", "…/0.jpg, 3/4 of it"),
        ("/pics/Our albums/0.jpg", "/pics/Our albums/0.jpg"),
    ],
)
def test_paths_in_replies(reply: str, cleaned: str) -> None:
    private = Private([Path("/pics/Our album")])
    assert private.in_reply(reply) == cleaned
    assert private.in_reply(cleaned) == cleaned


@pytest.mark.parametrize("suffix", [".json", ".xlsx"])
def test_the_record_of_a_failed_call_names_no_path(world: World, out: Path, suffix: str) -> None:
    path = world.predict("Good", JSON, speaking(JSON, 0.8, 10))
    call = {"findit": {"call": {"error": "no /mnt/Jane Doe/cache: gone"}, "thought": "of /a/b/c"}}
    rows = [
        {"index": r.index, "prediction": r.text, "extra_records": json.dumps(call if at else {})}
        for at, r in enumerate(read_predictions(path))
    ]
    path.unlink()
    write_rows(path := path.with_suffix(suffix), lambda: rows)
    assert main(["score", str(path)]) == 1, "one row has a reply"
    assert export(world, out) == 0
    for name, data in published(out):
        assert b"Jane" not in data, name
        assert rb"\u2026" not in data, f"{name}: the list before the upload reads it as a path"
    (copy,) = open_runs(out / "runs")
    recorded = read_predictions(copy.path)[1].recorded
    assert (recorded.call["error"], recorded.thought) == ("no …/cache: gone", "of /a/b/c")


OF_JANE = "/mnt/Jane Doe/x.jpg"


@pytest.mark.parametrize("name", [field.name for field in fields(ReplyRecord)] + ["text", "shown"])
def test_every_part_of_a_reply_is_cleaned(name: str) -> None:
    values: Mapping[str, Any] = {
        "space": {"kind": OF_JANE},
        "finish_reason": OF_JANE,
        "images": ({OF_JANE: [OF_JANE]},),
        "thought": f"of {OF_JANE}",
        "ends_in_thought": True,
        "tokens": {OF_JANE: 7},
        "model": {"identifier": OF_JANE},
        "call": {"error": f"no {OF_JANE}", "tries": [{"at": OF_JANE}]},
        "token_logprobs": TokenLogprobs((1,), (-0.5,)),
        "masks": 2,
        "text": OF_JANE,
        "shown": {OF_JANE: "a" * 16},
    }
    reply = Reply(0, "")
    if name in ("text", "shown"):
        reply = replace(reply, **{name: values[name]})
    else:
        reply = replace(reply, recorded=replace(reply.recorded, **{name: values[name]}))
    private = Private([Path("/mnt/Jane Doe")])
    cleaned = private.reply(reply)
    assert "Jane" not in repr(cleaned)
    assert (cleaned == reply) is ("Jane" not in repr(reply))
    assert private.reply(cleaned) == cleaned


def test_what_has_nothing_private_is_not_named_as_cleaned(world: World, out: Path, capsys) -> None:
    path = world.predict("Good", JSON, saying("[\u4e2d\u6587 \u00e9]"))
    record = record_text(ReplyRecord(thought="\u4e2d\u6587 \u00e9", finish_reason="stop"))
    rows = [
        {"index": reply.index, "prediction": reply.text, "extra_records": record}
        for reply in read_predictions(path)
    ]
    write_rows(path, lambda: rows)
    assert main(["score", str(path)]) == 0
    assert export(world, out) == 0
    assert "were removed" not in capsys.readouterr().out
    (copy,) = open_runs(out / "runs")
    assert read_predictions(copy.path) == read_predictions(path)


# --- refusals -------------------------------------------------------------------------------------


def test_a_refusal_leaves_no_file(world: World, out: Path, capsys) -> None:
    path = world.predict("Good", JSON, speaking(JSON, 0.8, 10))
    unscored = world.folder / "new" / path.name
    unscored.parent.mkdir()
    path.rename(unscored)
    for arguments, message in (
        ([unscored], "not scored yet"),
        ([world.folder / "nowhere"], "does not exist"),
        ([unscored, "--pictures", "3"], "--pictures is for --to mlflow or wandb or trackio"),
        ([world.runs], "does not exist"),
    ):
        assert main(["export", "--to", "hub", *map(str, arguments), "--out", str(out)]) == 2
        assert message in capsys.readouterr().err
        assert not out.exists()
    assert not [p for p in world.folder.iterdir() if p.name.startswith(".dataset")]
    unscored.rename(path)
    assert main(["export", str(path), "--to", "trackio", "--out", str(world.runs)]) == 2
    assert f"--out {world.runs}: the run {path} is in it" in capsys.readouterr().err
    assert not (world.runs / CHECKSUMS).exists()


def test_a_folder_with_other_files_is_refused(world: World, out: Path, capsys) -> None:
    mixed(world)
    out.mkdir()
    (out / "README.md").write_text("mine")
    assert export(world, out) == 2
    assert "did not write" in capsys.readouterr().err
    assert contents(out) == {"README.md": b"mine"}
    (out / "README.md").unlink()
    assert export(world, out) == 0
    (out / "README.md").write_text("edited by hand")
    assert export(world, out, "--licence", "mit") == 2
    assert "was changed after" in capsys.readouterr().err
    assert (out / "README.md").read_text() == "edited by hand"


@pytest.mark.parametrize(
    ("licence", "says"),
    [
        ("cc-by-4.0", ""),
        ("other", ""),
        ("CC-BY-4.0", "no licence of that name: did you mean cc-by-4.0?"),
        ("cc by 4.0", "did you mean cc-by-4.0?"),
        ("apache-2", "did you mean apache-2.0?"),
        ("foo", "--licence foo: the hub may refuse it"),
    ],
)
def test_a_licence_that_the_hub_may_not_know(
    world: World, out: Path, licence: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    world.predict("Good", JSON, speaking(JSON, 0.8, 10))
    assert export(world, out, "--licence", licence) == 0
    printed = capsys.readouterr().err
    assert says in printed
    assert ("licence" in printed) == bool(says)


def test_exported_copies_are_no_runs_of_the_folder(world: World, capsys, monkeypatch) -> None:
    """In 0.2 copies of runs were scored, and were on the leaderboard twice."""
    monkeypatch.chdir(world.folder)
    mixed(world)
    world.runs.rename("outputs")
    before = [str(run.path) for run in open_runs("outputs")]
    assert main(["score", "outputs"]) == 0
    scored = capsys.readouterr().out
    assert main(["export", "outputs", "--to", "hub"]) == 0
    assert "outputs/export/hub" in capsys.readouterr().out
    written = contents(Path("outputs/export"))
    assert [str(run.path) for run in open_runs("outputs")] == before
    assert main(["score", "outputs"]) == 0
    assert capsys.readouterr().out == scored
    assert main(["leaderboard", "outputs"]) == 0
    assert contents(Path("outputs/export")) == written
    assert len(open_runs("outputs/export/hub")) == len(before)

"""``findit probe`` over HTTP: servers that see, and answer in every convention and fault."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from chat_server import Answer, Asked, ChatServer, Serve, completion, error
from few_fast import few_fast
from probe_deployments import answering, seen, sent
from simulated_deployments import convention

from vlmeval_findit.cli import main
from vlmeval_findit.scoring import load_runs, prediction_files

SMART = '{"kind": "smart_resize", "min_pixels": 200704, "max_pixels": 1605632}'


@pytest.fixture(scope="module")
def lmu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lmu")


@pytest.fixture(autouse=True)
def _here(lmu: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMUData", str(lmu))
    monkeypatch.chdir(tmp_path)
    for name in ("FINDIT_SPACE", "FINDIT_FORCE", "FINDIT_IMAGES", "FINDIT_TABLES"):
        monkeypatch.delenv(name, raising=False)


Out = pytest.CaptureFixture[str]


def probe(server: ChatServer, *flags: str) -> int:
    # Half of the scenes will do, unless a test needs more.
    return main(["probe", "--model", "mine", "--base-url", server.url, "--limit", "20", *flags])


# --- conventions and faults -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "answers", "status", "output"),
    few_fast([
        ("grid1000", "grid1000/xyxy", 0, "confirmed"),
        ("grid1000", "grid1000/yxyx", 1, "thousandths of width and height, yxyx (20 of 20 agree)"),
        (None, "unit/xyxy", 0, "the answers are fractions of width and height"),
        ("pixels", "limit1280/xyxy", 1, "pixels after shrinking to 1280"),
        (SMART, "smart_200704_1605632/xyxy", 0, "confirmed"),
        (None, "crop1000/xyxy", 1, "correct the deployment"),
        (None, "pixels/yxyx", 1, "numbers come as yxyx, and xyxy was asked for find the format"),
    ], 2),
)  # fmt: skip
def test_what_is_declared_and_what_is_answered(
    serve: Serve, capsys: Out, declared: str | None, answers: str, status: int, output: str
) -> None:
    server = serve(answering(convention(answers)))
    assert probe(server, *([] if declared is None else ["--space", declared])) == status
    out = capsys.readouterr().out
    assert output in " ".join(out.split())
    assert "20 answered with boxes, 0 without a box, 0 not readable, 0 calls" in out
    assert max(map(len, out.splitlines())) <= 80
    assert len(server.asked) == 20


def ratios(out: str, size: str) -> list[float]:
    """Return the columns of numbers about images of a size, which have two boxes."""
    (row,) = (line.split() for line in out.splitlines() if size in line)
    assert row[1] == "2"
    return [float(ratio) for ratio in row[2:]]


@pytest.mark.slow
def test_the_table_of_sizes_and_a_client_that_shrinks(serve: Serve, capsys: Out) -> None:
    assert probe(serve(answering(convention("percent/xyxy"))), "--space=grid1000") == 1
    across, down, *declared, _, _, _ = ratios(capsys.readouterr().out, "224x224")
    assert (across, down) == pytest.approx((100 / 224, 100 / 224), rel=0.05)
    assert declared == pytest.approx([1000 / 224] * 2, rel=0.01)
    # The sizes that arrive are those of the senders' rule.
    server = serve(answering(convention("file_pixels/xyxy")))
    assert probe(server, "--space", "pixels") == 0
    arrived = {seen(sent(asked))[0] for asked in server.asked}
    assert (4096, 1335) in arrived
    assert (4600, 1500) not in arrived
    shrunk = ratios(capsys.readouterr().out, "4600x1500")[:2]
    assert shrunk == pytest.approx([4096 / 4600] * 2, rel=0.02)


# --- what is no answer ----------------------------------------------------------------------------


def test_prose_is_no_finding(serve: Serve, capsys: Out) -> None:
    assert probe(serve(lambda asked, n: completion("In the upper left corner."))) == 2
    out = capsys.readouterr().out
    assert "20 scenes: 0 answered with boxes, 0 without a box, 20 not readable, 0 calls" in out
    assert "not readable: 20 not JSON" in out
    assert "nothing was declared; 0 boxes are too few (at least 20, in 5 answers)" in out


@pytest.mark.slow
def test_failed_calls_are_asked_again_and_nothing_else_is(serve: Serve, capsys: Out) -> None:
    right = answering(convention("grid1000/xyxy"))
    broken = True

    def script(asked: Asked, number: int) -> Answer:
        too_large = max(seen(sent(asked))[0]) > 2000
        return error(413, "too large") if too_large and broken else right(asked, number)

    server = serve(script)
    flags = ("--space", "grid1000", "--limit", "40")
    assert probe(server, *flags) == 3
    out = capsys.readouterr().out
    assert "28 answered with boxes, 0 without a box, 0 not readable, 12 calls" in out
    assert "too large" in out
    # What the others say is told all the same.
    assert "confirmed" in out
    asked = len(server.asked)
    broken = False
    assert probe(server, *flags) == 0
    assert len(server.asked) - asked == 12
    assert "40 answered with boxes" in capsys.readouterr().out
    assert probe(server, *flags) == 0
    assert len(server.asked) - asked == 12


# --- twice, in the wrong order, with other words --------------------------------------------------


def test_a_probe_is_asked_once(serve: Serve, capsys: Out) -> None:
    server = serve(answering(convention("grid1000/xyxy")))
    assert probe(server, "--space=grid1000") == 0
    assert probe(server, "--space=grid1000", "--limit=30") == 0
    assert len(server.asked) == 30
    assert probe(server, "--space=grid1000") == 0
    assert len(server.asked) == 30
    assert "delete it to ask again" in capsys.readouterr().out
    # Another space is another way of sending: it is asked again.
    assert probe(server, "--space=pixels") == 1
    assert len(server.asked) == 50


def test_commands_over_runs_leave_a_probe_out(serve: Serve, capsys: Out) -> None:
    server = serve(answering(convention("grid1000/xyxy")))
    assert probe(server, "--space=grid1000") == 0
    probed = prediction_files([Path("outputs")])
    assert len(probed) == 1, "alone in the folder it is what was meant"
    run = Path("outputs/M_FindIt_Scenes_mini_xyxy_json.json")
    run.write_text(json.dumps([{"index": at, "prediction": "[]"} for at in range(6)]))
    assert main(["score", "--space", "unit", str(run)]) == 0
    assert prediction_files([Path("outputs")]) == [run]
    assert [each.variant.table for each in load_runs([Path("outputs")])] == ["Scenes_mini"]
    named = load_runs([Path("outputs/probe")])
    assert [each.variant.table for each in named] == ["Probe"]
    assert [each.path for each in load_runs(probed)] == probed
    # Searched from within, a probe is no longer below the folder.
    assert prediction_files([probed[0].parent]) == probed
    capsys.readouterr()
    assert main(["leaderboard", "outputs"]) == 0
    assert "Probe" not in capsys.readouterr().out


def test_the_printed_space_is_confirmed_by_a_second_probe(serve: Serve, capsys: Out) -> None:
    server = serve(answering(convention("smart_3136_1003520/xyxy")))
    assert probe(server, "--space=grid1000", "--like=Qwen2.5-VL") == 1
    *_, last = capsys.readouterr().out.split("run with this model's space: ")
    assert probe(server, "--like=Qwen2.5-VL", *shlex.split(last)) == 0


def test_what_is_refused_and_a_dry_run_ask_nothing(serve: Serve, capsys: Out) -> None:
    server = serve(answering(convention("grid1000/xyxy")))
    for flags, why in (
        (["--limit", "41"], "--limit 41 is out of range: 20 to 40 scenes"),
        (["--format", "point_json"], "--format point_json: the probe asks for boxes"),
        (["--space", "grid100"], "grid1000"),
        (["--format", "xyxy_jsno"], "xyxy_jsno"),
        (["--like", "Qwen2.5"], "--like: unknown model 'Qwen2.5'"),
        (["--extra-body", "[]"], "--extra-body"),
    ):
        assert probe(server, *flags) == 2
        assert why in capsys.readouterr().err
    assert main(["probe", "--model", "nobody"]) == 2
    assert "type --like NAME or --space SPACE, or --base-url URL" in capsys.readouterr().err
    assert probe(server, "--dry-run") == 0
    assert "20 model calls, 20 of them still to make" in capsys.readouterr().out
    assert not server.asked


@pytest.mark.filterwarnings("error")
def test_the_format_that_most_replies_have_is_named(serve: Serve, capsys: Out) -> None:
    right = answering(convention("grid1000/xyxy"))

    def script(asked: Asked, number: int) -> Answer:
        answer = right(asked, number)
        body = answer.body.replace(b'\\"bbox\\"', b'\\"bbox_2d\\"')
        return replace(answer, body=body) if number < 34 else answer

    assert probe(serve(script), "--limit", "40", "--space", "grid1000") == 2
    out = " ".join(capsys.readouterr().out.split())
    assert "34 of 40 replies are as xyxy_json_bbox_2d asks for them" in out
    assert "--format xyxy_json_bbox_2d" in out

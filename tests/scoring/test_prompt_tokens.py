"""Images that a server did not see, by the tokens that it counts: who is blamed, and who is not."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chat_server import Answer, Asked, ChatServer, completion
from few_fast import every_nth_fast
from hypothesis import given
from hypothesis import strategies as st

from vlmeval_findit.cli import main
from vlmeval_findit.protocol import Part, PartKind
from vlmeval_findit.scoring import (
    FEWER_THAN_OTHERS,
    FEWER_THAN_TEXT,
    PromptTokens,
    count_unseen,
    text_tokens,
)

TEXT = "count fewer tokens than the text alone: the server may not see the images"
OTHERS = "count far fewer tokens than others with images of the same sizes"
OF_IMAGE = 300
TASKS = ("FindIt_Scenes_mini_xyxy_json", "FindIt_Scenes_mini_insdet_xyxy_json")
QUESTIONS = "VPBench_Scenes_mini"  # Of very different lengths


def words(asked: Asked) -> int:
    """Count the tokens of a request's text as a usual tokenizer does, with those of a chat."""
    parts = [part for message in asked.body["messages"] for part in message["content"]]
    text = "\n".join(part["text"] for part in parts if part["type"] == "text")
    return len(re.findall(r"\w+|[^\w\s]", text)) + 8


def usage(prompt: Any, **more: Any) -> Answer:
    return completion("[]", usage={"prompt_tokens": prompt, "completion_tokens": 2, **more})


def cached(tokens: int) -> dict[str, Any]:
    return {"prompt_tokens_details": {"cached_tokens": tokens}}


# What a server counts of a request, given its number; and what is said of 20
SERVERS: dict[str, tuple[Callable[[Asked, int], Answer], str | None]] = {
    "sees every image": (lambda asked, _: usage(words(asked) + OF_IMAGE), None),
    "counts no images": (lambda asked, _: usage(words(asked)), None),
    "counts nothing": (lambda *_: usage(0), None),
    "says nothing": (lambda *_: completion("[]", usage=None), None),
    "counts in words": (lambda *_: usage("many"), None),
    "counts the same of each": (lambda *_: usage(300), None),
    "states apart what was in a cache": (lambda *_: usage(9, **cached(900)), None),
    "had some in a cache": (lambda *_: usage(9, **cached(8)), None),
    "counts less than the text": (lambda *_: usage(17), f"20 of 20 replies {TEXT}"),
    "counts one": (lambda *_: usage(1), f"20 of 20 replies {TEXT}"),
    "drops some images": (
        lambda asked, at: usage(words(asked) + OF_IMAGE * (at % 4 > 0)),
        f"5 of 20 replies {OTHERS}",
    ),
    "drops most images": (
        lambda asked, at: usage(words(asked) + OF_IMAGE * (at % 4 == 0)),
        rf"\d+ of 20 replies {OTHERS}",
    ),
}


def printed_of(name: str, answer: Callable[[Asked, int], Answer], folder: Path, capsys: Any) -> str:
    """Run 20 queries at a server, and return what is printed."""
    sweep = folder / "sweep.yaml"
    sweep.write_text(
        f"models: [{{name: Mine, space: grid1000}}]\ndatasets: [{name}]\nlimit: 20\n"
        f"work_dir: {folder / 'out'}\n"
    )
    with ChatServer(answer) as server:
        assert main(["sweep", str(sweep), "--base-url", server.url]) == 0
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("server", every_nth_fast(SERVERS, 3))
def test_who_is_blamed(server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer, expected = SERVERS[server]
    printed = printed_of(TASKS[0], answer, tmp_path, capsys)
    assert len(re.findall(expected or TEXT, printed)) == (expected is not None)
    assert printed.count("tokens than") == (expected is not None)


@pytest.mark.slow
@pytest.mark.parametrize("server", every_nth_fast(SERVERS, 3))
@pytest.mark.parametrize("name", [*TASKS[1:], QUESTIONS])
def test_who_is_blamed_on_other_tasks(
    name: str, server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Several images a query, and texts of very different lengths."""
    answer, expected = SERVERS[server]
    printed = printed_of(name, answer, tmp_path, capsys)
    assert printed.count("tokens than") == (expected is not None)


def test_every_command_that_shows_the_run_says_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = TASKS[0]
    assert TEXT in printed_of(name, SERVERS["counts less than the text"][0], tmp_path, capsys)
    for command in ("score", "errors", "leaderboard", "report"):
        assert main([command, "out"]) == 0
        read = capsys.readouterr()
        assert " ".join((read.out + read.err).split()).count(TEXT) == 1, command
    for page in ("report.html", "leaderboard/leaderboard.md"):
        assert TEXT in " ".join((tmp_path / "out" / page).read_text().split())


def test_the_probe_says_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ChatServer(SERVERS["counts less than the text"][0]) as server:
        flags = ["--base-url", server.url, "--work-dir", str(tmp_path)]
        main(["probe", "--model", "Mine", *flags])
    assert f"40 of 40 replies {TEXT}" in " ".join(capsys.readouterr().out.split())


# --- bounds ---------------------------------------------------------------------------------------

SIZE = ((640, 480),)


def prompt(counted: int, sizes: Any = SIZE, model: str = "m") -> PromptTokens:
    return PromptTokens(counted, 40, 90, sizes, model)


@pytest.mark.parametrize(
    ("prompts", "counts"),
    [
        ([prompt(1100), prompt(110)], {FEWER_THAN_OTHERS: 1}),
        ([prompt(1100), prompt(640)], {}),  # More than half of the image
        ([prompt(160), prompt(100)], {}),  # The text may make the difference
        ([prompt(1100), prompt(110, sizes=((64, 48),))], {}),
        ([prompt(1100), prompt(110, sizes=())], {}),  # It is not known what was sent
        ([prompt(1100, sizes=()), prompt(110, sizes=())], {}),
        ([prompt(1100), prompt(110, model="other")], {}),
        ([prompt(39), prompt(39, sizes=())], {FEWER_THAN_TEXT: 2}),
        ([prompt(40)], {}),
    ],
)
def test_what_tokens_say(prompts: list[PromptTokens], counts: dict[str, int]) -> None:
    assert count_unseen(prompts) == counts
    assert count_unseen(reversed(prompts)) == counts


@given(
    texts=st.lists(st.floats(40, 90), min_size=2, max_size=20),
    of_image=st.integers(0, 5000),
    of_chat=st.integers(0, 40),
)
def test_nobody_who_sees_all_images_is_blamed(
    texts: list[float], of_image: int, of_chat: int
) -> None:
    """Whatever the tokenizer makes of the texts, and however many tokens an image has."""
    counted = [prompt(int(text) + of_image + of_chat) for text in texts]
    assert count_unseen(counted) == {}


@pytest.mark.parametrize(
    ("text", "tokens"),
    [  # By the tokenizers of Claude 2, and of Mistral (v1, Tekken)
        ("Locate the red cup in this image.", (9, 9, 9)),
        ('Answer as JSON: [{"bbox_2d": [x_min, y_min]}, ...].', (21, 24, 20)),
        ("找到左边穿红色衣服的小女孩", (15, 16, 15)),
    ],
)
def test_bounds_hold_for_tokenizers(text: str, tokens: tuple[int, ...]) -> None:
    message = (Part(PartKind.IMAGE, "a/long/name.jpg"), Part(PartKind.TEXT, text))
    least, most = text_tokens(message)
    assert least <= min(tokens)
    assert max(tokens) <= most

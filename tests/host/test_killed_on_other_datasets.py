"""Both runners over a dataset of VLMEvalKit's, killed: only the same model goes on."""

from __future__ import annotations

import base64
import pickle
from io import BytesIO
from pathlib import Path

import pandas
import pytest
from chat_server import NEVER, Answer, Asked, ChatServer, completion
from host_runs import RUN_FINDIT, STOCK, environment, kill_when, require_host, run
from PIL import Image
from upstream import make_clone

pytestmark = [pytest.mark.host, pytest.mark.slow]

DATA = "Colours"
ROWS = 5
ANSWERED = 2


class Gone:
    """A server that answers some calls and then no more, until it is back."""

    def __init__(self, reply: str, answers: int) -> None:
        self.left = answers
        self._reply = reply

    def __call__(self, asked: Asked, number: int) -> Answer:
        self.left -= 1
        return completion(self._reply) if self.left >= 0 else NEVER


def command(program: str, folder: Path, url: str) -> tuple[list[str], list[str], dict[str, str]]:
    """Return a program, its arguments and its variables, with which a server is asked."""
    asks = ["--data", DATA, "--mode", "infer", "--api-nproc", "1", "--work-dir", "out"]
    if program == "findit run":
        return [*RUN_FINDIT], ["run", *asks, "--model", "Qwen3-VL-8B=m", "--base-url", url], {}
    at_url = {"OPENROUTER_API_KEY": "none", "OPENROUTER_BASE_URL": url}
    of_vlmevalkit = [*STOCK]
    if program == "upstream":
        of_vlmevalkit = [str(folder / "clone" / "run.py")]
    return of_vlmevalkit, [*asks, "--model", "GPT-5.4", "--reuse"], at_url


def checkpoints(folder: Path) -> list[Path]:
    return list(folder.rglob(f"*_{DATA}_checkpoint.pkl"))


@pytest.mark.parametrize("program", ["findit run", "ms-vlmeval", "upstream"])
def test_only_the_same_server_goes_on_after_a_kill(program: str, tmp_path: Path) -> None:
    require_host()
    lmu = tmp_path / "lmu"
    env = environment(lmu)
    picture = BytesIO()
    Image.new("RGB", (64, 48), "red").save(picture, "PNG")
    image = base64.b64encode(picture.getvalue()).decode()
    rows = "".join(f"{row}\tWhich colour?\tred\tblue\tA\t{image}\n" for row in range(ROWS))
    (lmu / f"{DATA}.tsv").write_text(f"index\tquestion\tA\tB\tanswer\timage\n{rows}")
    make_clone(tmp_path / "clone")

    def has_answers() -> bool:
        return any(
            len(pickle.loads(path.read_bytes())) == ANSWERED for path in checkpoints(tmp_path)
        )

    script = Gone("A", ANSWERED)
    with ChatServer(script) as one, ChatServer(lambda *_: completion("B")) as other:
        kept, words, variables = command(program, tmp_path, one.url)
        kill_when([*kept, *words], tmp_path, {**env, **variables}, has_answers)

        kept, words, variables = command(program, tmp_path, other.url)
        refused = run(kept, words, tmp_path, {**env, **variables})
        assert refused.returncode != 0, refused.stdout
        assert "is of another run" in refused.stdout
        assert "endpoint: recorded" in refused.stdout
        assert not other.asked

        script.left = ROWS
        asked = len(one.asked)
        kept, words, variables = command(program, tmp_path, one.url)
        done = run(kept, words, tmp_path, {**env, **variables})
        assert done.returncode == 0, done.stdout
        assert len(one.asked) - asked == ROWS - ANSWERED

        kept, words, variables = command(program, tmp_path, other.url)
        refused = run(kept, words, tmp_path, {**env, **variables})
        assert refused.returncode != 0, refused.stdout
        assert not other.asked
        if program == "upstream":  # Which begins a folder with each run, unless told to --reuse
            fresh = [word for word in words if word != "--reuse"]
            assert run(kept, fresh, tmp_path, {**env, **variables}).returncode == 0
            assert len(other.asked) == ROWS
            return
    (path,) = {path.resolve() for path in (tmp_path / "out").rglob(f"*_{DATA}.xlsx")}
    assert list(pandas.read_excel(path)["prediction"]) == ["A"] * ROWS

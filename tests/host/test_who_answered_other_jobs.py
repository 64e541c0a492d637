"""VLMEvalKit's ``--api-mode``, conversations and videos: who answers is recorded and compared."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas
import pytest
from few_fast import few_fast

from vlmeval_findit.protocol import IdentityError
from vlmeval_findit.storage import read_record

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("asked_by_host")]

DATA = "Mine"
NAME = "m"
ROWS = 2
Job = Callable[[Any, Path], None]


def model_at(url: str, reply: str) -> Any:
    """Return a model of ours at a server, which answers here and counts its calls."""
    from vlmeval_findit.host import api

    class Counted(api.FindItServer):
        calls = 0

        def generate(self, message: Any, dataset: str | None = None, **_: Any) -> str:
            self.calls += 1
            return reply

        def chat(self, messages: Any, **_: Any) -> str:
            return self.generate(messages)

    return Counted(NAME, url, like="Qwen3-VL")


def dataset() -> Any:
    """Return what VLMEvalKit's jobs use of a dataset."""
    turns = [{"role": "user", "content": "Where?"}, {"role": "assistant", "content": ""}]

    class Rows(SimpleNamespace):
        def __len__(self) -> int:
            return ROWS

        def __getitem__(self, row: int) -> Any:
            return self.data.iloc[row]

        def build_prompt(self, row: Any, video_llm: bool | None = None) -> Any:
            return [dict(turn) for turn in turns]

    names = [f"{row}.mp4" for row in range(ROWS)]
    data = pandas.DataFrame({"index": range(ROWS), "question": "Where?"})
    return Rows(dataset_name=DATA, data=data, videos=names, nframe=8, fps=-1)


# --- the jobs -------------------------------------------------------------------------------------


def api_mode(model: Any, folder: Path) -> None:
    from vlmeval.inference_api import APIEvalPipeline, DatasetConfig

    config = DatasetConfig(
        dataset_name=DATA,
        dataset_obj=dataset(),
        dataset_type="mt",  # The prompts of others are made in another process
        model_name=NAME,
        model_obj=model,
        work_dir=str(folder),
        result_file=str(folder / f"{NAME}_{DATA}.xlsx"),
        judge_kwargs={},
    )
    pipeline = APIEvalPipeline([config], concurrency=1, run_eval=False)

    async def no_monitor() -> None: ...

    pipeline._monitor_loop = no_monitor  # It sleeps
    asyncio.run(pipeline.run())


def conversation(model: Any, folder: Path) -> None:
    from vlmeval.inference_mt import infer_data_job_mt

    infer_data_job_mt(model, str(folder), NAME, dataset(), api_nproc=1)


def video(model: Any, folder: Path) -> None:
    from vlmeval.inference_video import infer_data_job_video

    result = str(folder / f"{NAME}_{DATA}_8frame.xlsx")
    infer_data_job_video(model, str(folder), NAME, dataset(), result_file=result, api_nproc=1)


# Each with the names of its predictions and of what a killed one leaves
JOBS: Mapping[str, tuple[Job, str, str]] = {
    "--api-mode": (api_mode, f"{NAME}_{DATA}", f"{NAME}_{DATA}_checkpoint.pkl"),
    "conversation": (conversation, f"{NAME}_{DATA}", f"{NAME}_{DATA}_checkpoint.pkl"),
    "video": (video, f"{NAME}_{DATA}_8frame", f"{NAME}_{DATA}_8frame_nopack_checkpoint.pkl"),
}


def kill(job: str, folder: Path) -> None:
    """Leave what the job leaves that is killed after its first answer."""
    _, predictions, checkpoint = JOBS[job]
    (folder / f"{predictions}.xlsx").unlink()
    answer = "A" if job == "video" else ["A"]
    (folder / checkpoint).write_bytes(pickle.dumps({"0": answer}))


@pytest.mark.parametrize("is_killed", few_fast([False, True], 1))
@pytest.mark.parametrize("job", JOBS)
def test_only_the_same_model_goes_on(job: str, is_killed: bool, tmp_path: Path) -> None:
    ask, predictions, _ = JOBS[job]
    first = model_at("http://one/v1", "A")
    ask(first, tmp_path)
    assert first.calls == ROWS
    record = read_record(tmp_path / f"{predictions}_answered_by.json")
    assert record is not None
    assert record.answering.endpoint == "http://one/v1"
    if is_killed:
        kill(job, tmp_path)
    other = model_at("http://other/v1", "B")
    with pytest.raises(IdentityError, match="is of another run") as refused:
        ask(other, tmp_path)
    assert "endpoint: recorded http://one/v1, now http://other/v1" in str(refused.value)
    assert other.calls == 0
    again = model_at("http://one/v1", "A")
    ask(again, tmp_path)
    assert again.calls == (ROWS - 1 if is_killed else 0)
    answers = pandas.read_excel(tmp_path / f"{predictions}.xlsx")["prediction"]
    assert set(answers) == ({"A"} if job == "video" else {"['A']"})

"""The release's words: which clone they come from, what it is given, where images are placed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_prompts import query_for

from vlmeval_findit.benchmarks.findit import PromptError, parse, prompt_set
from vlmeval_findit.boxes import Truth
from vlmeval_findit.protocol import Message, image, text

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

PASCAL = "FindIt_Pascal_xyxy_text"
HRINSDET = "FindIt_HRInsDet_easy_xyxy_text"
DOC_UTILS = """
calls = []
def doc_to_text(doc, kwargs):
    calls.append((doc, kwargs))
    return {text!r}
"""


def git(*arguments: str, at: Path) -> str:
    who = ("-c", "user.name=n", "-c", "user.email=e@example.org")
    return subprocess.check_output(["git", *who, *arguments], cwd=at, text=True).strip()


def forget_clones() -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "findit"]:
        del sys.modules[name]


Clone = Callable[..., Path]


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Clone]:
    """Makes a stand-in of the release that says a text, the package below ``layout``."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    forget_clones()

    def make(text: str = "Find it.", name: str = "release", layout: str = "") -> Path:
        package = tmp_path / name / layout / "findit"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "doc_utils.py").write_text(DOC_UTILS.format(text=text))
        git("init", "-q", at=tmp_path / name)
        git("commit", "-q", "--allow-empty", "-m", "a commit", at=tmp_path / name)
        monkeypatch.setenv("FINDIT_PROMPTS", str(tmp_path / name))
        return tmp_path / name

    yield make
    forget_clones()


def of_release(name: str, **changes: Any) -> Message:
    variant = parse(name)
    return prompt_set()[1](replace(query_for(variant), **changes), variant)


@pytest.mark.parametrize("layout", ["", "src"])
def test_both_releases_are_known_and_a_second_clone_refused(
    clone: Clone, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = clone("First.", "first", layout)
    assert prompt_set()[0] == f"findit-release-{git('rev-parse', 'HEAD', at=first)[:12]}"
    assert of_release(PASCAL)[-1].value == "First."
    clone("Second.", "second")
    with pytest.raises(PromptError, match=f"this process has imported {first}"):
        of_release(PASCAL)
    monkeypatch.setenv("FINDIT_PROMPTS", str(first))
    assert of_release(PASCAL)[-1].value == "First."


def test_a_clone_that_cannot_be_imported_names_what_it_needs(clone: Clone) -> None:
    (clone() / "findit" / "doc_utils.py").write_text("import torch_that_is_not_installed\n")
    with pytest.raises(PromptError, match="need torch and torchvision"):
        of_release(PASCAL)


SHOTS = image("shot1.jpg"), image("shot2.jpg")
SCENE = image("1.jpg")


@pytest.mark.parametrize(
    ("release_text", "parts"),
    [
        # Without marks the text stands after all images.
        ("Find it.", (*SHOTS, SCENE, text("Find it."))),
        ("A: <image 1> B: <image 2>\nIn <image 3> find it.",
         (text("A: "), SHOTS[0], text(" B: "), SHOTS[1], text("\nIn "), SCENE, text(" find it."))),
        ("<image 3><image 1> \n<image 2>Find it.", (SCENE, *SHOTS, text("Find it."))),
    ],
)  # fmt: skip
def test_the_releases_text_places_the_images(
    clone: Clone, release_text: str, parts: Message
) -> None:
    clone(release_text)
    assert of_release(HRINSDET) == parts


@pytest.mark.parametrize(
    "release_text", ["<image 1> Find it.", "<image 1><image 2><image 2><image 3>"]
)
def test_a_missing_mark_is_an_error(clone: Clone, release_text: str) -> None:
    clone(release_text)
    with pytest.raises(PromptError, match=rf"{HRINSDET}, row 7: .* has 3"):
        of_release(HRINSDET)


def test_the_release_gets_the_cell_and_the_row(clone: Clone) -> None:
    clone()
    of_release("FindIt_iGround_multilabel_caption_f3_cxcywh_json_bbox_2d_nested_cx-formula")
    truth = Truth(((1, 2, 3, 4),), (0,), ("dog",))
    of_release("FindIt_Pascal_multilabel_xyxy_text", truth=truth)
    (video, kwargs), (labelled, _) = sys.modules["findit.doc_utils"].calls
    assert kwargs == {
        **{"dataset_name": "iground", "task_family": "objdet_video", "max_frames": 3},
        **{"fmt": "json", "json_key": "bbox_2d", "json_structure": "nested"},
        **{"bbox_repr": "cxcywh", "center_exp": "formula", "rescale_mode": "standard"},
        **{"multi_label": True, "with_caption": True, "negative_examples": False},
    }
    assert video["label"] == "dog, traffic light"
    assert video["caption"] == "A dog waits at a traffic light."
    assert video["frame_paths"] == ["1.jpg", "2.jpg", "3.jpg"]
    assert video["frame_indices"] == [0, 1, 2]
    assert video["bboxes"] == [[], [], []]
    assert labelled["bboxes"] == [{"label": "dog", "bbox": [1, 2, 3, 4]}]
    assert (labelled["filename"], labelled["width"], labelled["height"]) == ("1.jpg", 640, 480)
    with pytest.raises(PromptError, match=r"vp-box: the release has no prompt for .box"):
        of_release(f"{HRINSDET}_vp-box")

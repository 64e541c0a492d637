"""A clone of the release: where its package lies, which commit it is at, and that it is the one."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from vlmeval_findit.benchmarks.findit.dataset_names import parse
from vlmeval_findit.benchmarks.findit.findit_query import FindItQuery
from vlmeval_findit.benchmarks.findit.release_prompts import PromptError, prompt_set
from vlmeval_findit.boxes.records import Truth
from vlmeval_findit.core.vlmevalkit import git_revision

QUERY = FindItQuery(0, "dog", 640, 480, ("1.jpg",), Truth((), ()))

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

Use = Callable[[Path], tuple[str, str]]


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Iterator[Use]:
    """Asks with a clone: the prompt set's name and its text; undone after the test."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    variant = parse("FindIt_Pascal_xyxy_text")

    def of(folder: Path) -> tuple[str, str]:
        monkeypatch.setenv("FINDIT_PROMPTS", str(folder))
        name, make = prompt_set()
        return name, make(QUERY, variant)[-1].value

    for name in [name for name in sys.modules if name.split(".")[0] == "findit"]:
        monkeypatch.delitem(sys.modules, name)
    yield of
    for name in [name for name in sys.modules if name.split(".")[0] == "findit"]:
        del sys.modules[name]


def clone(top: Path, source: str, says: str = "Find it.") -> Path:
    """A stand-in: the package below ``source``, at a commit."""
    folder = top / source / "findit"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "doc_utils.py").write_text(f"def doc_to_text(doc, kwargs):\n    return {says!r}\n")
    git("init", "-q", at=top)
    git("commit", "-q", "--allow-empty", "-m", "one", at=top)
    return top


def git(*arguments: str, at: Path) -> str:
    who = ("-c", "user.name=n", "-c", "user.email=e@example.org")
    done = subprocess.run(
        ["git", *who, *arguments], cwd=at, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("layout", "values"),
    [
        pytest.param("", "", id="revised state, top folder"),
        pytest.param("src", "", id="first state, top folder"),
        pytest.param("src", "src", id="first state, src"),
    ],
)
def test_both_states_are_found_and_their_commit_is_named(
    tmp_path: Path, use: Use, layout: str, values: str
) -> None:
    top = clone(tmp_path / "release", layout)
    commit = git("rev-parse", "HEAD", at=top)[:12]
    assert use(top / values) == (f"findit-release-{commit}", "Find it.")


def test_a_folder_above_that_is_another_repository_is_not_the_clone(
    tmp_path: Path, use: Use
) -> None:
    top = clone(tmp_path / "mine" / "release", "src")
    shutil.move(top / ".git", tmp_path / "mine" / ".git")
    assert use(top)[0] == "findit-release-unknown"


@pytest.mark.parametrize("values", ["", "src"])
def test_another_clone_in_the_same_process_is_refused(
    tmp_path: Path, use: Use, values: str
) -> None:
    first = clone(tmp_path / "first", "src", "First.")
    second = clone(tmp_path / "second", values, "Second.")
    assert use(first)[1] == "First."
    assert use(first / "src")[1] == "First."
    with pytest.raises(PromptError) as error:
        use(second)
    place = first / "src" / "findit"
    assert f"this process has imported {place}" in str(error.value)
    assert use(first)[1] == "First."


def test_a_clone_that_could_not_be_imported_does_not_answer_for_the_next(
    tmp_path: Path, use: Use
) -> None:
    """Its package is imported before its ``doc_utils`` fails."""
    broken = clone(tmp_path / "broken", "")
    (broken / "findit" / "doc_utils.py").write_text("import torch_that_is_not_installed\n")
    with pytest.raises(PromptError, match="need torch and torchvision"):
        use(broken)
    with pytest.raises(PromptError):
        use(clone(tmp_path / "whole", ""))


def test_the_clone_goes_before_what_is_on_the_path(tmp_path: Path, use: Use) -> None:
    top = clone(tmp_path / "release", "", "The clone.")
    other = clone(tmp_path / "other", "", "Another.")
    sys.path[:0] = [str(other), str(top)]
    assert use(top)[1] == "The clone."


def test_a_folder_without_commits_and_a_worktree(tmp_path: Path) -> None:
    assert git_revision(tmp_path) is None
    git("init", "-q", "top", at=tmp_path)
    top, side = tmp_path / "top", tmp_path / "side"
    assert git_revision(top) is None
    git("commit", "-q", "--allow-empty", "-m", "one", at=top)
    git("worktree", "add", "-q", "../side", at=top)
    git("commit", "-q", "--allow-empty", "-m", "two", at=side)
    for clone_ in (top, side):
        assert git_revision(clone_) == git("rev-parse", "HEAD", at=clone_)[:12]
    assert git_revision(top) != git_revision(side)

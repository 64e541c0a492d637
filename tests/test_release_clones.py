"""A clone of the release: where its package lies, which commit it is at, and that it is the one."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from vlmeval_findit.benchmarks.findit.names import parse
from vlmeval_findit.benchmarks.findit.query import Query
from vlmeval_findit.benchmarks.findit.release_prompts import PromptError, prompt_set
from vlmeval_findit.boxes.records import Truth
from vlmeval_findit.core.commits import commit_of
from vlmeval_findit.core.messages import text

COMMIT = "0123456789abcdef0123456789abcdef01234567"
OTHER = "f" * 40
QUERY = Query(0, "dog", 640, 480, ("1.jpg",), Truth((), ()))

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

    yield of
    for name in [name for name in sys.modules if name.split(".")[0] == "findit"]:
        del sys.modules[name]


def clone(top: Path, source: str, says: str = "Find it.", package: bool = True) -> Path:
    """A stand-in: the package below ``source``, at a commit."""
    folder = top / source / "findit"
    folder.mkdir(parents=True)
    if package:
        (folder / "__init__.py").touch()
    (folder / "doc_utils.py").write_text(f"def doc_to_text(doc, kwargs):\n    return {says!r}\n")
    (top / ".git").mkdir()
    (top / ".git" / "HEAD").write_text(COMMIT + "\n")
    return top


@pytest.mark.parametrize(
    ("layout", "given"),
    [
        pytest.param("", "", id="revised state, top folder"),
        pytest.param("src", "", id="first state, top folder"),
        pytest.param("src", "src", id="first state, src"),
    ],
)
def test_both_states_are_found_and_their_commit_is_named(
    tmp_path: Path, use: Use, layout: str, given: str
) -> None:
    top = clone(tmp_path / "release", layout)
    assert use(top / given) == (f"findit-release-{COMMIT[:12]}", "Find it.")


def test_a_folder_above_that_is_another_repository_is_not_the_clone(
    tmp_path: Path, use: Use
) -> None:
    top = clone(tmp_path / "mine" / "release", "src")
    shutil.move(top / ".git", tmp_path / "mine" / ".git")
    assert use(top)[0] == "findit-release-unknown"


def test_a_path_through_a_link_or_relative(
    tmp_path: Path, use: Use, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone(tmp_path / "release", "src")
    (tmp_path / "link").symlink_to(tmp_path / "release" / "src")
    monkeypatch.chdir(tmp_path)
    assert use(Path("link"))[0] == f"findit-release-{COMMIT[:12]}"


@pytest.mark.parametrize("package", [True, False], ids=["a package", "a namespace"])
@pytest.mark.parametrize("given", ["", "src"])
def test_another_clone_in_the_same_process_is_refused(
    tmp_path: Path, use: Use, given: str, package: bool
) -> None:
    first = clone(tmp_path / "first", "src", "First.", package)
    second = clone(tmp_path / "second", given, "Second.", package)
    assert use(first)[1] == "First."
    assert use(first / "src")[1] == "First."
    with pytest.raises(PromptError) as error:
        use(second)
    place = first / "src" / "findit"
    assert f"this process has imported findit from {place}" in str(error.value)
    assert "start another" in str(error.value)
    assert use(first)[1] == "First."


def test_a_clone_that_could_not_be_imported_does_not_answer_for_the_next(
    tmp_path: Path, use: Use
) -> None:
    """Its package is imported before its ``doc_utils`` fails."""
    broken = clone(tmp_path / "broken", "")
    (broken / "findit" / "doc_utils.py").write_text("import torch_that_is_not_installed\n")
    with pytest.raises(PromptError, match="need torch and torchvision"):
        use(broken)
    with pytest.raises(PromptError, match="has imported findit from"):
        use(clone(tmp_path / "whole", ""))


def test_a_package_of_that_name_that_is_no_clone_is_refused(tmp_path: Path, use: Use) -> None:
    other = tmp_path / "site" / "findit"
    other.mkdir(parents=True)
    (other / "__init__.py").touch()
    sys.path.insert(0, str(other.parent))
    __import__("findit")
    with pytest.raises(PromptError, match="has imported findit from"):
        use(clone(tmp_path / "release", ""))


def test_the_clone_goes_before_what_is_on_the_path(tmp_path: Path, use: Use) -> None:
    top = clone(tmp_path / "release", "", "The clone.")
    other = clone(tmp_path / "other", "", "Another.")
    sys.path[:0] = [str(other), str(top)]
    assert use(top)[1] == "The clone."


# --- commits, read without git --------------------------------------------------------------------


def git(folder: Path, **files: str) -> Path:
    """A clone's ``.git``: files by name, with ``__`` for a slash and ``_dash_`` for a dash."""
    for name, content in files.items():
        path = folder / ".git" / name.replace("__", "/").replace("_dash_", "-")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder


PACKED = (
    "# pack-refs with: peeled fully-peeled sorted \n"
    f"{OTHER} refs/heads/main-old\n{OTHER} refs/tags/v1\n^{'a' * 40}\n{COMMIT} refs/heads/main\n"
)


@pytest.mark.parametrize(
    ("files", "commit"),
    [
        pytest.param({}, None, id="no repository"),
        pytest.param({"HEAD": f"{COMMIT}\n"}, COMMIT, id="detached"),
        pytest.param({"HEAD": "a" * 64}, "a" * 64, id="SHA-256"),
        pytest.param(
            {"HEAD": "ref: refs/heads/main\n", "refs__heads__main": f"{COMMIT}\n"}, COMMIT, id="ref"
        ),
        pytest.param(
            {"HEAD": "ref: refs/heads/main\n", "packed_dash_refs": PACKED}, COMMIT, id="packed"
        ),
        pytest.param(
            {
                "HEAD": "ref: refs/heads/main\n",
                "refs__heads__main": COMMIT,
                "packed_dash_refs": PACKED.replace(COMMIT, OTHER),
            },
            COMMIT,
            id="a loose reference goes before a packed one",
        ),
        pytest.param(
            {"HEAD": "ref: a", "a": "ref: b", "b": "ref: c", "c": COMMIT}, COMMIT, id="a chain"
        ),
        pytest.param({"HEAD": "ref: HEAD"}, None, id="a circle"),
        pytest.param({"HEAD": "ref: refs/heads/main\n"}, None, id="a branch without commits"),
        pytest.param(
            {"HEAD": "ref: refs/heads/new", "packed_dash_refs": PACKED}, None, id="not packed"
        ),
        pytest.param({"HEAD": "root:x:0:0\n"}, None, id="no commit"),
        pytest.param({"HEAD": COMMIT.upper()}, None, id="no digits of git"),
        pytest.param({"HEAD": COMMIT + "0"}, None, id="41 digits"),
        pytest.param({"HEAD": ""}, None, id="empty"),
        pytest.param({"config": ""}, None, id="no head"),
    ],
)
def test_the_commit_of_a_clone(tmp_path: Path, files: dict[str, str], commit: str | None) -> None:
    assert commit_of(git(tmp_path, **files)) == (commit and commit[:12])


def test_a_head_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_bytes(b"\xff\xfe\0")
    assert commit_of(tmp_path) is None


@pytest.mark.parametrize("absolute", [True, False])
def test_a_worktree_shares_the_branches_of_its_clone(tmp_path: Path, absolute: bool) -> None:
    main = git(tmp_path / "main", HEAD=f"ref: {OTHER}", refs__heads__side=COMMIT)
    own = main / ".git" / "worktrees" / "side"
    own.mkdir(parents=True)
    (own / "HEAD").write_text("ref: refs/heads/side\n")
    (own / "commondir").write_text("../..\n")
    tree = tmp_path / "side"
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {own if absolute else '../main/.git/worktrees/side'}\n")
    assert commit_of(tree) == COMMIT[:12]
    (main / ".git" / "refs" / "heads" / "side").unlink()
    (main / ".git" / "packed-refs").write_text(f"{COMMIT} refs/heads/side\n")
    assert commit_of(tree) == COMMIT[:12]


@pytest.mark.parametrize("content", ["", "gitdir: nowhere", "somewhere"])
def test_a_file_that_names_no_repository(tmp_path: Path, content: str) -> None:
    (tmp_path / ".git").write_text(content)
    assert commit_of(tmp_path) is None


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_git_itself_agrees(tmp_path: Path) -> None:
    def run(*arguments: str, at: Path) -> str:
        who = ("-c", "user.name=n", "-c", "user.email=e@example.org")
        done = subprocess.run(
            ["git", *who, *arguments], cwd=at, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    top = tmp_path / "top"
    top.mkdir()
    run("init", "-q", at=top)
    assert commit_of(top) is None
    run("commit", "-q", "--allow-empty", "-m", "one", at=top)
    assert commit_of(top) == run("rev-parse", "HEAD", at=top)[:12]
    run("pack-refs", "--all", at=top)
    assert commit_of(top) == run("rev-parse", "HEAD", at=top)[:12]
    run("worktree", "add", "-q", "-b", "side", "../side", at=top)
    run("commit", "-q", "--allow-empty", "-m", "two", at=tmp_path / "side")
    assert commit_of(tmp_path / "side") == run("rev-parse", "HEAD", at=tmp_path / "side")[:12]
    assert commit_of(tmp_path / "side") != commit_of(top)
    run("checkout", "-q", "--detach", at=top)
    assert commit_of(top) == run("rev-parse", "HEAD", at=top)[:12]


def test_the_name_is_of_what_is_sent(tmp_path: Path, use: Use) -> None:
    name, said = use(clone(tmp_path / "release", "src", "Find <image 1> it."))
    assert (name, text(said).value) == (f"findit-release-{COMMIT[:12]}", " it.")

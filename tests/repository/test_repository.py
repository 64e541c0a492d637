"""The repository itself: clean under its tools, and its pages say what the program does."""

from __future__ import annotations

import ast
import re
import subprocess
import sys

import pages
import pytest
from paths import ROOT
from syntax_trees import nodes_of

import vlmeval_findit
from vlmeval_findit.benchmarks import parse
from vlmeval_findit.benchmarks.findit import (
    DATASETS,
    PROMPTS_NAME,
)
from vlmeval_findit.boxes import REPRESENTATIONS, SPACE_KINDS
from vlmeval_findit.cli import COMMANDS, OLD_WORDS, main

PROTOCOL = (ROOT / "docs" / "reference" / "protocol.md").read_text(encoding="utf-8")
PAGES = {name: path.read_text(encoding="utf-8") for name, path in pages.PAGES.items()}


@pytest.mark.parametrize(
    "command",
    [
        ["ruff", "check", "."],
        ["ruff", "format", "--check", "."],
        pytest.param(["mypy"], marks=pytest.mark.slow),
    ],
    ids=lambda c: " ".join(c),
)
def test_clean_under(command: list[str]) -> None:
    pytest.importorskip(command[0])
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_overview_counts_rows_of_a_table() -> None:
    """Who adds a model, a provider or a format need not look for a number in words."""
    number = r"(?:\d+|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen)"
    what = r"(?:more |known |annotation |tools' )*(?:benchmarks|formats|families|providers)"
    counts = re.compile(rf"\b{number} (?:known model )?{what}\b", re.IGNORECASE)
    for page in ("README.md", "docs/index.md", "docs/start.md"):
        assert counts.findall(PAGES[page]) == []


def test_the_reference_has_every_public_name() -> None:
    page = PAGES["docs/reference/api.md"]
    listed = re.findall(r"^\.\. auto(?:function|class):: (\w+)$", page, re.MULTILINE)
    assert sorted(listed) == vlmeval_findit.__all__


def test_every_page_is_in_the_table_of_contents() -> None:
    tables = re.findall(r"^```{toctree}\n(.*?)^```", PAGES["docs/index.md"], re.M | re.DOTALL)
    listed = [line for table in tables for line in table.splitlines() if re.match(r"\w", line)]
    assert "commands/*" in PAGES["docs/reference/commands.md"]
    of_commands = [page for page in pages.WRITTEN if page.startswith("docs/reference/commands/")]
    listed += [page.removeprefix("docs/").removesuffix(".md") for page in of_commands]
    in_clone = [name for name in PAGES if name.startswith("docs/") and name != "docs/index.md"]
    assert sorted(f"docs/{page}.md" for page in listed) == sorted([*in_clone, *pages.WRITTEN])


def test_the_protocol_names_every_row_of_the_tables() -> None:
    for name in (*REPRESENTATIONS, *SPACE_KINDS, *DATASETS):
        assert f"`{name}`" in PROTOCOL, name
    assert PROMPTS_NAME in PROTOCOL


def test_sections_of_the_protocol_that_the_code_cites_are_there() -> None:
    sections = set(re.findall(r"^## (\d+)\. ", PROTOCOL, re.MULTILINE))
    cited = {
        number
        for path in (*(ROOT / "vlmeval_findit").rglob("*.py"), *(ROOT / "configs").glob("*.yaml"))
        for numbers in re.findall(r"protocol sections? ([\d, and]+)", path.read_text("utf-8"))
        for number in re.findall(r"\d+", numbers)
    }
    assert cited
    assert cited <= sections


def test_names_in_the_pages_are_valid() -> None:
    # But for names with a place to fill in (FindIt_RefCOCO_<representation>) and of one's own data.
    own = ("FindIt_MyData", "FindIt_AcmePlates")
    own += ("FindIt_ODinW13", "FindIt_ScreenSpot", "FindIt_RefCOCOFull")
    actual = re.compile(r"\bFindIt_[A-Za-z0-9][\w-]*+(?!<)")
    names = {name for page in PAGES.values() for name in actual.findall(page)}
    names = {name for name in names if not name.startswith(own)}
    assert len(names) > 10
    for name in names:
        parse(name)


def test_links_between_pages_lead_somewhere() -> None:
    anchors: dict[str, set[str]] = {}
    for page, text in PAGES.items():
        without_code = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
        headings = re.findall(r"^#+ (.*)$", without_code, re.MULTILINE)
        # As GitHub makes them
        plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
        anchors[page] = {heading.replace(" ", "-") for heading in plain}
    for page, text in PAGES.items():
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"\w+:", link):
                continue
            path, _, part = link.partition("#")
            target = ((ROOT / page).parent / path if path else ROOT / page).resolve()
            name = str(target.relative_to(ROOT))
            assert target.exists() or name in pages.WRITTEN, f"{page}: {link}"
            if part:
                assert part in anchors[name], f"{page}: {link}"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command.split(), "-h"]) == 0
    assert f"run_findit.py {command}" in capsys.readouterr().out


def test_without_arguments_the_commands_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    not_listed = [name for name in COMMANDS if not any(f"  {name} " in line for line in lines)]
    assert not_listed == [*OLD_WORDS]
    assert len(lines) <= 42
    assert max(map(len, lines)) <= 80


def test_nothing_outside_the_command_line_prints() -> None:
    allowed = {"cli", "train.py", "evaluate.py", "card.py"}
    for path in (ROOT / "vlmeval_findit").rglob("*.py"):
        if not allowed & set(path.relative_to(ROOT / "vlmeval_findit").parts):
            text = path.read_text(encoding="utf-8")
            assert not re.search(r"^\s*print\(", text, re.MULTILINE), path


def test_weights_are_loaded_as_weights_only() -> None:
    """A pickle runs what it likes: whoever hands a training's state on could run code."""
    calls = {
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for folder in ("training", "vlmeval_findit")
        for path in (ROOT / folder).rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"\b(torch\.load|pickle\.loads?|joblib\.load)\(|allow_pickle=True", line)
        and "weights_only=True" not in line
    }
    assert not calls


def test_no_code_of_a_checkpoint_is_run() -> None:
    """With ``trust_remote_code`` left out, transformers asks, and a piped "y" is an answer."""
    calls = []
    for path in (ROOT / "vlmeval_findit").rglob("*.py"):
        for node in nodes_of(path):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".from_pretrained"):
                keywords = {word.arg: ast.unparse(word.value) for word in node.keywords}
                told = keywords.get("trust_remote_code") == "False"
                pinned = keywords.get(None) == "self._pinned"
                if not (told or pinned or "PeftConfig" in ast.unparse(node.func)):
                    calls.append(f"{path.relative_to(ROOT)}: {ast.unparse(node)[:60]}")
    assert calls == []


def test_suffixes_are_compared_in_small_letters() -> None:
    """`Boxes.TSV` is the kind of file that `boxes.tsv` is: :func:`.suffix_of` lowers."""
    # Hashes of checkpoints that runs recorded leave `.md` out, and nothing else.
    known = {"core/files.py", "models/revision.py"}
    package = ROOT / "vlmeval_findit"
    compared = set()
    for path in package.rglob("*.py"):
        name = path.relative_to(package).as_posix()
        if re.search(r"\.suffix *(?:[!=]=|in\b|not in\b)", path.read_text()):
            compared.add(name)
    assert compared - known == set()


def test_names_of_tests_have_at_most_ten_words() -> None:
    files = [*(ROOT / "tests").rglob("test_*.py"), *(ROOT / "benchmarks").glob("test_*.py")]
    tests = {name for file in files for name in re.findall(r"def test_(\w+)", file.read_text())}
    assert tests
    assert [name for name in sorted(tests) if len(name.split("_")) > 10] == []


def test_the_newest_changes_are_short_enough_to_read() -> None:
    """A merge by union can bring lines back that were taken out; errata have a table."""
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.split(r"^## ", changes, flags=re.MULTILINE)[1]
    assert len(newest.split()) <= 1500
    titles = re.findall(r"^### .+$", newest, re.MULTILINE)
    assert len(set(titles)) == len(titles)

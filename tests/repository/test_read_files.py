"""Files of users are read in one way: by :mod:`vlmeval_findit.core.text_files` and ``files``."""

from __future__ import annotations

import re

from paths import ROOT

PACKAGE = ROOT / "vlmeval_findit"

_READS = re.compile(
    r"\.read_(?:text|bytes)\(|(?<![\w.])open\(|\.open\((?:\"[^wax\"]*\"|encoding|\))|\bfdopen\("
    r"|\bImage\.open\(|\byaml\.(?:safe_)?load\("
)

_OURS = "a file of this package"
_WRITTEN = "a file that it just wrote, or holds open"
KNOWN = {
    "core/files.py": "what opens files: a regular one, after a look",
    "storage/image_files.py": "what opens images, from a file that is open",
    "core/lock.py": "a lock's lease, which another process of ours wrote",
    "core/unpacking.py": "how much memory this process has, as the system says",
    "core/command.py": _OURS,
    "core/vlmevalkit.py": "VLMEvalKit's own code",
    "data/demo/photos.py": _OURS,
    "data/probe_scenes.py": _OURS,
    "data/rendered/tables.py": _OURS,
    "data/sources.py": _OURS,
    "data/published_figures.py": _OURS,
    "reproduction/engine_cause.py": _OURS,
    "scoring/errata.py": _OURS,
    "report/rendering.py": _OURS,
    "engine/ray_cluster.py": _OURS,
    "models/checkpoint_files.py": "transformers' own code",
    "models/dual_encoder/towers.py": "a vector below the data folder, which it wrote",
    "serving/guard.py": "the system's list of processes",
    "serving/server_process.py": _WRITTEN,
    "engine/journal/view.py": "the journal, which open_regular opened",
    "data/fetch/fetch_images.py": "an archive that it just got, after a look",
}


def test_files_of_users_are_opened_in_one_place() -> None:
    found = set()
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        for line in path.read_text(encoding="utf-8").splitlines():
            if _READS.search(line) and not re.search(r"^\s*(?:#|def |async def )", line):
                found.add(name)
    assert found - KNOWN.keys() == set(), "read it by core.text_files, or core.files.open_regular"


def test_json_of_users_is_parsed_in_one_place() -> None:
    """Of 100,000 brackets ``json.loads`` makes a RecursionError, which is no ValueError."""
    known = {
        "core/text_files.py": "what parses",
        "protocol/chat_messages.py": "catches both",
        "models/http/schema.py": "catches both",
        "models/http/reply_json.py": "whoever calls it catches both",
        "models/http/wrong_address.py": "catches both",
        "protocol/contradictions.py": "what it just wrote",
        "protocol/identity.py": "what it just wrote",
        "storage/reply_records.py": "what it just wrote",
        "reproduction/reproduction_file.py": "what it just wrote",
        "engine/journal/view.py": "a line whose checksum is right",
        "boxes/spans.py": "a text in quotes",
        "data/demo/photos.py": _OURS,
    }
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if re.search(r"\bjson\.loads?\b", path.read_text(encoding="utf-8"))
    }
    assert found - known.keys() == set(), "parse it by core.text_files.parse_json"


def test_messages_show_values_by_one_function() -> None:
    """``{value!r:.60}`` writes a value out whole before it is cut."""
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"!r:\.\d", text), f"{path}: use core.quoted_value"
        assert path.name == "quoted_values.py" or "reprlib" not in text, path

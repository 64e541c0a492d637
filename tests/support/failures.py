"""What servers do wrong and what becomes of it: the table of docs/data.md, as data.

Each row is a test of test_fetch.py (one file) or test_archives.py (an archive).
"""

from __future__ import annotations

from dataclasses import dataclass

from stand_ins import jpeg
from web import Answer

PHOTO = jpeg()
PAGE = b"<!DOCTYPE html><html><body>Please log in</body></html>"


@dataclass(frozen=True)
class Failure:
    """``answers`` in order, the last again and again; ``why`` is None where the file is fetched."""

    what: str
    outcome: str
    answers: tuple[Answer, ...]
    why: str | None
    requests: int


def _row(
    what: str, outcome: str, why: str | None, requests: int, *answers: Answer | bytes
) -> Failure:
    listed = tuple(Answer(a) if isinstance(a, bytes) else a for a in answers)
    return Failure(what, outcome, listed, why, requests)


HALF = len(PHOTO) // 2

FILES = (
    _row("slow once: nothing within the time-out", "asked again, fetched",
         None, 2, Answer(PHOTO, slow=0.8), PHOTO),
    _row("slow every time", "failed after the attempts",
         "nothing came in time (3 attempts)", 3, Answer(PHOTO, slow=0.8)),
    _row("slow, but it keeps coming", "fetched",
         None, 1, Answer(PHOTO, pace=0.01)),
    _row("cut off in the middle", "goes on from there (Range, If-Range), fetched",
         None, 2, Answer(PHOTO, cut=HALF), PHOTO),
    _row("cut off, and the server has no ranges", "from the start again, fetched",
         None, 2, Answer(PHOTO, cut=HALF, ranges=False), Answer(PHOTO, ranges=False)),
    _row("cut off, and no ETag nor date", "from the start again, fetched",
         None, 2, Answer(PHOTO, cut=HALF, etag=""), Answer(PHOTO, etag="")),
    _row("cut off, and the file changes meanwhile", "the new file from the start, fetched",
         None, 2, Answer(jpeg(9), cut=HALF), PHOTO),
    _row("cut off every time at the same place", "failed after the attempts",
         "(3 attempts)", 3, Answer(PHOTO, cut=HALF, ranges=False)),
    _row("404", "failed at once, or the next address is tried",
         "the server does not have it (404)", 1, Answer(b"", 404)),
    _row("403", "failed at once",
         "status 403", 1, Answer(b"", 403)),
    _row("429 with Retry-After", "all connections to the host wait so long, fetched",
         None, 2, Answer(b"", 429, {"Retry-After": "1"}), PHOTO),
    _row("429, Retry-After beyond our patience", "failed, saying when to come back",
         "it asks to come back in 3600 s", 1, Answer(b"", 429, {"Retry-After": "3600"})),
    _row("500 twice", "asked again with growing waits, fetched",
         None, 3, Answer(b"", 500), Answer(b"", 503), PHOTO),
    _row("500 every time", "failed after the attempts",
         "status 500 (3 attempts)", 3, Answer(b"", 500)),
    _row("wrong size: fewer bytes than announced", "failed after the attempts",
         "(3 attempts)", 3, Answer(PHOTO, length=len(PHOTO) + 50)),
    _row("wrong size: more than a file may have", "failed at once",
         "more than 536870912", 1, Answer(PHOTO, length=1 << 40)),
    _row("a web page instead of a JPEG, with status 200", "failed, nothing kept",
         "is a web page, not an image", 1, PAGE),
    _row("an empty file", "failed, nothing kept",
         "is empty", 1, b""),
    _row("a truncated JPEG, with status 200", "failed, nothing kept",
         "does not decode", 1, PHOTO[:-HALF]),
    _row("a JPEG of another size than the annotations", "failed, nothing kept",
         "is 32x32, but its annotations are for 256x192", 1, jpeg(1, (32, 32))),
    _row("wrong checksum (annotations)", "failed, nothing kept",
         "SHA-256 is", 1, b"other annotations"),
)  # fmt: skip

TLS = (
    ("a self-signed certificate", "refused, also after VLMEvalKit switched verification off"),
    ("a redirect from https to http", "refused"),
)

ARCHIVES = (
    ("an archive cut off in the middle", "read on from there (Range), all fetched"),
    (
        "an archive cut off, and the server has no ranges",
        "brought to disk from the start again, all fetched",
    ),
    ("an archive that changes while it is read", "failed; members before it stay"),
    ("an archive that ends early", "failed; members before it stay, of one in gzip none"),
    (
        "an archive in gzip whose checksum is wrong",
        "failed, nothing kept: nobody knows which member it is",
    ),
    ("a bomb: far more comes out of an archive than is in it", "failed"),
    ("a header without end, which would fill the memory", "failed"),
    ("a web page instead of an archive", "failed"),
    ("a member with an absolute path", "refused"),
    ("a member with `..`", "refused"),
    ("a member that is a symbolic or hard link, a device, a folder", "refused"),
    ("a member larger than a file may be", "refused"),
    ("a member that is no image, cut off, or of another size", "failed, nothing kept"),
    ("a member that is not in the archive", "failed, naming the archives"),
)

PROCESS = (
    ("a link where a part is to be written, by somebody else", "replaced, nothing outside changes"),
    ("killed in the middle of a file", "the next run goes on from there"),
    ("killed in the middle of an archive", "the next run reads it for what is missing"),
    ("two runs in one folder", "the second is refused"),
)

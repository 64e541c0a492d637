"""``python -m vlmeval_findit.conformance --protocol NAME --cases FILE``: do we agree?

Tries the cases of a file and compares with what the authors of the protocol say of each.  Exits 1
unless all agree, or of a protocol that says so nearly all.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from .benchmarks import protocols
from .core.conformance import CaseError
from .core.spelling import nearest
from .doctor.conformance import PROTOCOLS as DOCTOR


def main(argv: Sequence[str] | None = None) -> int:
    """Print how many cases agree and the first that do not."""
    known = {**protocols(), **DOCTOR}
    parser = argparse.ArgumentParser(
        prog="python -m vlmeval_findit.conformance",
        description=(__doc__ or "").partition("\n\n")[2],
    )
    parser.add_argument(
        "--protocol", default="findit", help=f"{', '.join(known)} (default: findit)"
    )
    parser.add_argument("--cases", type=Path, required=True, help="JSON lines, perhaps gzipped")
    parser.add_argument("--subsets", type=Path, help="of findit: folder of Parquet subsets")
    parser.add_argument("--show", type=int, default=5, help="differences to print (default 5)")
    args = parser.parse_args(argv)
    try:
        if args.protocol not in known:
            raise CaseError(f"no protocol {args.protocol!r}{nearest(args.protocol, known)}")
        found = known[args.protocol](args.cases, args.subsets)
    except (CaseError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for why in found.differences[: args.show]:
        print(why)
    print(found)
    return 0 if found.holds else 1


if __name__ == "__main__":
    sys.exit(main())

"""Compare with the references: ``python -m tests.support.conformance --protocol P --cases FILE``.

Scores the cases of a file and compares with what the reference of the protocol gives each.  Exits
with 1 unless all agree (of the coordinate check, nearly all).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from vlmeval_findit.core import suggestion

from .cases import Agreement, CaseError, tried

# A module has ``difference(case)``, or ``agreement(path, subsets)`` where cases are tried together.
PROTOCOLS = {
    "findit": "findit",
    "ref-l4": "refl4",
    "self-retrieval": "selfretrieval",
    "vp-bench": "vpbench",
    "vp-bench-render": "vpbench_render",
    "coords": "coords",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Print how many cases agree and the first that do not."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.support.conformance", description=(__doc__ or "").partition("\n\n")[2]
    )
    parser.add_argument(
        "--protocol", default="findit", help=f"{', '.join(PROTOCOLS)} (default: findit)"
    )
    parser.add_argument("--cases", type=Path, required=True, help="JSON lines, perhaps gzipped")
    parser.add_argument("--subsets", type=Path, help="of findit: folder of Parquet subsets")
    parser.add_argument("--show", type=int, default=5, help="differences to print (default 5)")
    args = parser.parse_args(argv)
    try:
        result = agreement(args.protocol, args.cases, args.subsets)
    except (CaseError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for why in result.differences[: args.show]:
        print(why)
    print(result)
    return 0 if result.holds else 1


def agreement(protocol: str, cases: Path, subsets: Path | None = None) -> Agreement:
    """Try the cases of a file.

    Raises:
        CaseError: there is no such protocol, or a line is no case.
        OSError: a file cannot be read.
    """
    if protocol not in PROTOCOLS:
        raise CaseError(f"no protocol {protocol!r}{suggestion(protocol, PROTOCOLS)}")
    module = import_module(f".{PROTOCOLS[protocol]}", __package__)
    if hasattr(module, "agreement"):
        result: Agreement = module.agreement(cases, subsets)
        return result
    return tried(cases, module.difference)


if __name__ == "__main__":
    sys.exit(main())

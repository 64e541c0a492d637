#!/usr/bin/env python3
"""``python run_findit.py``: the command line of vlmeval_findit, from a clone or an installation."""

import sys

from vlmeval_findit.cli import main

if __name__ == "__main__":
    sys.exit(main())

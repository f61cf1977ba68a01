"""Compare goldens, or write them again; see the package."""

import argparse
import os
import sys
from pathlib import Path

import pytest
from tests.goldens.harness import ROUNDING_FILE, rounding

HERE = Path(__file__).parent


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.goldens", description=__doc__)
    which = {"nargs": "?", "const": "*", "metavar": "PATTERN"}
    parser.add_argument(
        "--compare", help="those whose names match, such as 'logs/*'; all by default", **which
    )
    parser.add_argument("--renew", help="store them again instead", **which)
    chosen, rest = parser.parse_known_args()
    os.environ["GOLDENS"] = chosen.renew or chosen.compare or "*"
    if chosen.renew:
        os.environ["RENEW_GOLDENS"] = "1"
    if chosen.renew == "*":
        ROUNDING_FILE.write_text(f"{rounding()}\n", encoding="utf-8")
    return pytest.main([str(HERE), "-q", *rest])


if __name__ == "__main__":
    sys.exit(main())

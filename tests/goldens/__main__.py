"""Compare goldens, or write them again; see the package."""

import argparse
import os
import sys
from pathlib import Path

import pytest

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
    return pytest.main([str(HERE), "-q", *rest])


if __name__ == "__main__":
    sys.exit(main())

"""`python -m orthobandit` is the command `orthobandit`."""

import sys

from orthobandit.cli import main

if __name__ == "__main__":
    sys.exit(main())

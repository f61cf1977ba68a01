"""`orthobandit verify`: whether a certificate is valid, or which number is wrong."""

import argparse
import json

from orthobandit.cli._output import guide
from orthobandit.errors import FileFormatError
from orthobandit.verify import verify_file


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    guide(
        parser,
        "Recompute what the certificate of a decision or a log claims, from its plans and tallies. Nothing"
        " that the certificate concludes is taken on trust. With --head, also check that it continues the"
        " log whose head was published earlier.",
        {
            "a decision that an experiment wrote": "verify decision.json",
            "what `analyse --save` wrote, for a program": "verify certificate.json --json",
            "against what `Experiment.head` returned last week": 'verify decision.json --head "37:1f6c…"',
        },
        ["The exit code is 0 if it is valid and 1 if not; what is wrong is listed number by number."],
    )
    parser.add_argument("file", metavar="FILE", help="what `Certificate.write` or `analyse --save` wrote")
    parser.add_argument("--head", metavar="NUMBER:HASH", help="a head of the log that was published earlier")
    parser.add_argument("--json", action="store_true", help="print the verdict as JSON")


# Problems that are printed: those at which it begins, and what they make of the claim.
SHOWN_FIRST = 10
SHOWN_LAST = 5


def run(options: argparse.Namespace) -> int:
    """Verify and print; return the exit code."""
    try:
        verdict = verify_file(options.file, options.head)
    except OSError as error:
        raise FileFormatError(f"{options.file} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise FileFormatError(f"{options.file} is not a certificate: {error}") from None
    if options.json:
        report = {"valid": verdict.valid, "claim": verdict.claim, "problems": verdict.problems}
        report["head"] = verdict.head
        print(json.dumps(report, indent=2, ensure_ascii=False))
    elif verdict.valid:
        print(f"valid: {verdict.claim}")
        print(f"head {verdict.head}")
    else:
        print(f"NOT valid (claimed: {verdict.claim})")
        # One wrong number makes all that follow from it wrong: what was claimed comes last and is kept.
        first = verdict.problems[:SHOWN_FIRST]
        last = verdict.problems[SHOWN_FIRST:][-SHOWN_LAST:]
        left = len(verdict.problems) - len(first) - len(last)
        more = [f"… and {left:,} more (--json lists all)"] if left else []
        for problem in [*first, *more, *last]:
            print(f"  {problem}")
    return 0 if verdict.valid else 1

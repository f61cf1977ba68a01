"""`orthobandit demo-traffic`: made-up visitors, for a first look at the service."""

import argparse
import os

from orthobandit._files import optional_package
from orthobandit.cli._words import whole

TOKEN = "ORTHOBANDIT_TOKEN"  # noqa: S105, the name of a variable


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = (
        "Play visitors of landing pages against a server: how many sign up drifts (a day's season in a"
        " minute, bursts), what came of them is told late, and of some nothing is ever heard. Ends when a"
        " page is declared the best."
    )
    parser.epilog = "example: orthobandit demo-traffic --serve"
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="the server (default: %(default)s)")
    parser.add_argument("--token", help=f"(default: the environment's {TOKEN})")
    parser.add_argument("--key", default="landing-page", help="of the experiment (default: %(default)s)")
    parser.add_argument("--rate", type=float, default=250.0, help="visitors a second (default: 250)")
    parser.add_argument("--seconds", type=float, help="at most so long (default: until a page is declared)")
    parser.add_argument("--seed", type=whole, default=0, help="of the visitors (default: 0)")
    parser.add_argument(
        "--serve", action="store_true", help="start a server of its own, in a temporary file, and serve on"
    )
    parser.add_argument("--port", type=int, default=8000, help="of that server (default: 8000)")


def run(options: argparse.Namespace) -> None:
    """Play visitors."""
    optional_package("httpx", "client", "made-up traffic")
    from orthobandit.service.demo.visitors import Visitors

    visitors = Visitors(options.rate, options.seed)
    if options.serve:
        for package in ("sqlalchemy", "fastapi", "uvicorn"):
            optional_package(package, "service", "the service")
        from orthobandit.service.demo.together import show

        show(visitors, port=options.port, seconds=options.seconds, say=_say)
        return
    from orthobandit.service.client import Client
    from orthobandit.service.demo.traffic import Traffic

    with Client(options.url, options.token or os.environ.get(TOKEN)) as client:
        Traffic(client, visitors, key=options.key, say=_say).play(options.seconds)


def _say(line: str) -> None:
    print(line, flush=True)

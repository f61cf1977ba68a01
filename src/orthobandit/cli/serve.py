"""`orthobandit serve`: experiments over HTTP."""

import argparse

from orthobandit._files import optional_package

MEANT = {"where": "db"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = (
        "Serve experiments over HTTP: ask which arm to show, tell what came of it, look at the report. The"
        " first start makes the database and prints a token. Ctrl-C or SIGTERM ends it in good order."
    )
    parser.epilog = "example: orthobandit serve --db postgresql+psycopg://user@host/database"
    parser.add_argument(
        "--db",
        metavar="FILE|URL",
        default="orthobandit.db",
        help="a SQLite file, or the URL of a database (default: orthobandit.db)",
    )
    parser.add_argument("--host", default="127.0.0.1", help="where to listen (default: this machine only)")
    parser.add_argument("--port", type=int, default=8000, help="(default: 8000)")
    parser.add_argument(
        "--no-auth", action="store_true", help="without tokens: everybody on this machine is an admin"
    )
    parser.add_argument(
        "--rate",
        type=float,
        default=10_000.0,
        help="requests a second of each token, or of each address without tokens; 0 for any number"
        " (default: 10000)",
    )
    parser.add_argument(
        "--log",
        choices=("json", "text", "none"),
        default="none",
        help="write a line of each request to stderr (default: errors alone)",
    )
    parser.add_argument(
        "--open-metrics", action="store_true", help="let this machine read /metrics without a token"
    )
    parser.add_argument(
        "--webhooks-anywhere",
        action="store_true",
        help="let webhooks go to http:// and to private networks (default: https:// and this machine)",
    )


def run(options: argparse.Namespace) -> None:
    """Serve until told to end."""
    for package in ("sqlalchemy", "fastapi", "uvicorn", "jinja2", "python_multipart", "prometheus_client"):
        optional_package(package, "service", "the service")
    from orthobandit.service.serving import serve

    serve(
        options.db,
        host=options.host,
        port=options.port,
        with_tokens=not options.no_auth,
        rate=options.rate,
        log=options.log,
        open_metrics=options.open_metrics,
        webhooks_anywhere=options.webhooks_anywhere,
        say=lambda line: print(line, flush=True),
    )

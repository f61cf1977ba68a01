"""How many files a stranger opens to follow a reward: four walks through the package.

    python -m benchmarks.reward_path            # the four counts, and whether they keep to their limits
    python -m benchmarks.reward_path --files    # with the files of each walk

The walks are one reward told over HTTP, the report of that experiment as JSON, one CSV file from its rows to
its page, and one simulated batch: the last batch is played, observed and decided on. Counted are files of the
package in which a function is called on the way, in any thread but that of the background work. Functions
are not compiled, so that those which usually are count as well. Neither files that are only imported nor
templates count. Most tells only add to sums; one that fills a batch of the policy goes further, and is shown
beside them.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import httpx
import numpy as np

import orthobandit
from orthobandit import SBE, AnytimeElimination, Policy, analyse, simulate
from orthobandit.service import create_app
from orthobandit.service.http.auth import Tokens
from orthobandit.service.registry import Registry
from orthobandit.simulation import one_hot
from orthobandit.simulation.player import Player

ROOT = Path(orthobandit.__file__).parent
# Most files that each walk should have.
LIMITS = {"HTTP tell": 22, "report": 30, "CSV to page": 40, "simulated batch": 22}
TELLS = 120  # enough for several batches of the policy and buckets of the health checks to be full
REPORTS = 5  # the dashboard looks at experiments once a second; one of these has no such look in it
BACKGROUND = {"keeper", "preparing", "orthobandit-keeping"}  # threads that no request waits for
UNCALLED = {"<module>", "<lambda>", "<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>"}


class Passed:
    """The files of the package in which functions are called while it is on."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.is_on = False
        self._names: dict[CodeType, str | None] = {}

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Note one call, as `sys.setprofile` tells it."""
        if event != "call" or not self.is_on or threading.current_thread().name in BACKGROUND:
            return
        code = frame.f_code
        if code not in self._names:
            self._names[code] = name_of(code)
        name = self._names[code]
        if name is not None:
            self.files.add(name)

    @contextmanager
    def everywhere(self) -> Iterator[None]:
        """Look at this thread, and at all that are started meanwhile."""
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    @contextmanager
    def walk(self) -> Iterator[None]:
        """Note the files of what is called within, and of nothing before."""
        self.files = set()
        self.is_on = True
        try:
            yield
        finally:
            self.is_on = False


def name_of(code: CodeType) -> str | None:
    """Return the file of a function of the package; None for others, and for modules as they are imported."""
    # Jinja compiles templates to functions as well; they are not code that anybody reads as such.
    is_ours = code.co_filename.startswith(str(ROOT)) and code.co_filename.endswith(".py")
    return str(Path(code.co_filename).relative_to(ROOT)) if is_ours and code.co_name not in UNCALLED else None


def walk_service(folder: Path) -> dict[str, set[str]]:
    """Return the files of one tell, as most tells are, and of the report afterwards."""
    where = folder / "live.db"
    registry = Registry(where)
    token = Tokens(registry).make("admin")[1]
    registry.close()
    passed = Passed()
    with passed.everywhere():
        return asyncio.run(_walk_requests(create_app(where), token, passed))


async def _walk_requests(app: Any, token: str, passed: Passed) -> dict[str, set[str]]:
    headers = {"Authorization": f"Bearer {token}"}
    transport = httpx.ASGITransport(app)
    tells = Counter[frozenset[str]]()
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(
            transport=transport, base_url="http://here", headers=headers, timeout=600
        ) as client,
    ):
        body = {"key": "page", "arms": ["old", "new"], "rewards": [0, 1]}
        (await client.post("/v1/experiments", json=body)).raise_for_status()
        place = "/v1/experiments/page"
        for number in range(TELLS):
            asked = await client.post(f"{place}/ask", json={"unit": f"visitor {number}"})
            told = {"id": asked.raise_for_status().json()["id"], "reward": float(number % 3 == 0)}
            with passed.walk():
                (await client.post(f"{place}/tell", json=told)).raise_for_status()
            tells[frozenset(passed.files)] += 1
        reports = []
        for _ in range(REPORTS):
            with passed.walk():
                (await client.get(f"{place}/report")).raise_for_status()
            reports.append(passed.files)
    every = set[str]().union(*tells)
    usual = set(tells.most_common(1)[0][0])
    return {"HTTP tell": usual, "HTTP tell that fills a batch": every, "report": min(reports, key=len)}


def walk_log(folder: Path) -> dict[str, set[str]]:
    """Return the files that rows of a CSV file pass through until they are a page."""
    rng = np.random.default_rng(0)
    rows = [
        f"{hour},{('old', 'new')[arm]},{np.sin(hour / 5) + 0.3 * arm + rng.normal():.4f}"
        for hour in range(100)
        for arm in rng.integers(0, 2, 20)
    ]
    path = folder / "log.csv"
    path.write_text("\n".join(["hour,page,reward", *rows]))
    passed = Passed()
    with passed.everywhere(), passed.walk():
        found = analyse(path, arm="page", reward="reward", time="hour", split="equal")
        page = found.html()
    assert "new" in page
    return {"CSV to page": passed.files}


def walk_batch(policy: Policy[Any]) -> set[str]:
    """Return the files that the last rewards of a simulation with three arms pass through."""
    passed = Passed()
    environment = one_hot([0.0, 0.0, 2.0])
    steps = {Player.play.__code__, type(policy).observe.__code__, type(policy).decide.__code__}
    first = Player.play.__code__

    def look(frame: FrameType, event: str, what: object) -> None:
        # Only within these three: what prepares the simulation and sums it up is no part of a batch.
        if frame.f_code in steps and event == "call":
            if frame.f_code is first:
                passed.files = set()
            passed.is_on = True
        passed(frame, event, what)
        if frame.f_code in steps and event == "return":
            passed.is_on = False

    sys.setprofile(look)
    try:
        found = simulate(policy, environment, horizon=20_000, replications=1, seed=1, stop_when_declared=True)
    finally:
        sys.setprofile(None)
    assert found.declared[0] == environment.best
    return passed.files


def measure() -> dict[str, set[str]]:
    """Return the files of every walk."""
    with tempfile.TemporaryDirectory() as name:
        walks = walk_service(Path(name)) | walk_log(Path(name))
    walks["simulated batch"] = walk_batch(AnytimeElimination(delta=0.1))
    walks["simulated batch of SBE"] = walk_batch(SBE(delta=0.1))
    return walks


def show(walks: dict[str, set[str]], *, with_files: bool, say: Callable[[str], None] = print) -> None:
    """Print the counts, and the files if they are wanted."""
    for walk, files in walks.items():
        limit = f" (at most {LIMITS[walk]} wanted)" if walk in LIMITS else ""
        say(f"{walk}: {len(files)} files{limit}")
        for name in sorted(files) if with_files else ():
            say(f"  {name}")


def main() -> None:
    """Print the walks; in a process without compiled functions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--files", action="store_true", help="print the files of each walk")
    given = parser.parse_args()
    if os.environ.get("NUMBA_DISABLE_JIT") != "1":
        command = [sys.executable, "-m", "benchmarks.reward_path", *sys.argv[1:]]
        subprocess.run(command, check=True, env={**os.environ, "NUMBA_DISABLE_JIT": "1"})
        return
    warnings.simplefilter("ignore", RuntimeWarning)  # whole numbers that wrap around, as they should
    show(measure(), with_files=given.files)


if __name__ == "__main__":
    main()

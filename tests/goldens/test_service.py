"""The API's description, its answers, and every page of the dashboard."""

import asyncio
import json
import re

import httpx
import pytest

from goldens.experiments import KEY, RULES, Clock, arms, play, play_personal, rates
from goldens.harness import check, golden_cases, page_text, plain_json
from orthobandit import Experiment, Guardrail, Metric, Personalised
from orthobandit.service import create_app

FOLDER = "service"
PAGES = {
    "list": "/dashboard",
    "a winner": "/dashboard/experiments/winner",
    "a winner, trail": "/dashboard/experiments/winner/trail",
    "a winner, stop": "/dashboard/experiments/winner/stop",
    "a winner, retire": "/dashboard/experiments/winner/retire?arm=B",
    "a winner, report": "/dashboard/experiments/winner/report.html",
    "going on": "/dashboard/experiments/going",
    "going on, charts": "/dashboard/experiments/going/charts",
    "a guardrail": "/dashboard/experiments/guarded",
    "personalised": "/dashboard/experiments/personal",
    "new": "/dashboard/new",
    "not found": "/dashboard/experiments/nosuch",
}
ANSWERS = {
    "openapi": "/openapi.json",
    "experiments": "/v1/experiments",
    "experiment": "/v1/experiments/winner",
    "report": "/v1/experiments/winner/report",
    "report, personalised": "/v1/experiments/personal/report",
    "plan": "/v1/experiments/going/plan",
    "problem": "/v1/experiments/nosuch",
}
# What differs between two servers that hold the same: secrets of sessions, and when they began.
VARYING = {
    r'data-version="\w+"': 'data-version="<hash>"',
    r"\b1(7[7-9]|[89]\d)\d{7}\.\d+": '"<time>"',
    r"<td>\d+ \w+ \d\d:\d\d:\d\d</td>": "<td><time></td>",
    r"here since [-\d]+ [:\d]+ UTC": "here since <time>",
    r'(name="form_token" value=")\w+': r"\1<token>",
    r"\b[\d,]+ (second|minute|hour|day|week|month|year)s? ago": "<time> ago",
    r"\?v=[\w.]+": "?v=<version>",
}


def fill(where):
    """Begin experiments of several kinds in a database."""

    def begun(name, policy=None, **options):
        clock = Clock()
        experiment = Experiment.create(where, arms(3), policy, name=name, key=KEY, clock=clock, **options)
        return experiment, clock

    experiment, clock = begun("winner", rewards=(0, 1), holdout=0.1)
    play(experiment, rates(0.2, 0.3, 0.8), 25, clock=clock)
    experiment.close()
    experiment, clock = begun("going", rewards="unknown")
    play(experiment, rates(0.3, 0.35, 0.4), 10, clock=clock)
    experiment.pause()
    experiment.close()
    metrics, rails = [Metric("crash", rewards=(0, 1))], [Guardrail("crash")]
    experiment, clock = begun("guarded", rewards=(0, 1), metrics=metrics, guardrails=rails)
    play(experiment, rates(0.3, 0.4, 0.8), 15, clock=clock, metrics={"crash": rates(0.15, 0.15, 0.8)})
    experiment.close()
    experiment, clock = begun("personal", Personalised(["mobile", "hour"], RULES, rewards=(0, 1)))
    play_personal(experiment, 5, clock=clock)
    experiment.close()


async def fetch(where, paths, **options):
    """Return what a server answers, by address."""
    app = create_app(where, **options)
    client = httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://127.0.0.1", timeout=600, follow_redirects=True
    )
    async with app.router.lifespan_context(app), client:
        return {path: await client.get(path) for path in paths}


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    where = tmp_path_factory.mktemp("goldens") / "all.db"
    fill(where)
    return asyncio.run(fetch(where, [*PAGES.values(), *ANSWERS.values()], with_tokens=False))


def steady(text):
    """Return a page without what differs between servers."""
    for pattern, words in VARYING.items():
        text = re.sub(pattern, words, text)
    return text


@pytest.mark.parametrize("name", golden_cases(FOLDER, PAGES))
def test_page(name, answers):
    answer = answers[PAGES[name]]
    if answer.headers["content-type"].startswith("application/json"):
        text = steady(plain_json(answer.json()))
    else:
        text = page_text(steady(answer.text))
    check({f"{FOLDER}/{name}.html": f"{answer.status_code} {answer.headers['content-type']}\n{text}"})


@pytest.mark.parametrize("name", golden_cases(FOLDER, ["login"]))
def test_login(name, tmp_path):
    address = "/dashboard/login"
    page = asyncio.run(fetch(tmp_path / "all.db", [address]))[address]
    check({f"{FOLDER}/{name}.html": page_text(steady(page.text))})


@pytest.mark.parametrize("name", golden_cases(FOLDER, ANSWERS))
def test_answer(name, answers):
    answer = answers[ANSWERS[name]]
    head = f"{answer.status_code} {answer.headers['content-type']}"
    check({f"{FOLDER}/{name}.json": f"{head}\n{plain_json(json.loads(steady(answer.text)))}"})

"""Draws at the edge: plans that are handed out, exposures that come back, and the clients for both."""

import json
import shutil
import subprocess

import httpx
import numpy as np
import pytest

from experiment_samples import outcomes_of
from inside.experiment import EdgePlan
from orthobandit import ArmSet, Experiment, Personalised
from orthobandit.errors import ClosedError, ParameterError, ServiceError
from orthobandit.service import Client, EdgeClient, create_app
from orthobandit.service.api.edge import SOURCE, minify
from service_samples import is_problem, running, served, token_of

THREE = {"key": "page", "arms": ["a", "b", "c"], "rewards": [0, 1]}
HERE = "/v1/experiments/page"


@pytest.fixture
def place(tmp_path):
    """Yield the file of a running server, its address, and a token with the role edge."""
    where = tmp_path / "all.db"
    with running(create_app(where)) as address:
        with Client(address, token_of(where)) as admin:
            admin.create(**THREE)
        yield where, address, token_of(where, "edge")


@pytest.fixture
def http(place):
    _, address, token = place
    with httpx.Client(base_url=address, headers={"Authorization": f"Bearer {token}"}) as client:
        yield client


def body_of(http, units, rewards=None):
    plan = EdgePlan.from_json(http.get(f"{HERE}/plan").json())
    arms = [plan.draw(unit).arm for unit in units]
    return {"plan": plan.plan, "units": units, "arms": arms, "rewards": rewards}


def test_a_plan_is_sent_again_only_when_it_has_changed(place, http):
    first = http.get(f"{HERE}/plan")
    assert first.headers["cache-control"] == "private, max-age=60"
    assert first.json()["probabilities"] == pytest.approx([1 / 3] * 3)
    assert first.json()["labels"] == ["a", "b", "c"]
    tag = {"If-None-Match": first.headers["etag"]}
    same = http.get(f"{HERE}/plan", headers=tag)
    assert (same.status_code, same.content) == (304, b"")
    assert same.headers["cache-control"] == "private, max-age=60"
    with Client(place[1], token_of(place[0])) as admin:
        admin.retire("page", "c")
    other = http.get(f"{HERE}/plan", headers=tag)
    assert (other.status_code, other.json()["plan"]) == (200, 2)
    assert other.json()["salt"] != first.json()["salt"]


def test_salts_go_to_the_edge_alone(tmp_path):
    where = tmp_path / "all.db"
    with served(where) as http:
        http.post("/v1/experiments", json={**THREE, "holdout": 0.1})
        plan = http.get(f"{HERE}/plan").json()
        secrets = [plan["salt"], plan["holdout_salt"]]
        http.post(f"{HERE}/exposures", json=body_of(http, ["ann"], [1]))
        for kind in ("", "/report", "/certificate", "/export"):
            assert not any(secret in http.get(HERE + kind).text for secret in secrets)
        for role in ("ask-tell", "read"):
            token = http.post("/v1/tokens", json={"role": role}).json()["token"]
            answer = http.get(f"{HERE}/plan", headers={"Authorization": f"Bearer {token}"})
            assert is_problem(answer, 403, "forbidden")


def test_exposures_are_taken_or_refused_one_by_one(http):
    body = body_of(http, ["ann", "bob", "cid", "dan"], [1, None, 7, 0])
    body["arms"][3] = (body["arms"][3] + 1) % 3
    answer = http.post(f"{HERE}/exposures", json=body).json()
    assert (answer["taken"], answer["known"], answer["told"]) == (3, 0, 1)
    reward, arm = answer["refused"]
    assert (reward["index"], reward["pointer"]) == (2, "#/rewards/2")
    assert reward["type"] == "urn:orthobandit:problem:reward"
    assert (arm["index"], arm["pointer"]) == (3, "#/arms/3")
    assert arm["type"] == "urn:orthobandit:problem:conflict"
    again = http.post(f"{HERE}/exposures", json=body).json()
    assert (again["taken"], again["known"], again["told"]) == (0, 3, 1)
    named = {**body, "rewards": {"reward": [1, 0, 7, 0]}}
    refused = http.post(f"{HERE}/exposures", json=named).json()["refused"]
    assert [one["pointer"] for one in refused] == ["#/rewards/reward/2", "#/arms/3"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"plan": 9}, "plan=9 was never in force"),
        ({"plan": "1"}, "#/plan: "),
        ({"units": []}, "#/units: "),
        ({"units": ["a", 3]}, "#/units/1: "),
        ({"arms": [-1]}, "#/arms/0: "),
        ({"arms": [0, 1]}, "must be whole numbers of arms"),
        ({"rewards": {"sale": [1]}}, "'sale' is not a metric"),
        ({"rewards": [1, 2]}, "reward has 2 values for 1 units"),
        ({"more": 1}, "#/more: "),
    ],
)
def test_bodies_that_cannot_be_used_are_named(http, change, words):
    answer = http.post(f"{HERE}/exposures", json={**body_of(http, ["ann"]), **change})
    assert answer.status_code == 422
    assert words in answer.json()["detail"]


def test_experiments_of_older_releases_cannot_be_drawn_elsewhere(tmp_path):
    where = tmp_path / "all.db"
    Experiment.create(where, ArmSet.one_hot(2), rewards=(0, 1), name="page", key="0" * 32).close()
    with served(where) as http:
        assert is_problem(http.get(f"{HERE}/plan"), 409, "conflict")


def told(admin, key="page"):
    """Return how many proposals there are, and of how many a reward was told, settled or not."""
    report = admin.report(key)
    return report["proposals"], report["settled"] + report["metrics"][0]["provisional"]


def test_the_python_client_draws_posts_and_rewards(place):
    where, address, token = place
    now = [0.0]
    with EdgeClient(address, token, "page", most=3, every=5.0, clock=lambda: now[0]) as edge:
        draws = [edge.draw(f"user-{k}") for k in range(2)]
        edge.reward(draws[0], 1.0)
        edge.reward(draws[1], 0.0)
        with Client(address, token_of(where)) as admin:
            assert admin.report("page")["proposals"] == 0
            draws.append(edge.draw("user-2"))  # the third draw posts
            assert told(admin) == (3, 2)
            edge.draw("user-3")
            now[0] += 5.0
            edge.draw("user-4")  # the clock posts
            assert admin.report("page")["proposals"] == 5
            admin.retire("page", draws[0].label)
            now[0] += 60.0
            assert edge.draw("user-5").plan > draws[0].plan
            edge.reward(draws[2], 1.0)
            edge.flush()
            assert told(admin) == (6, 3)
        assert edge.refused == []
        edge.reward(draws[0]._replace(arm=(draws[0].arm + 1) % 3), 1.0)
        edge.flush()
        assert [one["unit"] for one in edge.refused] == ["user-0"]


def test_nothing_is_lost_or_counted_twice_while_the_server_is_away(tmp_path):
    where, options = tmp_path / "all.db", {"retries": 0, "clock": (lambda: now[0])}
    now = [0.0]
    settings = {"rewards": (0, 9), "window": "7d", "add": True, "name": "page"}
    Experiment.create(where, ArmSet.one_hot(3), **settings).close()
    with running(create_app(where)) as address:
        edge = EdgeClient(address, token_of(where, "edge"), "page", **options)
        sold = edge.draw("ann")
        edge.reward(sold, 4.0)
    with pytest.raises(ServiceError, match="could not be reached"):
        edge.flush()
    now[0] += 100.0
    assert edge.draw("bob").plan == sold.plan  # the old plan will do for a while
    now[0] += 4000.0
    with pytest.raises(ServiceError, match="could not be reached"):
        edge.draw("cid")
    with running(create_app(where)) as address:
        other = EdgeClient(address, token_of(where, "edge"), "page", **options)
        other._posts, other._queue = edge._posts * 2, edge._queue  # the answer of the first was lost
        other.close()
    edge._client.close()
    with Experiment.open(where, name="page") as experiment:
        assert experiment.report().proposals == 2
        assert [one.rewards for one in outcomes_of(experiment)] == [{"reward": 4.0}, {}]


def test_who_is_refused_hears_why(place):
    where, address, token = place
    with Client(address, token_of(where)) as admin, EdgeClient(address, token, "page") as edge:
        admin.pause("page")
        with pytest.raises(ClosedError, match="paused"):
            edge.draw("ann")


def run_node(tmp_path, script, *arguments):
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    (tmp_path / "edge.mjs").write_text(minify(SOURCE.read_text(encoding="utf-8")), encoding="utf-8")
    (tmp_path / "main.mjs").write_text(script, encoding="utf-8")
    command = [node, str(tmp_path / "main.mjs"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


ALL_ARMS = """
import { readFileSync } from "node:fs"
import { armOf } from "./edge.mjs"
const { plan, units } = JSON.parse(readFileSync(process.argv[2]))
console.log(JSON.stringify(units.map(unit => armOf(plan, unit))))
"""


@pytest.mark.parametrize("count", [10_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_javascript_and_python_draw_the_same_arms(tmp_path, count):
    experiment = Experiment.memory(ArmSet.one_hot(7), rewards=(0, 1), holdout=0.05, key="3" * 64)
    plan, rng = experiment.edge_plan(), np.random.default_rng(0)
    odd = [
        "é",
        "日本語",
        "👩‍🔬",
        "x" * 126,
        "x" * 127,
        "x" * 128,
        "ü" * 200,
        "👩" * 200,
        " ",
        "\u2028",
        '"\\',
    ]
    units = odd + [f"{rng.integers(2**62):x}"[: 1 + k % 16] + f"-{k}" for k in range(count - len(odd))]
    (tmp_path / "plan.json").write_text(json.dumps({"plan": vars(plan), "units": units}))
    theirs = run_node(tmp_path, ALL_ARMS, str(tmp_path / "plan.json"))
    assert theirs == [plan.draw(unit).arm for unit in units]
    # A blank unit can be drawn, but not asked for.
    proposals = experiment.ask_many(units=[unit for unit in units if unit.strip()])
    asked = [arm for arm, unit in zip(theirs, units, strict=True) if unit.strip()]
    assert asked == [one.arm for one in proposals]
    share = np.bincount(theirs, minlength=7) / len(units)
    assert share == pytest.approx([0.05 + 0.95 / 7] + [0.95 / 7] * 6, abs=1.6 / count**0.5)


EACH_ARM = """
import { readFileSync } from "node:fs"
import { armOf, sharesOf } from "./edge.mjs"
const { plan, units, contexts } = JSON.parse(readFileSync(process.argv[2]))
const arms = units.map((unit, k) => armOf(plan, unit, contexts[k]))
let missing = ""
try { armOf(plan, "ann", { hour: 1 }) } catch (error) { missing = error.message }
console.log(JSON.stringify({ arms, shares: contexts.map(one => sharesOf(plan.personal, one)), missing }))
"""


@pytest.mark.parametrize(
    ("arms", "rounds", "count"),
    [(3, 60, 2_000), pytest.param(3, 400, 100_000, marks=pytest.mark.slow)]
    + [pytest.param(arms, 1100, 10_000, marks=pytest.mark.slow) for arms in (2, 5, 9)],
)
def test_javascript_and_python_draw_the_same_personal_arms(tmp_path, arms, rounds, count):
    policy = Personalised(["mobile", "hour"], rewards=(0, 1))
    experiment = Experiment.memory(ArmSet.one_hot(arms), policy, holdout=0.05, key="3" * 64)
    rng = np.random.default_rng(0)

    def visitors(size):
        return [{"mobile": float(rng.random() < 0.5), "hour": 3.0 * rng.normal()} for _ in range(size)]

    for _ in range(0, rounds, 20):
        contexts = visitors(20)
        shown = experiment.ask_many(20, context=contexts)
        served = [
            0.2 + 0.5 * (one.arm == given["mobile"]) for one, given in zip(shown, contexts, strict=True)
        ]
        experiment.tell_many([one.id for one in shown], (rng.random(20) < served).astype(float))
    if arms > 2:
        experiment.retire(arms - 1)
    plan = experiment.edge_plan()
    units = [f"unit {k}" for k in range(count)]
    contexts = visitors(count)
    sent = {"plan": {**vars(plan), "personal": plan.personal.to_json()}, "units": units, "contexts": contexts}
    (tmp_path / "plan.json").write_text(json.dumps(sent))
    theirs = run_node(tmp_path, EACH_ARM, str(tmp_path / "plan.json"))
    # Every operation is fixed by IEEE 754: the probabilities are the same to the last bit.
    assert theirs["shares"] == plan.personal.shares(contexts).tolist()
    draws = [plan.draw(unit, one) for unit, one in zip(units, contexts, strict=True)]
    assert theirs["arms"] == [one.arm for one in draws]
    assert "mobile" in theirs["missing"]
    some = slice(0, 500)
    exposed = experiment.expose(plan.plan, units[some], theirs["arms"][some], context=contexts[some])
    assert (exposed.taken, exposed.refused) == (500, [])


CLIENT = """
import { edge } from "./edge.mjs"
const [address, token] = process.argv.slice(2)
const page = edge(address, token, "page", 4)
const draws = []
for (const unit of ["ann", "bob", "cid"]) draws.push(await page.draw(unit))
page.reward(draws[0], 1)
page.reward(draws[1], 0)
await page.flush()
page.reward(draws[2], 0.5)
page.reward({ ...draws[0], arm: (draws[0].arm + 1) % 3 }, 1)
await page.flush()
const broken = edge(address, "ob_no_token", "page")
const error = await broken.draw("ann").catch(e => e.cause)
console.log(JSON.stringify({ draws, refused: page.refused, error }))
"""


def test_the_javascript_client_draws_posts_and_rewards(place, tmp_path):
    where, address, token = place
    said = run_node(tmp_path, CLIENT, address, token)
    assert [one["unit"] for one in said["draws"]] == ["ann", "bob", "cid"]
    assert all(one["label"] == "abc"[one["arm"]] for one in said["draws"])
    assert [one["unit"] for one in said["refused"]] == ["ann"]
    assert said["error"] == 401
    with Client(address, token_of(where)) as admin:
        assert told(admin) == (3, 3)


PERSONAL = """
import { edge } from "./edge.mjs"
const page = edge(...process.argv.slice(2), "personal")
const one = await page.draw("cid", { mobile: 1 })
await page.draw("dan", { mobile: 0 })
page.reward(one, 1)
const error = await page.draw("eve").catch(e => e.message)
await page.flush()
console.log(JSON.stringify({ refused: page.refused, error }))
"""


def test_clients_draw_by_the_context_of_a_visitor(place, tmp_path):
    where, address, token = place
    with Client(address, token_of(where)) as admin:
        admin.create(key="personal", arms=["a", "b"], rewards=(0, 1), context=["mobile"])
        with EdgeClient(address, token, "personal") as edge:
            first = edge.draw("ann", {"mobile": 1.0})
            edge.draw("bob", {"mobile": 0.0})
            edge.reward(first, 1.0)
            edge.flush()
            edge.reward(first, 1.0)
            with pytest.raises(ParameterError, match="context has no 'mobile'"):
                edge.draw("eve")
        assert edge.refused == []
        assert admin.report("personal")["proposals"] == 2
        said = run_node(tmp_path, PERSONAL, address, token)
        assert said["refused"] == []
        assert "mobile" in said["error"]
        # Of ann and cid; they settle once whoever was drawn before them has a reward.
        assert told(admin, "personal") == (4, 2)


def test_the_script_is_small_and_for_everybody(http):
    answer = httpx.get(f"{http.base_url}/edge.js")
    assert answer.headers["content-type"].startswith("text/javascript")
    assert answer.text == minify(SOURCE.read_text(encoding="utf-8"))
    assert len(answer.content) <= 5_100
    assert "//" not in answer.text

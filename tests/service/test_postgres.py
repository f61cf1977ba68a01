"""Several servers, one PostgreSQL."""

from itertools import count
from threading import Thread

import pytest
import sqlalchemy as sa

from experiment_samples import outcomes_of
from inside.experiment import MAX_KEPT_CONNECTIONS, SQLStore
from inside.service import Registry
from orthobandit import AnytimeElimination, ArmSet, Experiment
from orthobandit.testing import check_store
from release_samples import Clock, check_shared
from service_samples import TWO, is_problem, served

SALES = "/v1/experiments/sales"
SUMS = {**TWO, "key": "sales", "rewards": [0, 1000], "window": "7d", "add": True}


def test_experiments_keep_the_contract_of_stores(postgres):
    numbers = count()
    check_store(lambda: SQLStore(postgres, f"contract {next(numbers)}"))


def test_two_servers_count_everything_once(postgres):
    with served(postgres) as one, served(postgres) as other:
        assert one.post("/v1/experiments", json=SUMS).status_code == 201
        assert is_problem(other.post("/v1/experiments", json=SUMS), 409, "exists")
        assert other.post(f"{SALES}/ask", json={"unit": "ann"}).json()["id"] == 1
        statuses = []

        def write(http, who):
            for number in range(10):
                # Half of the keys are sent to both servers.
                key = f"{number}" if number % 2 else f"{who} {number}"
                body, headers = {"id": 1, "reward": 1}, {"Idempotency-Key": key}
                statuses.append(http.post(f"{SALES}/tell", json=body, headers=headers).status_code)
                http.post(f"{SALES}/ask", json={"unit": f"user {number}"})

        threads = [Thread(target=write, args=(http, who)) for who, http in enumerate((one, other, one))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert statuses == [200] * 30
        assert one.get(f"{SALES}/report").json()["proposals"] == 11
        assert "ann" in other.get(f"{SALES}/export").text
    with Experiment.open(postgres, name="sales") as sales:
        [first, *_] = outcomes_of(sales)
        assert first.rewards == {"reward": 5 + 3 * 5}  # five common keys, and five of each thread
        assert sales.replay().is_equal


@pytest.mark.parametrize("shortest", [3, 23])
def test_servers_of_two_releases_share_an_experiment(postgres, shortest):
    name = f"rolling {shortest}"
    mine = Experiment.create(
        postgres, ArmSet.one_hot(3), rewards=(0, 1), clock=Clock(), key="5" * 64, name=name
    )
    check_shared(postgres, mine, shortest, name=name)


def test_tokens_are_good_on_every_server(postgres):
    with served(postgres) as one, served(postgres) as other:
        made = one.post("/v1/tokens", json={"role": "read"}).json()
        headers = {"Authorization": f"Bearer {made['token']}"}
        assert other.get("/v1/experiments", headers=headers).status_code == 200
        assert is_problem(other.post("/v1/experiments", json=SUMS, headers=headers), 403, "forbidden")


def connections(registry):
    with registry.reading() as connection:
        return connection.execute(sa.text("SELECT count(*) FROM pg_stat_activity")).scalar()


def test_experiments_share_their_connections(postgres):
    registry, other = Registry(postgres), Registry(postgres)
    before, arms, policy = connections(registry), ArmSet.one_hot(2), AnytimeElimination(rewards=(0, 1))
    made = [registry.create(f"shared-{number}", arms, policy) for number in range(MAX_KEPT_CONNECTIONS + 5)]
    for one in (*made, *made):
        one.tell(one.ask().id, 1.0)
    assert connections(registry) <= before + MAX_KEPT_CONNECTIONS + 1  # those kept, and one that reads
    assert registry._engine is other._engine
    registry.close()
    registry.close()
    assert "shared-0" in other.page(100)  # closing twice takes nothing from others
    other.close()


def test_what_is_looked_up_is_planned_for_the_table_as_it_is(postgres):
    registry = Registry(postgres)
    for _ in range(2):  # new, and given back once
        with registry.reading() as connection:
            assert connection.execute(sa.text("SHOW plan_cache_mode")).scalar() == "force_custom_plan"
    registry.close()


def test_a_server_takes_in_what_the_other_did_together(postgres):
    with served(postgres) as one, served(postgres) as other:
        assert one.post("/v1/experiments", json={**TWO, "key": "both"}).status_code == 201
        path, shown = "/v1/experiments/both", {}

        def visit(http, who):
            for number in range(20):
                unit = f"{number}" if number % 2 else f"{who} {number}"
                found = http.post(f"{path}/ask", json={"unit": unit}).json()
                assert shown.setdefault(unit, found["id"]) == found["id"]
                assert http.post(f"{path}/tell", json={"id": found["id"], "reward": 1}).status_code == 200

        threads = [Thread(target=visit, args=([one, other][who % 2], who)) for who in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(shown) == 10 + 6 * 10
    with Experiment.open(postgres, name="both") as both:
        assert both.report().settled == 70
        assert both.audit().passed
        assert both.replay().is_equal

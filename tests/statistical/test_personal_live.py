"""Intervals of rules in live personalised experiments hold at all times, however visitors are drawn.

Half of the visitors are drawn at the edge, by versions that may be old, and are posted in batches; rewards
come late. The level follows who comes, the last arm and the share of B in the newest version. Whoever sends
visitors has seen all rewards.
"""

import numpy as np
import pytest

from failure_rates import assert_kept
from orthobandit import ArmSet, Experiment, Metric, Personalised

pytestmark = [pytest.mark.statistical, pytest.mark.slow]

DELTA = 0.2
ARMS = ArmSet.one_hot(2, labels=["A", "B"])
RULES = {"B on telephones": "B if mobile >= 0.5 else A"}
MOST = 120
TURNS = 12
BATCH = 10


def gain_of_b(mobile):
    return 0.2 if mobile else -0.1


def ever_misses(seed):
    """Play an experiment; tell whether an interval of the objective or of the metric misses at some look."""
    rng = np.random.default_rng([seed, 17])
    now = [0.0]
    policy = Personalised(["mobile"], RULES, rewards=(0, 1), explore=0.3, delta=DELTA)
    experiment = Experiment.memory(
        ARMS,
        policy,
        window=1e6,
        metrics=[Metric("cost", rewards=(0, 1), delta=DELTA / 2)],
        key=f"{seed:064x}",
        clock=lambda: now[0],
    )
    waiting, contexts = [], []
    last = 0
    missed = False
    for turn in range(TURNS):
        now[0] += 35.0
        plan = experiment.edge_plan()
        share = plan.distribution({"mobile": 1.0})[1]
        mobile = float((experiment.report().personal.rules[2].gain or 0.0) > 0)
        own = [{"mobile": mobile if rng.random() < 0.5 else 1.0 - mobile} for _ in range(BATCH)]
        if turn % 2:
            draws = [plan.draw(f"{turn} {k}", one) for k, one in enumerate(own)]
            units = [one.unit for one in draws]
            taken = experiment.expose(plan.plan, units, [one.arm for one in draws], context=own)
            assert taken.taken == BATCH
            shown = [(experiment.known(unit), one) for unit, one in zip(units, own, strict=True)]
        else:
            shown = list(zip(experiment.ask_many(BATCH, context=own), own, strict=True))
        # The order of draws is that of the log.
        shown.sort(key=lambda one: one[0].id)
        contexts += [one["mobile"] for _, one in shown]
        for proposal, one in shown:
            level = 0.3 + 0.2 * one["mobile"] - 0.2 * share + 0.1 * last
            effect = gain_of_b(one["mobile"]) * proposal.arm
            values = {
                "reward": float(rng.random() < level + effect),
                "cost": float(rng.random() < level - effect),
            }
            waiting.append((proposal.id, values))
            last = proposal.arm
        rng.shuffle(waiting)
        told = [waiting.pop() for _ in range(int(len(waiting) * 0.7))]
        for number, values in told:
            experiment.tell(number, values)
        report = experiment.report()
        settled = np.array(contexts[: report.settled])
        if not len(settled):
            continue
        of_b = np.where(settled > 0.5, 0.2, -0.1)
        truths = (of_b.mean(), np.where(settled > 0.5, 0.2, 0.0).mean())
        metric = report.personal.metrics[0][1]
        for rules, sign in ((report.personal.rules, 1.0), (metric, -1.0)):
            for rule, truth in zip(rules[1:], truths, strict=True):
                missed |= not rule.low <= sign * truth <= rule.high
    assert experiment.audit().passed
    return missed


def test_intervals_of_rules_hold_for_visitors_of_all_kinds():
    # The objective's rules have half of δ, and the metric as much.
    assert_kept(
        DELTA,
        lambda first, runs: sum(ever_misses(first + run) for run in range(runs)),
        most=MOST,
        false_alarm=1e-6,
    )

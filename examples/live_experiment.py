"""Run an experiment of your own: visitors one by one, a report a day, and an end as soon as it is sure.

Four sign-up pages. A visitor signs up or not; how many do moves with the hour, and falls from week to week.
`one_day` is all that a website needs: a forecast before the page is drawn, a residual after the visitor has
left, and two pieces of plain JSON that survive the night.
"""

import json
from typing import Any

import numpy as np

from orthobandit import AnytimeElimination, ArmSet, Tally
from orthobandit._random import stream
from orthobandit.estimate import AutoRegression

PAGES = ArmSet.one_hot(4, labels=["as it is", "short form", "with video", "short form + video"])
LIFT = np.array([0.0, 0.06, 0.02, 0.12])
VISITORS = 2_000  # a day
BASELINE = AutoRegression(lags=4)
POLICY = AnytimeElimination(delta=0.05, rewards=(0.0, 1.0), baseline=BASELINE, goal="earn")


def signs_up(visitor: int, page: int) -> float:
    """Return 1.0 or 0.0: what only the world knows."""
    hour, week = 2.0 * np.pi * visitor / VISITORS, visitor / (7 * VISITORS)
    chance = 0.35 + 0.12 * np.sin(hour) - 0.05 * min(week, 2.0) + LIFT[page]
    return float(stream(0, "sign-up", visitor).random() < chance)


def one_day(
    state: dict[str, Any], memory: dict[str, Any] | None, day: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Serve a day's visitors; the policy's state and the forecaster's memory go in and out as plain JSON."""
    now, level, chance = POLICY.load(PAGES, state), BASELINE.forecaster(memory), stream(0, "pages", day)
    visitor, end = day * VISITORS, (day + 1) * VISITORS
    while visitor < end:
        plan = POLICY.plan(now)
        size = int(np.minimum(plan.rounds, end - visitor))
        pages, residuals = np.zeros(size, dtype=np.int64), np.zeros(size)
        for k in range(size):
            forecast = level.forecast(visitor)
            page = int(chance.choice(len(PAGES), p=plan.probabilities))
            reward = signs_up(visitor, page)
            pages[k] = page
            residuals[k] = plan.residuals(pages[[k]], [reward], [forecast.value])[0]
            level.learn(forecast, reward - plan.values[page])
            visitor += 1
        now = POLICY.observe(now, plan, Tally.of(pages, residuals, len(PAGES)))
    return POLICY.dump(now), level.to_json()


def report(state: dict[str, Any], day: int) -> bool:
    """Print what is known after a day; return whether a page has been declared best."""
    now = POLICY.load(PAGES, state)
    known, bounds = POLICY.decide(now), POLICY.upper_bounds(now)
    best = PAGES.labels[int(known.leader)]
    others = [
        f"{label} ≤ {bounds[place, known.leader]:.2f}"
        for place, label in enumerate(PAGES.labels)
        if known.active[place] and place != known.leader
    ]
    if known.declared >= 0:
        print(f"day {day + 1}: {best!r} is the best, with {known.certainty:.0%} certainty ({known.mode})")
        return True
    print(f"day {day + 1}: {best!r} leads; better than it by at most: {', '.join(others)}")
    return False


def main() -> None:
    """Run until a page is declared."""
    state, memory, day = POLICY.dump(POLICY.start(PAGES)), None, 0
    while True:
        state, memory = one_day(state, memory, day)
        state = json.loads(json.dumps(state))  # the night: nothing but text is left
        if report(state, day):
            return
        day += 1


if __name__ == "__main__":
    main()

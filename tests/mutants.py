"""Mutants of certificates: one field changed, and the hashes made to fit again."""

from copy import deepcopy

import numpy as np
from tests.unit.experiment.recorded import fed, held_back

from certified_logs import certified, found_in, rows_of, saved
from orthobandit import ArmSet
from orthobandit.verify import digest, heads, verify
from personal_samples import begun, play

CLOSE = 2e-6  # of claimed numbers, relative to 1, themselves and their interval, that are the same claim


def _dropped_and_retired(mode, **settings):
    """Return an experiment with late and restricted rounds, an arm that left and one that came."""
    run = fed(mode, means=(0.2, 0.3, 0.6), rounds=150, late=3, **settings)
    run.restricted([0, 1], 4)
    run.until(200)
    run.retire(0, rounds=3)
    run.until(350)
    if int(run.state.declared) < 0:
        run.extend(ArmSet.one_hot(4), (0.2, 0.3, 0.6, 0.3), rounds=3)
    return run.until(700).certificate().to_json()


# Small certificates of every kind, by name.
KINDS = {
    "bounded": lambda: fed("bounded", means=(0.2, 0.3, 0.8), late=3, rounds=400).certificate().to_json(),
    "bounded, arms come and go": lambda: _dropped_and_retired("bounded"),
    "sub-Gaussian": lambda: fed("sub-Gaussian", means=(0.2, 1.9), late=3, rounds=400).certificate().to_json(),
    "asymptotic": lambda: (
        fed("asymptotic", means=(0.2, 0.3, 1.2), late=3, rounds=400).certificate().to_json()
    ),
    "asymptotic, arms come and go": lambda: _dropped_and_retired("asymptotic", epsilon=0.5),
    # Replayed by the rules of very many arms, which a few show as well.
    "bounded, very many arms": lambda: _dropped_and_retired("bounded", pairs="leader"),
    "asymptotic, very many arms": lambda: _dropped_and_retired("asymptotic", epsilon=0.5, pairs="leader"),
    "held back by a guardrail": lambda: held_back().certificate().to_json(),
    "exact log": lambda: saved(
        found_in(
            rows_of(4, [[0.6, 0.2, 0.2]], gaps=[0.0, 0.5, 0.1], rows=600, hours=16, zero_one=True),
            bounds=(-0.5, 1.25),
            reference="1",
        )
    ),
    "asymptotic log": lambda: saved(
        found_in(rows_of(3, [[0.5, 0.3, 0.2]], gaps=[0.0, 0.9, -0.5], rows=600, hours=16))
    ),
    "log of several plans": lambda: certified("an arm that comes late"),
    "rules": lambda: play(begun(), 60).certificate().to_json(),
    "asymptotic rules": lambda: play(begun(rewards=None, holdout=0.2), 240).certificate().to_json(),
}


def reseal(document):
    """Return a document with the head and the digest that fit it."""
    *_, head = heads(document["settings"], document["entries"])
    document["head"] = head
    document["digest"] = digest(document)
    return document


def places(value, path=()):
    """Yield the path of every part of nested lists and dictionaries."""
    if path:
        yield path
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(part, (*path, key))


def mutate(value, siblings, rng):
    """Return another value of one part, of any kind that a forger may try."""
    if isinstance(value, bool) or value is None:
        return rng.choice([0, 1, 0.5]).item()
    if isinstance(value, int):
        return rng.choice([value + 1, value - 1, 0, 2 * value + 1, -value - 1]).item()
    if isinstance(value, float):
        step = 10.0 ** rng.uniform(-7, 0)
        return rng.choice([value + step, value - step, value * (1 + step), -value, 0.0, 10 * value]).item()
    if isinstance(value, str):
        others = [one for one in siblings if isinstance(one, str) and one != value]
        return rng.choice([*others, f"{value}'"]).item()
    if isinstance(value, list) and value:
        at = int(rng.integers(len(value)))
        change = rng.choice(["drop", "repeat", "swap"])
        if change == "drop":
            return value[:at] + value[at + 1 :]
        if change == "repeat":
            return value[: at + 1] + deepcopy(value[at:])
        other = int(rng.integers(len(value)))
        swapped = list(value)
        swapped[at], swapped[other] = swapped[other], swapped[at]
        return swapped
    if isinstance(value, dict) and value:
        gone = rng.choice(list(value))
        return {key: part for key, part in value.items() if key != gone}
    return [value]


def mutants(document, count, seed):
    """Yield so many mutants with the path of what was changed; every kind of field in its turn."""
    rng = np.random.default_rng(seed)
    kinds = {}
    for path in places({name: document[name] for name in ("settings", "entries", "claim")}):
        # Numbers of a list, and entries of one kind, are fields of one kind.
        kind = tuple("*" if isinstance(key, int) else key for key in path)
        if path[0] == "entries" and len(path) > 1:
            kind = (document["entries"][path[1]]["entry"], *kind)
        kinds.setdefault(kind, []).append(path)
    names = sorted(kinds)
    for turn in range(count):
        choice = kinds[names[turn % len(names)]]
        *way, last = choice[int(rng.integers(len(choice)))]
        mutant = deepcopy(document)
        place = mutant
        for key in way:
            place = place[key]
        siblings = list(place.values()) if isinstance(place, dict) else place
        place[last] = mutate(place[last], siblings, rng)
        yield (*way, last), reseal(mutant)


def is_same(claim, other, width=0.0):
    """Tell whether two claims are the same, but for rounding, which is relative to the width of intervals."""
    if isinstance(claim, dict) and isinstance(other, dict):
        ends = [claim.get("low"), claim.get("high")]
        width = ends[1] - ends[0] if all(isinstance(end, float) for end in ends) else width
        return list(claim) == list(other) and all(is_same(claim[key], other[key], width) for key in claim)
    if isinstance(claim, list) and isinstance(other, list):
        return len(claim) == len(other) and all(
            is_same(part, counterpart, width) for part, counterpart in zip(claim, other, strict=True)
        )
    if isinstance(claim, float) and isinstance(other, float | int):
        return abs(claim - other) <= CLOSE * (1 + abs(claim) + width)
    return claim == other


def survivors(document, count, seed):
    """Return paths of mutants that are valid and claim something else, and how many were refused."""
    claim, found, refused = verify(document).claim, [], 0
    for path, mutant in mutants(document, count, seed):
        verdict = verify(mutant)
        if not verdict.valid:
            refused += 1
        elif verdict.claim != claim or not is_same(document["claim"], mutant["claim"]):
            found.append(path)
    return found, refused

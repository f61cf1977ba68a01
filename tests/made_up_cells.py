"""Tables that cells of the report might return, made up from their labels: for tests of what is drawn."""

import json
from zlib import crc32

import numpy as np


def made_up(cell):
    """Return the tables of a cell, of the sizes and magnitudes of real ones, without running it."""
    task = cell.task.partition(":")[2]
    text = " ".join(
        str(cell.labels.get(name, "")) for name in ("policy", "variant", "scale", "mode", "design")
    )
    # Sorted, so that the same settings in another order lead to the same tables.
    content = json.dumps([cell.settings, cell.labels], sort_keys=True)
    rng = np.random.default_rng(crc32(content.encode()))
    # Each policy at each tuning is so many times as good or bad as another, on every arm set alike.
    level = 10 ** np.random.default_rng(crc32(text.encode())).uniform(0.0, 2.0)
    return MAKERS[task](cell, level, rng)


def runs(cell, level, rng):
    """Return curves like √t, and declarations after about 1/gap² rounds."""
    settings = cell.settings
    labels = cell.labels
    count = settings["replications"]
    marks = np.array(settings["checkpoints"])
    gap = labels.get("gap") or 0.5
    size = labels.get("dimension", 5) * np.log(labels.get("count", 10))
    luck = rng.lognormal(0.0, 0.2, count)
    stop = level * 300 * size / gap**2 * luck
    regret = 3 * level * luck[:, np.newaxis] * np.sqrt(size * np.minimum(marks, stop[:, np.newaxis]))
    numbers = np.arange(count)
    return {
        "runs": {
            "replication": numbers.tolist(),
            "regret": regret[:, -1].tolist(),
            "stop_time": stop.astype(int).tolist(),
            "declared": [0] * count,
            "is_correct": [True] * count,
            "plans": (2 + np.log2(1 / gap) + rng.integers(0, 2, count)).astype(int).tolist(),
        },
        "curves": {
            "replication": np.repeat(numbers, marks.size).tolist(),
            "round": np.tile(marks, count).tolist(),
            "regret": regret.reshape(-1).tolist(),
        },
    }


def errors(cell, level, rng):
    """Return errors that fall like 1/√t."""
    marks = np.array(cell.settings["checkpoints"])
    count = cell.settings["replications"]
    found = (3 + level / 20) * rng.lognormal(0.0, 0.3, (count, marks.size)) / np.sqrt(marks)
    return {
        "errors": {
            "replication": np.repeat(np.arange(count), marks.size).tolist(),
            "round": np.tile(marks, count).tolist(),
            "error": found.reshape(-1).tolist(),
            "pair_error": (1.5 * found).reshape(-1).tolist(),
        }
    }


def pac(cell, level, rng):
    """Return errors at the rounds of each ε."""
    rows = errors(cell, level, rng)["errors"]
    count = cell.settings["replications"]
    epsilons = np.tile(cell.settings["epsilons"], count).tolist()
    return {"pac": {**rows, "epsilon": epsilons, "gap": [0.0] * len(epsilons)}}


def misses(cell, _level, rng):
    """Return runs of which a few failed."""
    count = cell.settings["replications"]
    first = np.where(rng.random(count) < 0.02, 1000, -1)
    return {
        "misses": {
            "replication": list(range(count)),
            "first_miss": first.tolist(),
            "last_miss": first.tolist(),
            "rounds": [cell.settings["horizon"]] * count,
        }
    }


def survivors(cell, _level, rng):
    """Return how near survivors came to the limit."""
    count = cell.settings["replications"]
    excess = rng.uniform(0.1, 1.005, count).tolist()
    return {"survivors": {"replication": list(range(count)), "excess": excess, "phases": [5] * count}}


def floors(cell, _level, rng):
    """Return squared errors in units of the lower bound."""
    marks = np.array(cell.settings["checkpoints"])
    count = cell.settings["replications"]
    return {
        "floors": {
            "replication": np.repeat(np.arange(count), marks.size).tolist(),
            "round": np.tile(marks, count).tolist(),
            "excess": rng.gamma(5.0, 0.2, count * marks.size).tolist(),
        }
    }


def moments(cell, _level, rng):
    """Return constants of second moments a little above 1."""
    count = cell.settings["replications"]
    return {
        "moments": {
            "replication": list(range(count)),
            "rounds": [1000] * count,
            "constant": rng.uniform(1.05, 1.4, count).tolist(),
            "reference": [1.6] * count,
            "centred": [1.8] * count,
        }
    }


def ellipsoids(cell, _level, rng):
    """Return errors as a whole that grow like √d, and errors of a contrast that do not."""
    count = cell.settings["replications"]
    d = cell.labels["dimension"]
    return {
        "ellipsoids": {
            "replication": list(range(count)),
            "norm": (np.sqrt(d) * rng.lognormal(0.0, 0.2, count)).tolist(),
            "radius": [15 * np.sqrt(d)] * count,
            "contrast": np.abs(rng.standard_normal(count)).tolist(),
        }
    }


def personalised(cell, level, rng):
    """Return the regret of personalised runs."""
    count = cell.settings["replications"]
    regret = (300 * level * rng.lognormal(0.0, 0.2, count)).tolist()
    return {"runs": {"replication": list(range(count)), "regret": regret}}


MAKERS = {
    "play_personalised": personalised,
    "run_policy": runs,
    "track_error": errors,
    "track_pac": pac,
    "track_misses": misses,
    "track_survivors": survivors,
    "track_floor": floors,
    "track_moments": moments,
    "track_ellipsoid": ellipsoids,
}

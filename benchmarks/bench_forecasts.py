"""How closely baselines follow levels that move: mean squared error of forecasts, noise of variance 1.

``python -m benchmarks.bench_forecasts`` takes a few seconds. A row is a level, a column a baseline, with its
error in rounds 200 to 2,000 and after. What a forecast misses by is added to the variance of every interval.
"""

import numpy as np

from orthobandit._foundation.compile import compiled
from orthobandit.estimate import ARMA, AutoRegression, ExponentialMean, RunningMean
from orthobandit.estimate.forecast.compiled import Recipe, forecast, fresh_memory, learn, regressor_count

ROUNDS, EARLY, LATE = 20_000, 200, 2_000
BASELINES = {
    "mean": RunningMean(),
    "exponential": ExponentialMean(),
    "16 lags": AutoRegression(),
    "32 lags": AutoRegression(lags=32),
    "ARMA (default)": ARMA(),
}


def levels(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return levels (ROUNDS,) by name."""
    t = np.arange(ROUNDS)
    steps, noise = rng.normal(size=(2, ROUNDS))
    wanders = np.zeros(ROUNDS)
    for i in range(1, ROUNDS):
        wanders[i] = 0.9 * wanders[i - 1] + 0.5 * noise[i]
    return {
        "constant": np.zeros(ROUNDS),
        "ν¹ = 1 + sin(2t)": 1 + np.sin(2 * t),
        "two waves": np.sin(2 * t) + np.sin(0.7 * t),
        "day and week": np.sin(2 * np.pi * t / 500) + np.sin(2 * np.pi * t / 3500),
        "alternating, growing": np.log(t + 2) * (-1.0) ** t / 3,
        "square wave of 14": np.where((t // 7) % 2, 1.0, -1.0),
        "wave that changes pitch": np.where((t // 2500) % 2, np.sin(2 * t), np.sin(0.5 * t)),
        "steps of 1,500": np.where((t // 1500) % 2, 1.0, -1.0),
        "trend": t / 2000,
        "random walk": np.cumsum(0.05 * steps),
        "AR(1), 0.9": wanders,
    }


@compiled
def squared_errors(recipe: Recipe, memory: np.ndarray, level: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Return what each forecast (n,) misses the level by, squared; `seen` is the level with noise."""
    out, regressors = np.zeros(level.size), np.zeros(regressor_count(recipe))
    for t in range(level.size):
        out[t] = (forecast(recipe, memory, t, regressors) - level[t]) ** 2
        learn(recipe, memory, regressors, seen[t])
    return out


def main() -> None:
    """Print the table."""
    rng = np.random.default_rng(0)
    print(f"{'level':<26}" + "".join(f"{name:>18}" for name in BASELINES))
    for name, level in levels(rng).items():
        seen, cells = level + rng.normal(size=ROUNDS), []
        for baseline in BASELINES.values():
            missed = squared_errors(baseline.recipe, fresh_memory(baseline.recipe), level, seen)
            cells.append(f"{missed[EARLY:LATE].mean():.3f} {missed[LATE:].mean():.3f}")
        print(f"{name:<26}" + "".join(f"{cell:>18}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()

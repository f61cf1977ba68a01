"""How much of the variance each baseline and the covariates saved."""

from orthobandit._types import Array
from orthobandit.logs.residuals import Series


class Savings:
    """Sums of squared residuals that were left, beside what a running mean leaves of the same rows."""

    def __init__(self) -> None:
        self._left: dict[str, float] = {}
        self._beside: dict[str, float] = {}

    def add(self, series: Series, ahead: dict[str, float], values: Array) -> None:
        """Take in a bucket: every baseline's forecast of its level."""
        usual = series.squared(ahead["mean"], values)
        for name, forecast in ahead.items():
            if name not in ("mean", "none"):
                self.beside(name, series.squared(forecast, values), usual)

    def beside(self, name: str, left: float, usual: float) -> None:
        """Take in squares that something left, and those without it."""
        self._left[name] = self._left.get(name, 0.0) + left
        self._beside[name] = self._beside.get(name, 0.0) + usual

    def shares(self) -> dict[str, float]:
        """Return the share saved by each; below 0 if it made things worse."""
        return {
            name: 1.0 - left / self._beside[name] if self._beside[name] > 0 else 0.0
            for name, left in self._left.items()
        }

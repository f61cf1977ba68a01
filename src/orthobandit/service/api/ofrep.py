"""Experiments as feature flags: the OpenFeature Remote Evaluation Protocol (OFREP).

A flag is an experiment, a variant is an arm, and the targeting key is the unit: every OpenFeature SDK asks
without knowing it. What fails is said in OFREP's words, by which SDKs fall back to the caller's default.
"""

from typing import Any

from orthobandit.errors import ClosedError, InputError, OrthobanditError, UnknownExperimentError
from orthobandit.estimate import CovariateRegression
from orthobandit.experiment import Experiment
from orthobandit.service.api.requests import LONGEST_NAME

TARGETING_KEY = "targetingKey"
MISSING = "TARGETING_KEY_MISSING"
INVALID = "INVALID_CONTEXT"
Flag = dict[str, Any]


class NotEvaluatedError(OrthobanditError):
    """A context that cannot be evaluated.

    Parameters
    ----------
    code : str
        OFREP's ``errorCode``.
    message : str
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def unit_of(context: dict[str, Any]) -> str:
    """Return the unit that a context is about."""
    unit = context.get(TARGETING_KEY)
    if unit is None or unit == "":
        raise NotEvaluatedError(MISSING, f"give the user or visitor as {TARGETING_KEY!r} in the context")
    if not isinstance(unit, str) or len(unit) > LONGEST_NAME or not unit.isprintable():
        raise NotEvaluatedError(
            INVALID, f"{TARGETING_KEY!r} must be printable text of at most {LONGEST_NAME} characters"
        )
    return unit


def evaluated(key: str, experiment: Experiment, context: dict[str, Any]) -> Flag:
    """Return a flag: the arm of the context's unit, drawn now if it has none."""
    proposal = experiment.ask(unit=unit_of(context), covariates=_covariates(experiment, context))
    return {
        "key": key,
        "value": proposal.label,
        "reason": "SPLIT",
        "variant": proposal.label,
        "metadata": {"proposal": proposal.id, "plan": proposal.plan, "held": bool(proposal.held)},
    }


def _covariates(experiment: Experiment, context: dict[str, Any]) -> dict[str, float] | None:
    """Return what the experiment forecasts from, out of the context's attributes."""
    baseline = getattr(experiment.settings.policy, "baseline", None)
    if not isinstance(baseline, CovariateRegression):
        return None
    found = {}
    for name in baseline.names:
        value = context.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
            raise NotEvaluatedError(INVALID, f"the context must have a number {name!r}, a covariate")
        found[name] = float(value)
    return found


def failure(key: str | None, error: OrthobanditError) -> Flag:
    """Return what OFREP says of a flag that cannot be evaluated."""
    if isinstance(error, NotEvaluatedError):
        code = error.code
    elif isinstance(error, UnknownExperimentError):
        code = "FLAG_NOT_FOUND"
    else:
        code = INVALID if isinstance(error, InputError) else "GENERAL"
    said = {"errorCode": code, "errorDetails": str(error)}
    return said if key is None else {"key": key, **said}


def all_evaluated(experiments: dict[str, Experiment], context: dict[str, Any]) -> list[Flag]:
    """Return the flags of all experiments that can be asked.

    Those that are paused or stopped are left out, and so are those that draw anew at every visit: SDKs ask
    for all flags again and again.
    """
    unit_of(context)
    flags = []
    for key, experiment in experiments.items():
        if not experiment.settings.sticky:
            continue
        try:
            flags.append(evaluated(key, experiment, context))
        except ClosedError:
            continue
        except (NotEvaluatedError, InputError) as error:
            flags.append(failure(key, error))
    return flags

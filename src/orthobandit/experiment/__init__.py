"""Live experiments: ask for an arm, tell its reward, and a log from which everything can be rebuilt."""

from orthobandit.estimate.follow.guardrails import Guardrail
from orthobandit.experiment.async_experiment import AsyncExperiment
from orthobandit.experiment.experiment import Experiment
from orthobandit.experiment.proposal import Proposal
from orthobandit.experiment.refusals import Refusal
from orthobandit.experiment.settings import Metric

__all__ = ["AsyncExperiment", "Experiment", "Guardrail", "Metric", "Proposal", "Refusal"]

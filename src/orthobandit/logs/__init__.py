"""Logs of finished experiments: effects with honest intervals, from one GROUP BY in the engine that holds it.

``question`` says which columns are what, ``reading`` asks the engine for ``cells``, and from these alone
``follow`` goes through time: ``levels`` are forecast, ``residuals`` tallied, gaps and ``scores`` estimated.
``effects``, ``metrics`` and ``segments`` say what that means; ``checks`` come before it, ``peers`` beside it,
and ``showing`` after it.
"""

from orthobandit.logs.analysis import analyse, analysis_of
from orthobandit.logs.question import Guardrail, Question, Ratio
from orthobandit.logs.results import Analysis

__all__ = ["Analysis", "Guardrail", "Question", "Ratio", "analyse", "analysis_of"]

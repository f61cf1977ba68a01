"""Logs of finished experiments: effects with honest intervals, from one GROUP BY in the engine that holds it.

``question`` says which columns are what, ``reading`` asks the engine for ``cells``, and from these alone
``follow`` estimates gaps and ``scores``. A ``walk`` along the ``timeline`` goes bucket by bucket where each
needs the one before, for forecasts of ``levels`` and ``values`` of arms; ``blocks`` of buckets are tallied at
once.
``effects``, ``metrics`` and ``segments`` say what that means; ``checks`` come before it, ``peers`` beside it,
and ``showing`` after it.
"""

from orthobandit.logs.analysis import analyse, analysis_of
from orthobandit.logs.question import Question, Ratio
from orthobandit.logs.results import Analysis

__all__ = ["Analysis", "Question", "Ratio", "analyse", "analysis_of"]

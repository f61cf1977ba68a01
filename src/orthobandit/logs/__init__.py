"""Logs of finished experiments: effects with honest intervals, from one GROUP BY in the engine that holds it.

``question`` says which columns are what; ``source`` reaches the table and ``buckets`` asks it for
``cells``. From these alone follow ``analysis``, ``diagnostics``, ``compare`` and ``value``.
"""

from orthobandit.logs.analysis import analyse, analysis_of
from orthobandit.logs.question import Guardrail, Question, Ratio
from orthobandit.logs.results import Analysis

__all__ = ["Analysis", "Guardrail", "Question", "Ratio", "analyse", "analysis_of"]

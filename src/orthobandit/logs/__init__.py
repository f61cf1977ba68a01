"""Logs of finished experiments: effects with honest intervals, from one GROUP BY in the engine that holds it.

``question`` says which columns are what, ``reading`` asks the engine for cells, and ``analysis`` follows each
metric through them (:mod:`orthobandit.estimate.follow`). ``checks`` come before any effect is shown;
``effects`` say what was found, as ``results``; ``peers`` are other methods beside ours; ``showing`` has text,
page and pictures; ``certificate`` is for whoever wants to recompute it.
"""

from orthobandit.logs.analysis import analyse, analysis_of, warehouse_sql
from orthobandit.logs.question import Quantile, Question, Ratio, Summary
from orthobandit.logs.results import Analysis

__all__ = ["Analysis", "Quantile", "Question", "Ratio", "Summary", "analyse", "analysis_of", "warehouse_sql"]

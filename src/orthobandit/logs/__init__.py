"""Logs of finished experiments: effects with honest intervals, from one GROUP BY in the engine that holds it.

``question`` names the columns and options, ``reading`` asks the engine for cells, and ``analysis`` follows
each metric through them (:mod:`orthobandit.estimate.follow`). ``checks`` run before any effect is shown;
``effects`` computes what was found, as ``results``; ``peers`` has other methods for comparison; ``showing``
has text, page and figures; ``certificate`` is for whoever wants to recompute the result.
"""

from orthobandit.logs.analysis import analyse, analysis_of, warehouse_sql
from orthobandit.logs.question import Quantile, Question, Ratio, Summary
from orthobandit.logs.results import Analysis

__all__ = ["Analysis", "Quantile", "Question", "Ratio", "Summary", "analyse", "analysis_of", "warehouse_sql"]

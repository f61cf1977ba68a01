"""From any source to cells: reach the table, check the question, ask the engine for one GROUP BY.

``source`` opens files, frames, databases and live experiments, ``formats`` logs that are no plain tables, and
``engine`` is how an opened log is asked. ``arguments`` refuses questions that a log cannot answer.
``group_by`` asks: ``rows`` names the columns, ``units`` gathers the rows of a unit, ``clock`` cuts time into
buckets, ``plans`` finds arms and distributions, and ``missing`` refuses values that are not there.
``summary`` makes cells of data that somebody has aggregated already.
"""

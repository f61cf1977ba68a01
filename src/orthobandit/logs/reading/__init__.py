"""From any source to cells: reach the table, check the question, ask the engine for one GROUP BY.

``source`` opens files, frames, databases and live experiments, ``formats`` logs that are no plain tables, and
``engine`` is how an opened log is asked. ``arguments`` refuses questions that a log cannot answer, and values
that are not there. ``group_by`` asks: ``rows`` names the columns and gathers the rows of a unit, ``clock``
cuts time into buckets, and ``plans`` finds arms and distributions. ``summary`` makes cells of data that
somebody has aggregated already; ``warehouse`` prints the GROUP BY for an engine that is not reached from
here, and reads what it returned.
"""

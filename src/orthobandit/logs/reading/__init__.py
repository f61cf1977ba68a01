"""From any source to cells: reach the table, check the question, ask the engine for one GROUP BY.

``source`` opens files (``csv_and_parquet``), frames, databases and live experiments; ``formats`` opens logs
that are no plain tables. ``arguments`` refuses questions that a log cannot answer, and missing values.
``group_by`` runs the query: ``rows`` names the columns and gathers the rows of a unit, ``clock`` cuts time
into buckets, and ``plans`` finds arms and distributions. ``rule_groups`` is the query for rules. ``summary``
makes cells from aggregated data; ``warehouse`` prints the query for an engine that cannot be reached from
here, and reads its result.
"""

"""From any source to cells: reach the table (``source``), check the question (``arguments``), one GROUP BY.

``buckets`` asks for it: ``rows`` names the columns, ``units`` gathers rows of one unit, ``clock`` cuts time,
``moments`` has the aggregates, ``plans`` the distributions. ``readers``, ``vowpal`` and ``formats`` know logs
that are no plain tables.
"""

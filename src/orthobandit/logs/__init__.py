"""Logs of finished experiments: effects with honest intervals, from one GROUP BY in the engine that holds it.

``question`` says which columns are what; ``source`` reaches the table and ``buckets`` asks it for
``cells``. From these alone follow ``analysis``, ``diagnostics``, ``compare`` and ``value``.
"""

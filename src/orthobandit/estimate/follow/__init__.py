"""One metric followed through time: forecast its level, take residuals from the forecast, add up evidence.

Before a draw the level of the metric is forecast from what came before, and the arms have values from what
came before. After it the residual, reward less forecast less value, is tallied by plan and arm, and tallies
are evidence on gaps between arms. A forecast that was made before its draw can be bad but not wrong: whatever
the baseline does, estimates are unbiased and intervals hold at all times at once.

There are two dialects.

- ``rounds``: live, one proposal after the other, as rewards settle in the order of draws. Forecasts come from
  :mod:`orthobandit.estimate.forecast.rounds`; ``guardrails`` judge what the intervals show.
- ``buckets``: a log, one bucket of time after the other, from a GROUP BY alone. ``cells`` holds that, puts it
  in the order of time, and keeps what was counted for a certificate; ``averages`` are over rounds.
  Forecasts come from :mod:`orthobandit.estimate.forecast.buckets`. ``by_row`` is for logs whose rows have
  distributions of their own.
"""

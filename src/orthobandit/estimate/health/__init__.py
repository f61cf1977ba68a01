"""Is the experiment what the inference takes it for: sample ratio, missing rewards, constant gaps."""

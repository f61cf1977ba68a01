"""Health checks of the assumptions behind the inference: sample ratio, missing rewards, constant gaps."""

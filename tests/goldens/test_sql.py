"""The GROUP BY of an analysis in every dialect."""

import pytest

from goldens.harness import check, golden_cases
from orthobandit.logs import Quantile, Ratio, warehouse_sql

FOLDER = "sql"
DIALECTS = (
    "athena",
    "bigquery",
    "clickhouse",
    "databricks",
    "duckdb",
    "mssql",
    "mysql",
    "postgres",
    "snowflake",
    "spark",
    "trino",
)
QUESTIONS = {
    "a split": {"split": "equal"},
    "by segment, with a covariate and a cap": {
        "split": "equal",
        "segment": "country",
        "covariates": ("before",),
        "caps": {"spent": 30.0},
        "bucket": "day",
    },
    "by user, with probabilities and metrics": {
        "probabilities": ("p_a", "p_b"),
        "unit": "user",
        "window": 86_400.0,
        "metrics": ("clicks",),
        "missing": "zero",
    },
    "plans, a ratio and a number for the time": {
        "plan": "plan",
        "plans": {"early": {"a": 0.5, "b": 0.5}, "late": {"a": 0.2, "b": 0.8}},
        "ratios": (Ratio("spent", "clicks"),),
        "time_unit": "ms",
        "types": {"at": "integer", "arm": "integer"},
    },
    "a quantile": {
        "split": "equal",
        "quantiles": (Quantile(0.9, thresholds=(1.0, 2.0, 5.0), metric="seconds"),),
    },
}


@pytest.mark.parametrize("name", golden_cases(FOLDER, DIALECTS))
def test_sql(name):
    texts = []
    for title, question in QUESTIONS.items():
        asked = {"arm": "arm", "reward": "spent", "time": "at", **question}
        try:
            sql = warehouse_sql("shop.visits", name, **asked)
        except ValueError as error:  # what a dialect has no words for
            sql = f"{type(error).__name__}: {error}"
        texts.append(f"-- {title}\n{sql}\n")
    check({f"{FOLDER}/{name}.sql": "\n".join(texts)})

-- a split
SELECT
  "t2"."bucket" AS "bucket",
  "t2"."arm" AS "arm",
  "t2"."n" AS "n",
  "t2"."s0" AS "s0",
  "t2"."low0" AS "low0",
  "t2"."high0" AS "high0",
  "t2"."there" AS "there",
  "t2"."q0_0" AS "q0_0",
  'be6644adae1d' AS "question"
FROM (
  SELECT
    "t1"."bucket" AS "bucket",
    "t1"."arm" AS "arm",
    COUNT(*) AS "n",
    SUM("t1"."x0") AS "s0",
    MIN("t1"."x0") AS "low0",
    MAX("t1"."x0") AS "high0",
    COUNT("t1"."x0") AS "there",
    SUM("t1"."x0" * "t1"."x0") AS "q0_0"
  FROM (
    SELECT
      "t0"."arm" AS "arm",
      "t0"."at" AS "when",
      "t0"."spent" AS "x0",
      CAST(FLOOR(CAST(toRelativeSecondNum("t0"."at") AS Nullable(Float64)) / 3600.0) AS Nullable(Int64)) AS "bucket"
    FROM "shop"."visits" AS "t0"
  ) AS "t1"
  GROUP BY
    "t1"."bucket",
    "t1"."arm"
) AS "t2"

-- by segment, with a covariate and a cap
SELECT
  "t2"."bucket" AS "bucket",
  "t2"."arm" AS "arm",
  "t2"."segment" AS "segment",
  "t2"."n" AS "n",
  "t2"."k0" AS "k0",
  "t2"."raw0" AS "raw0",
  "t2"."s0" AS "s0",
  "t2"."low0" AS "low0",
  "t2"."high0" AS "high0",
  "t2"."s1" AS "s1",
  "t2"."low1" AS "low1",
  "t2"."high1" AS "high1",
  "t2"."there" AS "there",
  "t2"."q0_0" AS "q0_0",
  "t2"."q0_1" AS "q0_1",
  "t2"."q1_1" AS "q1_1",
  'a5f9c7310f35' AS "question"
FROM (
  SELECT
    "t1"."bucket" AS "bucket",
    "t1"."arm" AS "arm",
    "t1"."segment" AS "segment",
    COUNT(*) AS "n",
    SUM(CAST(COALESCE("t1"."x0" > 30.0, FALSE) AS Nullable(Int32))) AS "k0",
    SUM("t1"."x0") AS "raw0",
    SUM(CASE WHEN "t1"."x0" > 30.0 THEN 30.0 ELSE "t1"."x0" END) AS "s0",
    MIN(CASE WHEN "t1"."x0" > 30.0 THEN 30.0 ELSE "t1"."x0" END) AS "low0",
    MAX(CASE WHEN "t1"."x0" > 30.0 THEN 30.0 ELSE "t1"."x0" END) AS "high0",
    SUM("t1"."x1") AS "s1",
    MIN("t1"."x1") AS "low1",
    MAX("t1"."x1") AS "high1",
    COUNT("t1"."x0" + "t1"."x1") AS "there",
    SUM(
      CASE WHEN "t1"."x0" > 30.0 THEN 30.0 ELSE "t1"."x0" END * CASE WHEN "t1"."x0" > 30.0 THEN 30.0 ELSE "t1"."x0" END
    ) AS "q0_0",
    SUM(CASE WHEN "t1"."x0" > 30.0 THEN 30.0 ELSE "t1"."x0" END * "t1"."x1") AS "q0_1",
    SUM("t1"."x1" * "t1"."x1") AS "q1_1"
  FROM (
    SELECT
      "t0"."arm" AS "arm",
      "t0"."country" AS "segment",
      "t0"."at" AS "when",
      "t0"."spent" AS "x0",
      "t0"."before" AS "x1",
      CAST(FLOOR(CAST(toRelativeSecondNum("t0"."at") AS Nullable(Float64)) / 86400.0) AS Nullable(Int64)) AS "bucket"
    FROM "shop"."visits" AS "t0"
  ) AS "t1"
  GROUP BY
    "t1"."bucket",
    "t1"."arm",
    "t1"."segment"
) AS "t2"

-- by user, with probabilities and metrics
SELECT
  "t6"."bucket" AS "bucket",
  "t6"."arm" AS "arm",
  "t6"."p0" AS "p0",
  "t6"."p1" AS "p1",
  "t6"."n" AS "n",
  "t6"."s0" AS "s0",
  "t6"."low0" AS "low0",
  "t6"."high0" AS "high0",
  "t6"."m0" AS "m0",
  "t6"."s1" AS "s1",
  "t6"."low1" AS "low1",
  "t6"."high1" AS "high1",
  "t6"."m1" AS "m1",
  "t6"."q0_0" AS "q0_0",
  "t6"."q1_1" AS "q1_1",
  "t6"."last" AS "last",
  "t6"."rows" AS "rows",
  "t6"."several" AS "several",
  "t6"."nameless" AS "nameless",
  '95760d41b9a1' AS "question"
FROM (
  SELECT
    "t5"."bucket" AS "bucket",
    "t5"."arm" AS "arm",
    "t5"."p0" AS "p0",
    "t5"."p1" AS "p1",
    COUNT(*) AS "n",
    SUM("t5"."x0") AS "s0",
    MIN("t5"."x0") AS "low0",
    MAX("t5"."x0") AS "high0",
    SUM("t5"."m0") AS "m0",
    SUM("t5"."x1") AS "s1",
    MIN("t5"."x1") AS "low1",
    MAX("t5"."x1") AS "high1",
    SUM("t5"."m1") AS "m1",
    SUM("t5"."x0" * "t5"."x0") AS "q0_0",
    SUM("t5"."x1" * "t5"."x1") AS "q1_1",
    MAX("t5"."last") AS "last",
    SUM("t5"."rows") AS "rows",
    SUM("t5"."several") AS "several",
    SUM("t5"."nameless") AS "nameless"
  FROM (
    SELECT
      "t4"."unit" AS "unit",
      "t4"."arm" AS "arm",
      "t4"."p0" AS "p0",
      "t4"."p1" AS "p1",
      "t4"."when" AS "when",
      "t4"."m0" AS "m0",
      "t4"."x0" AS "x0",
      "t4"."m1" AS "m1",
      "t4"."x1" AS "x1",
      "t4"."rows" AS "rows",
      "t4"."several" AS "several",
      "t4"."last" AS "last",
      CAST(isNull("t4"."unit") AS Nullable(Int32)) AS "nameless",
      CAST(FLOOR(CAST(toRelativeSecondNum("t4"."when") AS Nullable(Float64)) / 3600.0) AS Nullable(Int64)) AS "bucket"
    FROM (
      SELECT
        "t3"."unit" AS "unit",
        maxIf("t3"."arm", "t3"."place" = 0) AS "arm",
        maxIf("t3"."p0", "t3"."place" = 0) AS "p0",
        maxIf("t3"."p1", "t3"."place" = 0) AS "p1",
        maxIf("t3"."when", "t3"."place" = 0) AS "when",
        maxIf("t3"."m0", "t3"."when" <= (
          "t3"."begin" + INTERVAL '86400' SECOND
        )) AS "m0",
        sumIf("t3"."x0", "t3"."when" <= (
          "t3"."begin" + INTERVAL '86400' SECOND
        )) AS "x0",
        maxIf("t3"."m1", "t3"."when" <= (
          "t3"."begin" + INTERVAL '86400' SECOND
        )) AS "m1",
        sumIf("t3"."x1", "t3"."when" <= (
          "t3"."begin" + INTERVAL '86400' SECOND
        )) AS "x1",
        COUNT(*) AS "rows",
        CAST(MAX("t3"."arm") <> MIN("t3"."arm") AS Nullable(Int32)) AS "several",
        CAST(toRelativeSecondNum(MAX("t3"."when")) AS Nullable(Float64)) AS "last"
      FROM (
        SELECT
          "t2"."arm" AS "arm",
          "t2"."p0" AS "p0",
          "t2"."p1" AS "p1",
          "t2"."unit" AS "unit",
          "t2"."when" AS "when",
          "t2"."m0" AS "m0",
          "t2"."x0" AS "x0",
          "t2"."m1" AS "m1",
          "t2"."x1" AS "x1",
          "t2"."place" AS "place",
          MIN("t2"."when") OVER (PARTITION BY "t2"."unit" ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS "begin"
        FROM (
          SELECT
            "t1"."arm" AS "arm",
            "t1"."p0" AS "p0",
            "t1"."p1" AS "p1",
            "t1"."unit" AS "unit",
            "t1"."when" AS "when",
            "t1"."m0" AS "m0",
            "t1"."x0" AS "x0",
            "t1"."m1" AS "m1",
            "t1"."x1" AS "x1",
            ROW_NUMBER() OVER (
              PARTITION BY "t1"."unit"
              ORDER BY "t1"."when" ASC, "t1"."arm" ASC, "t1"."p0" ASC, "t1"."p1" ASC
              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
            ) - 1 AS "place"
          FROM (
            SELECT
              "t0"."arm" AS "arm",
              "t0"."p_a" AS "p0",
              "t0"."p_b" AS "p1",
              "t0"."user" AS "unit",
              "t0"."at" AS "when",
              CAST(NOT (
                COALESCE((
                  "t0"."spent" - "t0"."spent"
                ) = 0, FALSE)
              ) AS Nullable(Int32)) AS "m0",
              CASE
                WHEN COALESCE((
                  "t0"."spent" - "t0"."spent"
                ) = 0, FALSE)
                THEN "t0"."spent"
                ELSE 0.0
              END AS "x0",
              CAST(NOT (
                COALESCE((
                  "t0"."clicks" - "t0"."clicks"
                ) = 0, FALSE)
              ) AS Nullable(Int32)) AS "m1",
              CASE
                WHEN COALESCE((
                  "t0"."clicks" - "t0"."clicks"
                ) = 0, FALSE)
                THEN "t0"."clicks"
                ELSE 0.0
              END AS "x1"
            FROM "shop"."visits" AS "t0"
          ) AS "t1"
        ) AS "t2"
      ) AS "t3"
      GROUP BY
        "t3"."unit"
    ) AS "t4"
  ) AS "t5"
  GROUP BY
    "t5"."bucket",
    "t5"."arm",
    "t5"."p0",
    "t5"."p1"
) AS "t6"

-- plans, a ratio and a number for the time
SELECT
  "t3"."bucket" AS "bucket",
  "t3"."arm" AS "arm",
  "t3"."plan" AS "plan",
  "t3"."n" AS "n",
  "t3"."s0" AS "s0",
  "t3"."low0" AS "low0",
  "t3"."high0" AS "high0",
  "t3"."s1" AS "s1",
  "t3"."low1" AS "low1",
  "t3"."high1" AS "high1",
  "t3"."there" AS "there",
  "t3"."q0_0" AS "q0_0",
  "t3"."q1_1" AS "q1_1",
  "t3"."q0_1" AS "q0_1",
  '5f6c3a6980e2' AS "question"
FROM (
  SELECT
    "t2"."bucket" AS "bucket",
    "t2"."arm" AS "arm",
    "t2"."plan" AS "plan",
    COUNT(*) AS "n",
    SUM("t2"."x0") AS "s0",
    MIN("t2"."x0") AS "low0",
    MAX("t2"."x0") AS "high0",
    SUM("t2"."x1") AS "s1",
    MIN("t2"."x1") AS "low1",
    MAX("t2"."x1") AS "high1",
    COUNT("t2"."x0" + "t2"."x1") AS "there",
    SUM("t2"."x0" * "t2"."x0") AS "q0_0",
    SUM("t2"."x1" * "t2"."x1") AS "q1_1",
    SUM("t2"."x0" * "t2"."x1") AS "q0_1"
  FROM (
    SELECT
      "t1"."arm" AS "arm",
      "t1"."plan" AS "plan",
      "t1"."when" AS "when",
      "t1"."x0" AS "x0",
      "t1"."x1" AS "x1",
      CAST(FLOOR("t1"."when" / 3600.0) AS Nullable(Int64)) AS "bucket"
    FROM (
      SELECT
        "t0"."arm" AS "arm",
        "t0"."plan" AS "plan",
        CASE
          WHEN COALESCE(
            (
              CAST("t0"."at" AS Nullable(Float64)) - CAST("t0"."at" AS Nullable(Float64))
            ) = 0,
            FALSE
          )
          THEN CAST("t0"."at" AS Nullable(Float64)) / 1000.0
          ELSE NULL
        END AS "when",
        "t0"."spent" AS "x0",
        "t0"."clicks" AS "x1"
      FROM "shop"."visits" AS "t0"
    ) AS "t1"
  ) AS "t2"
  GROUP BY
    "t2"."bucket",
    "t2"."arm",
    "t2"."plan"
) AS "t3"

-- a quantile
SELECT
  "t2"."bucket" AS "bucket",
  "t2"."arm" AS "arm",
  "t2"."n" AS "n",
  "t2"."s0" AS "s0",
  "t2"."low0" AS "low0",
  "t2"."high0" AS "high0",
  "t2"."s1" AS "s1",
  "t2"."low1" AS "low1",
  "t2"."high1" AS "high1",
  "t2"."there" AS "there",
  "t2"."q0_0" AS "q0_0",
  "t2"."q1_1" AS "q1_1",
  "t2"."b0_0" AS "b0_0",
  "t2"."b0_1" AS "b0_1",
  "t2"."b0_2" AS "b0_2",
  '5da267803239' AS "question"
FROM (
  SELECT
    "t1"."bucket" AS "bucket",
    "t1"."arm" AS "arm",
    COUNT(*) AS "n",
    SUM("t1"."x0") AS "s0",
    MIN("t1"."x0") AS "low0",
    MAX("t1"."x0") AS "high0",
    SUM("t1"."x1") AS "s1",
    MIN("t1"."x1") AS "low1",
    MAX("t1"."x1") AS "high1",
    COUNT("t1"."x0" + "t1"."x1") AS "there",
    SUM("t1"."x0" * "t1"."x0") AS "q0_0",
    SUM("t1"."x1" * "t1"."x1") AS "q1_1",
    SUM(CAST(COALESCE("t1"."x1" <= 1.0, FALSE) AS Nullable(Int32))) AS "b0_0",
    SUM(CAST(COALESCE("t1"."x1" <= 2.0, FALSE) AS Nullable(Int32))) AS "b0_1",
    SUM(CAST(COALESCE("t1"."x1" <= 5.0, FALSE) AS Nullable(Int32))) AS "b0_2"
  FROM (
    SELECT
      "t0"."arm" AS "arm",
      "t0"."at" AS "when",
      "t0"."spent" AS "x0",
      "t0"."seconds" AS "x1",
      CAST(FLOOR(CAST(toRelativeSecondNum("t0"."at") AS Nullable(Float64)) / 3600.0) AS Nullable(Int64)) AS "bucket"
    FROM "shop"."visits" AS "t0"
  ) AS "t1"
  GROUP BY
    "t1"."bucket",
    "t1"."arm"
) AS "t2"

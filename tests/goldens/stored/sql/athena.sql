-- a split
SELECT
  "t2"."bucket",
  "t2"."arm",
  "t2"."n",
  "t2"."s0",
  "t2"."low0",
  "t2"."high0",
  "t2"."there",
  "t2"."q0_0",
  'be6644adae1d' AS "question"
FROM (
  SELECT
    "t1"."bucket",
    "t1"."arm",
    COUNT(*) AS "n",
    SUM("t1"."x0") AS "s0",
    MIN("t1"."x0") AS "low0",
    MAX("t1"."x0") AS "high0",
    COUNT("t1"."x0") AS "there",
    SUM("t1"."x0" * "t1"."x0") AS "q0_0"
  FROM (
    SELECT
      "t0"."arm",
      "t0"."at" AS "when",
      "t0"."spent" AS "x0",
      CAST(FLOOR(CAST(TO_UNIXTIME("t0"."at") AS DOUBLE) / CAST(3600.0 AS DOUBLE)) AS BIGINT) AS "bucket"
    FROM "shop"."visits" AS "t0"
  ) AS "t1"
  GROUP BY
    1,
    2
) AS "t2"

-- by segment, with a covariate and a cap
SELECT
  "t2"."bucket",
  "t2"."arm",
  "t2"."segment",
  "t2"."n",
  "t2"."k0",
  "t2"."raw0",
  "t2"."s0",
  "t2"."low0",
  "t2"."high0",
  "t2"."s1",
  "t2"."low1",
  "t2"."high1",
  "t2"."there",
  "t2"."q0_0",
  "t2"."q0_1",
  "t2"."q1_1",
  'a5f9c7310f35' AS "question"
FROM (
  SELECT
    "t1"."bucket",
    "t1"."arm",
    "t1"."segment",
    COUNT(*) AS "n",
    SUM(CAST(COALESCE("t1"."x0" > CAST(30.0 AS DOUBLE), FALSE) AS INTEGER)) AS "k0",
    SUM("t1"."x0") AS "raw0",
    SUM(IF("t1"."x0" > CAST(30.0 AS DOUBLE), CAST(30.0 AS DOUBLE), "t1"."x0")) AS "s0",
    MIN(IF("t1"."x0" > CAST(30.0 AS DOUBLE), CAST(30.0 AS DOUBLE), "t1"."x0")) AS "low0",
    MAX(IF("t1"."x0" > CAST(30.0 AS DOUBLE), CAST(30.0 AS DOUBLE), "t1"."x0")) AS "high0",
    SUM("t1"."x1") AS "s1",
    MIN("t1"."x1") AS "low1",
    MAX("t1"."x1") AS "high1",
    COUNT("t1"."x0" + "t1"."x1") AS "there",
    SUM(
      IF("t1"."x0" > CAST(30.0 AS DOUBLE), CAST(30.0 AS DOUBLE), "t1"."x0") * IF("t1"."x0" > CAST(30.0 AS DOUBLE), CAST(30.0 AS DOUBLE), "t1"."x0")
    ) AS "q0_0",
    SUM(
      IF("t1"."x0" > CAST(30.0 AS DOUBLE), CAST(30.0 AS DOUBLE), "t1"."x0") * "t1"."x1"
    ) AS "q0_1",
    SUM("t1"."x1" * "t1"."x1") AS "q1_1"
  FROM (
    SELECT
      "t0"."arm",
      "t0"."country" AS "segment",
      "t0"."at" AS "when",
      "t0"."spent" AS "x0",
      "t0"."before" AS "x1",
      CAST(FLOOR(CAST(TO_UNIXTIME("t0"."at") AS DOUBLE) / CAST(86400.0 AS DOUBLE)) AS BIGINT) AS "bucket"
    FROM "shop"."visits" AS "t0"
  ) AS "t1"
  GROUP BY
    1,
    2,
    3
) AS "t2"

-- by user, with probabilities and metrics
SELECT
  "t6"."bucket",
  "t6"."arm",
  "t6"."p0",
  "t6"."p1",
  "t6"."n",
  "t6"."s0",
  "t6"."low0",
  "t6"."high0",
  "t6"."m0",
  "t6"."s1",
  "t6"."low1",
  "t6"."high1",
  "t6"."m1",
  "t6"."q0_0",
  "t6"."q1_1",
  "t6"."last",
  "t6"."rows",
  "t6"."several",
  "t6"."nameless",
  '95760d41b9a1' AS "question"
FROM (
  SELECT
    "t5"."bucket",
    "t5"."arm",
    "t5"."p0",
    "t5"."p1",
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
      "t4"."unit",
      "t4"."arm",
      "t4"."p0",
      "t4"."p1",
      "t4"."when",
      "t4"."m0",
      "t4"."x0",
      "t4"."m1",
      "t4"."x1",
      "t4"."rows",
      "t4"."several",
      "t4"."last",
      CAST("t4"."unit" IS NULL AS INTEGER) AS "nameless",
      CAST(FLOOR(CAST(TO_UNIXTIME("t4"."when") AS DOUBLE) / CAST(3600.0 AS DOUBLE)) AS BIGINT) AS "bucket"
    FROM (
      SELECT
        "t3"."unit",
        MAX("t3"."arm") FILTER(WHERE
          "t3"."place" = 0) AS "arm",
        MAX("t3"."p0") FILTER(WHERE
          "t3"."place" = 0) AS "p0",
        MAX("t3"."p1") FILTER(WHERE
          "t3"."place" = 0) AS "p1",
        MAX("t3"."when") FILTER(WHERE
          "t3"."place" = 0) AS "when",
        MAX("t3"."m0") FILTER(WHERE
          "t3"."when" <= (
            "t3"."begin" + INTERVAL '86400' SECOND
          )) AS "m0",
        SUM("t3"."x0") FILTER(WHERE
          "t3"."when" <= (
            "t3"."begin" + INTERVAL '86400' SECOND
          )) AS "x0",
        MAX("t3"."m1") FILTER(WHERE
          "t3"."when" <= (
            "t3"."begin" + INTERVAL '86400' SECOND
          )) AS "m1",
        SUM("t3"."x1") FILTER(WHERE
          "t3"."when" <= (
            "t3"."begin" + INTERVAL '86400' SECOND
          )) AS "x1",
        COUNT(*) AS "rows",
        CAST(MAX("t3"."arm") <> MIN("t3"."arm") AS INTEGER) AS "several",
        CAST(TO_UNIXTIME(MAX("t3"."when")) AS DOUBLE) AS "last"
      FROM (
        SELECT
          "t2"."arm",
          "t2"."p0",
          "t2"."p1",
          "t2"."unit",
          "t2"."when",
          "t2"."m0",
          "t2"."x0",
          "t2"."m1",
          "t2"."x1",
          "t2"."place",
          MIN("t2"."when") OVER (PARTITION BY "t2"."unit" ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS "begin"
        FROM (
          SELECT
            "t1"."arm",
            "t1"."p0",
            "t1"."p1",
            "t1"."unit",
            "t1"."when",
            "t1"."m0",
            "t1"."x0",
            "t1"."m1",
            "t1"."x1",
            ROW_NUMBER() OVER (
              PARTITION BY "t1"."unit"
              ORDER BY "t1"."when" ASC, "t1"."arm" ASC, "t1"."p0" ASC, "t1"."p1" ASC
            ) - 1 AS "place"
          FROM (
            SELECT
              "t0"."arm",
              "t0"."p_a" AS "p0",
              "t0"."p_b" AS "p1",
              "t0"."user" AS "unit",
              "t0"."at" AS "when",
              CAST(NOT (
                COALESCE((
                  "t0"."spent" - "t0"."spent"
                ) = 0, FALSE)
              ) AS INTEGER) AS "m0",
              IF(
                COALESCE((
                  "t0"."spent" - "t0"."spent"
                ) = 0, FALSE),
                "t0"."spent",
                CAST(0.0 AS DOUBLE)
              ) AS "x0",
              CAST(NOT (
                COALESCE((
                  "t0"."clicks" - "t0"."clicks"
                ) = 0, FALSE)
              ) AS INTEGER) AS "m1",
              IF(
                COALESCE((
                  "t0"."clicks" - "t0"."clicks"
                ) = 0, FALSE),
                "t0"."clicks",
                CAST(0.0 AS DOUBLE)
              ) AS "x1"
            FROM "shop"."visits" AS "t0"
          ) AS "t1"
        ) AS "t2"
      ) AS "t3"
      GROUP BY
        1
    ) AS "t4"
  ) AS "t5"
  GROUP BY
    1,
    2,
    3,
    4
) AS "t6"

-- plans, a ratio and a number for the time
SELECT
  "t3"."bucket",
  "t3"."arm",
  "t3"."plan",
  "t3"."n",
  "t3"."s0",
  "t3"."low0",
  "t3"."high0",
  "t3"."s1",
  "t3"."low1",
  "t3"."high1",
  "t3"."there",
  "t3"."q0_0",
  "t3"."q1_1",
  "t3"."q0_1",
  '5f6c3a6980e2' AS "question"
FROM (
  SELECT
    "t2"."bucket",
    "t2"."arm",
    "t2"."plan",
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
      "t1"."arm",
      "t1"."plan",
      "t1"."when",
      "t1"."x0",
      "t1"."x1",
      CAST(FLOOR("t1"."when" / CAST(3600.0 AS DOUBLE)) AS BIGINT) AS "bucket"
    FROM (
      SELECT
        "t0"."arm",
        "t0"."plan",
        IF(
          COALESCE((
            CAST("t0"."at" AS DOUBLE) - CAST("t0"."at" AS DOUBLE)
          ) = 0, FALSE),
          CAST("t0"."at" AS DOUBLE) / CAST(1000.0 AS DOUBLE),
          NULL
        ) AS "when",
        "t0"."spent" AS "x0",
        "t0"."clicks" AS "x1"
      FROM "shop"."visits" AS "t0"
    ) AS "t1"
  ) AS "t2"
  GROUP BY
    1,
    2,
    3
) AS "t3"

-- a quantile
SELECT
  "t2"."bucket",
  "t2"."arm",
  "t2"."n",
  "t2"."s0",
  "t2"."low0",
  "t2"."high0",
  "t2"."s1",
  "t2"."low1",
  "t2"."high1",
  "t2"."there",
  "t2"."q0_0",
  "t2"."q1_1",
  "t2"."b0_0",
  "t2"."b0_1",
  "t2"."b0_2",
  '5da267803239' AS "question"
FROM (
  SELECT
    "t1"."bucket",
    "t1"."arm",
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
    SUM(CAST(COALESCE("t1"."x1" <= CAST(1.0 AS DOUBLE), FALSE) AS INTEGER)) AS "b0_0",
    SUM(CAST(COALESCE("t1"."x1" <= CAST(2.0 AS DOUBLE), FALSE) AS INTEGER)) AS "b0_1",
    SUM(CAST(COALESCE("t1"."x1" <= CAST(5.0 AS DOUBLE), FALSE) AS INTEGER)) AS "b0_2"
  FROM (
    SELECT
      "t0"."arm",
      "t0"."at" AS "when",
      "t0"."spent" AS "x0",
      "t0"."seconds" AS "x1",
      CAST(FLOOR(CAST(TO_UNIXTIME("t0"."at") AS DOUBLE) / CAST(3600.0 AS DOUBLE)) AS BIGINT) AS "bucket"
    FROM "shop"."visits" AS "t0"
  ) AS "t1"
  GROUP BY
    1,
    2
) AS "t2"

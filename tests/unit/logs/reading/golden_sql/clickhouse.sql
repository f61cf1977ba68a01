SELECT
  "t2"."bucket" AS "bucket",
  "t2"."arm" AS "arm",
  "t2"."segment" AS "segment",
  "t2"."p0" AS "p0",
  "t2"."p1" AS "p1",
  "t2"."p2" AS "p2",
  "t2"."n" AS "n",
  "t2"."s0" AS "s0",
  "t2"."low0" AS "low0",
  "t2"."high0" AS "high0",
  "t2"."k1" AS "k1",
  "t2"."raw1" AS "raw1",
  "t2"."s1" AS "s1",
  "t2"."low1" AS "low1",
  "t2"."high1" AS "high1",
  "t2"."there" AS "there",
  "t2"."q0_0" AS "q0_0",
  "t2"."q1_1" AS "q1_1",
  'f9edf10cadc4' AS "question"
FROM (
  SELECT
    "t1"."bucket" AS "bucket",
    "t1"."arm" AS "arm",
    "t1"."segment" AS "segment",
    "t1"."p0" AS "p0",
    "t1"."p1" AS "p1",
    "t1"."p2" AS "p2",
    COUNT(*) AS "n",
    SUM("t1"."x0") AS "s0",
    MIN("t1"."x0") AS "low0",
    MAX("t1"."x0") AS "high0",
    SUM(CAST(COALESCE("t1"."x1" > 20.0, FALSE) AS Nullable(Int32))) AS "k1",
    SUM("t1"."x1") AS "raw1",
    SUM(CASE WHEN "t1"."x1" > 20.0 THEN 20.0 ELSE "t1"."x1" END) AS "s1",
    MIN(CASE WHEN "t1"."x1" > 20.0 THEN 20.0 ELSE "t1"."x1" END) AS "low1",
    MAX(CASE WHEN "t1"."x1" > 20.0 THEN 20.0 ELSE "t1"."x1" END) AS "high1",
    COUNT("t1"."x0" + "t1"."x1") AS "there",
    SUM("t1"."x0" * "t1"."x0") AS "q0_0",
    SUM(
      CASE WHEN "t1"."x1" > 20.0 THEN 20.0 ELSE "t1"."x1" END * CASE WHEN "t1"."x1" > 20.0 THEN 20.0 ELSE "t1"."x1" END
    ) AS "q1_1"
  FROM (
    SELECT
      "t0"."arm" AS "arm",
      "t0"."country" AS "segment",
      "t0"."p:a" AS "p0",
      "t0"."p:b" AS "p1",
      "t0"."p:c" AS "p2",
      "t0"."at" AS "when",
      CAST(CAST("t0"."bought" AS Nullable(Int32)) AS Nullable(Float64)) AS "x0",
      "t0"."revenue" AS "x1",
      CAST(FLOOR(CAST(toRelativeSecondNum("t0"."at") AS Nullable(Float64)) / 3600.0) AS Nullable(Int64)) AS "bucket"
    FROM "shop"."exposures" AS "t0"
  ) AS "t1"
  GROUP BY
    "t1"."bucket",
    "t1"."arm",
    "t1"."segment",
    "t1"."p0",
    "t1"."p1",
    "t1"."p2"
) AS "t2"

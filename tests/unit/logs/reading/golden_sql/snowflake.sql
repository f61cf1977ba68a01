SELECT
  "t2"."bucket",
  "t2"."arm",
  "t2"."segment",
  "t2"."p0",
  "t2"."p1",
  "t2"."p2",
  "t2"."n",
  "t2"."s0",
  "t2"."low0",
  "t2"."high0",
  "t2"."k1",
  "t2"."raw1",
  "t2"."s1",
  "t2"."low1",
  "t2"."high1",
  "t2"."there",
  "t2"."q0_0",
  "t2"."q1_1",
  'f9edf10cadc4' AS "question"
FROM (
  SELECT
    "t1"."bucket",
    "t1"."arm",
    "t1"."segment",
    "t1"."p0",
    "t1"."p1",
    "t1"."p2",
    COUNT(*) AS "n",
    SUM("t1"."x0") AS "s0",
    MIN("t1"."x0") AS "low0",
    MAX("t1"."x0") AS "high0",
    SUM(CAST(COALESCE("t1"."x1" > 20.0, FALSE) AS INT)) AS "k1",
    SUM("t1"."x1") AS "raw1",
    SUM(IFF("t1"."x1" > 20.0, 20.0, "t1"."x1")) AS "s1",
    MIN(IFF("t1"."x1" > 20.0, 20.0, "t1"."x1")) AS "low1",
    MAX(IFF("t1"."x1" > 20.0, 20.0, "t1"."x1")) AS "high1",
    COUNT("t1"."x0" + "t1"."x1") AS "there",
    SUM("t1"."x0" * "t1"."x0") AS "q0_0",
    SUM(IFF("t1"."x1" > 20.0, 20.0, "t1"."x1") * IFF("t1"."x1" > 20.0, 20.0, "t1"."x1")) AS "q1_1"
  FROM (
    SELECT
      "t0"."arm",
      "t0"."country" AS "segment",
      "t0"."p:a" AS "p0",
      "t0"."p:b" AS "p1",
      "t0"."p:c" AS "p2",
      "t0"."at" AS "when",
      CAST(CAST("t0"."bought" AS INT) AS DOUBLE) AS "x0",
      "t0"."revenue" AS "x1",
      CAST(FLOOR(CAST(DATE_PART('epoch', "t0"."at") AS DOUBLE) / 3600.0) AS BIGINT) AS "bucket"
    FROM "shop"."exposures" AS "t0"
  ) AS "t1"
  GROUP BY
    1,
    2,
    3,
    4,
    5,
    6
) AS "t2"

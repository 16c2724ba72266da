-- The backlog of a queue, folded: see penstock.ports.backlog.

-- name: waiting_jobs
-- Jobs that are alike, and what they reserve. Where nothing is reserved, no JSON is read.
SELECT kind, tenant, lane, band, due, count(*), min(place), max(place),
       sum(CASE WHEN amount IS NOT NULL THEN (amount::json ->> 0)::bigint ELSE 0 END),
       sum(CASE WHEN amount IS NOT NULL THEN (amount::json ->> 1)::bigint ELSE 0 END),
       sum(CASE WHEN amount IS NOT NULL THEN (amount::json ->> 2)::bigint ELSE 0 END),
       sum(CASE WHEN amount IS NOT NULL THEN (amount::json ->> 3)::bigint ELSE 0 END)
FROM (
    SELECT kind, tenant, lane, band, amount,
           CASE WHEN ready > 0 THEN 1 ELSE 0 END AS due,
           CASE WHEN ready > 0 THEN turn ELSE run_at END AS place,
           CASE WHEN ready = 0 AND run_at > :now THEN CAST(run_at - :now AS bigint) ELSE 0 END AS later,
           CASE WHEN amount IS NOT NULL THEN (amount::json ->> 0)::bigint ELSE 0 END AS tokens,
           CASE WHEN amount IS NOT NULL THEN (amount::json ->> 3)::bigint ELSE 0 END AS cost
    FROM penstock.jobs WHERE state = 'queued'
) AS one
GROUP BY kind, tenant, lane, band, due,
         length(later::text), substr(later::text, 1, 2),
         length(tokens::text), substr(tokens::text, 1, 2),
         length(cost::text), substr(cost::text, 1, 2)

-- name: running_jobs
SELECT j.kind, j.tenant, j.lane, j.band, p.id, j.started_at, j.amount
FROM penstock.jobs AS j JOIN penstock.processes AS p ON p.number = j.holder
WHERE j.holder IS NOT NULL AND j.state = 'running' ORDER BY j.seq

-- name: past_runs
-- The newest, by the index of finished jobs, whose condition is repeated word for word.
SELECT kind, lane, finished_at, finished_at - started_at, attempts, amount
FROM (SELECT kind, lane, state, started_at, finished_at, attempts, amount FROM penstock.jobs
      WHERE state IN ('completed', 'cancelled') ORDER BY finished_at DESC LIMIT :limit) AS newest
WHERE state = 'completed' AND finished_at >= started_at

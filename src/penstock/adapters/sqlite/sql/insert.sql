-- :items is [[id, payload, key, lane, turn], ...]
INSERT INTO jobs (id, payload, key, lane, turn, tenant, kind, priority, band, ready, since,
                  run_at, deadline, timeout, max_retries, log, parent_id, attached,
                  enqueued_at, trace, rerun_of)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4,
       :tenant, :kind, :priority, :priority, :ready, :now,
       :run_at, :deadline, :timeout, :max_retries, :log, :parent_id, :attached, :now, :trace,
       :rerun_of
FROM json_each(:items) WHERE true
ON CONFLICT (id) DO NOTHING

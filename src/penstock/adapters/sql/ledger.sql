-- The ledger. See tables/ledger.sql.

-- name: known_charges
SELECT id, at, tenant, kind, lane, model, tokens, input_tokens, output_tokens, cost, reserved
FROM penstock.charges WHERE id = ANY (:ids) ORDER BY id FOR UPDATE

-- name: charge_columns
id, day, at, tenant, task, job, kind, lane, model, tokens, input_tokens, output_tokens, cost, reserved

-- name: add_charges [sqlite]
INSERT INTO charges ({charge_columns})
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6,
       value ->> 7, value ->> 8, value ->> 9, value ->> 10, value ->> 11, value ->> 12, value ->> 13
FROM json_each(:rows) WHERE true
ON CONFLICT (id) DO NOTHING RETURNING id

-- name: add_charges [postgres]
INSERT INTO penstock.charges ({charge_columns})
SELECT one ->> 0, (one ->> 1)::integer, (one ->> 2)::float8, one ->> 3, one ->> 4, one ->> 5,
       one ->> 6, one ->> 7, one ->> 8, (one ->> 9)::bigint, (one ->> 10)::bigint,
       (one ->> 11)::bigint, (one ->> 12)::bigint, (one ->> 13)::integer
FROM json_array_elements(:rows::json) AS one
ON CONFLICT (id) DO NOTHING RETURNING id

-- name: settle_charge
UPDATE penstock.charges
SET model = :model, tokens = :tokens, input_tokens = :input_tokens, output_tokens = :output_tokens,
    cost = :cost, reserved = 0
WHERE id = :id

-- name: drop_charges
DELETE FROM penstock.charges WHERE id = ANY (:ids)

-- name: add_usage
INSERT INTO penstock.usage_days (
    day, tenant, kind, lane, model, requests, tokens, input_tokens, output_tokens, cost, unpriced,
    reserved)
VALUES (:day, :tenant, :kind, :lane, :model, :requests, :tokens, :input_tokens, :output_tokens,
        :cost, :unpriced, :reserved)
ON CONFLICT (day, tenant, kind, lane, model) DO UPDATE
SET requests = usage_days.requests + excluded.requests,
    tokens = usage_days.tokens + excluded.tokens,
    input_tokens = usage_days.input_tokens + excluded.input_tokens,
    output_tokens = usage_days.output_tokens + excluded.output_tokens,
    cost = usage_days.cost + excluded.cost,
    unpriced = usage_days.unpriced + excluded.unpriced,
    reserved = usage_days.reserved + excluded.reserved

-- name: usage_where
(:tenant::text IS NULL OR tenant = :tenant) AND day >= :since AND day <= :until

-- name: any_old_charge
SELECT 1 FROM penstock.charges WHERE at < :before LIMIT 1

-- name: forget_charges
DELETE FROM penstock.charges
WHERE id = ANY (ARRAY(SELECT id FROM penstock.charges WHERE at < :before ORDER BY at LIMIT :limit))

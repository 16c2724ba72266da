-- Say when lines of these kinds are looked at next: lanes, times, lanes whose slots they wait
-- for; kinds; now.
UPDATE penstock.lines AS l SET wake_at = s.wake_at, waits_for = s.waits_for, since = $5
FROM unnest($1::text[], $2::float8[], $3::text[]) AS s (lane, wake_at, waits_for)
WHERE l.lane = s.lane AND l.kind = ANY ($4)

-- Whether any of these lines (lanes, kinds) is still due.
SELECT EXISTS (
    SELECT 1 FROM unnest($1::text[], $2::text[]) AS s (lane, kind)
    JOIN penstock.lines AS l ON l.lane = s.lane AND l.kind = s.kind
    WHERE l.wake_at <= $3)

-- A lane nobody uses, in no trouble and as configured, is made again when somebody does: idle since, now, yesterday.
DELETE FROM penstock.lanes AS l
WHERE l.name = ANY (ARRAY(
    SELECT o.name FROM penstock.lanes AS o
    WHERE o.touched_at < $1 AND o.step = 0 AND o.suspect_at < $1 AND o.slowdown = 1
      AND o.limits IS NULL
      AND o.blocked_until < $2 AND (o.per_day IS NULL OR o.day < $3)
      AND NOT EXISTS (SELECT 1 FROM penstock.lines WHERE lines.lane = o.name)
      AND NOT EXISTS (SELECT 1 FROM penstock.slots WHERE slots.lane = o.name)
      AND NOT EXISTS (SELECT 1 FROM penstock.lanes AS child WHERE child.parent = o.name)
    FOR UPDATE SKIP LOCKED))

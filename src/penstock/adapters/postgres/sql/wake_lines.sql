-- The lines of a lane and its children are to be looked at now.
UPDATE penstock.lines SET wake_at = 0, waits_for = NULL
WHERE lane = $1
   OR lane = ANY (ARRAY(SELECT name FROM penstock.lanes WHERE parent = $1 AND parent IS NOT NULL))

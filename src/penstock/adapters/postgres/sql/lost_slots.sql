-- Slots of memberships that have ended, and of jobs that are not held by whom they are said to be.
-- One that is just being taken or given back is locked, or not to be seen yet.
DELETE FROM penstock.slots AS s
USING (
    SELECT o.lane, o.holder, o.ref FROM penstock.slots AS o
    WHERE NOT EXISTS (SELECT 1 FROM penstock.processes AS p WHERE p.number = o.holder)
       OR o.ref > 0 AND NOT EXISTS (
           SELECT 1 FROM penstock.jobs AS j WHERE j.seq = o.ref AND j.holder = o.holder)
    FOR UPDATE SKIP LOCKED
) AS lost
WHERE s.lane = lost.lane AND s.holder = lost.holder AND s.ref = lost.ref
RETURNING s.lane, s.holder, s.ref

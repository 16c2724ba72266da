-- What a claim must see to first; each answer is one look at the head of an index.
SELECT EXISTS (SELECT 1 FROM processes WHERE lease_until < :now AND number <> :member),
       EXISTS (SELECT 1 FROM jobs WHERE state = 'queued' AND ready = 0 AND run_at <= :now),
       EXISTS (SELECT 1 FROM jobs WHERE state = 'queued' AND deadline IS NOT NULL AND deadline <= :now),
       EXISTS (SELECT 1 FROM jobs WHERE ready > 0 AND ready = 1 AND lane = '?'),
       EXISTS (SELECT 1 FROM jobs WHERE ready > 0 AND ready = 2),
       EXISTS (SELECT 1 FROM lines)

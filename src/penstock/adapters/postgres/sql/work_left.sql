-- Whether any job (of these kinds; null: of any) is queued, running, or still being stopped.
SELECT EXISTS (SELECT 1 FROM penstock.jobs
               WHERE ready > 0 AND ($1::text[] IS NULL OR kind = ANY ($1)))
    OR EXISTS (SELECT 1 FROM penstock.jobs
               WHERE state = 'queued' AND ready = 0 AND ($1::text[] IS NULL OR kind = ANY ($1)))
    OR EXISTS (SELECT 1 FROM penstock.jobs
               WHERE holder IS NOT NULL AND ($1::text[] IS NULL OR kind = ANY ($1)))

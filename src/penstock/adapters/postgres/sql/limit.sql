-- What an operator gives a lane ($1) instead of the configured limits; all NULL: those again.
UPDATE penstock.lanes
SET limits = $2, own_spacing = $3, own_tolerance = $4, own_parallel = $5, own_per_day = $6
WHERE name = $1

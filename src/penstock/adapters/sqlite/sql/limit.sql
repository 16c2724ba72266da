-- What an operator gives a lane instead of the configured limits; all NULL: those again.
UPDATE lanes
SET limits = :limits, own_spacing = :own_spacing, own_tolerance = :own_tolerance,
    own_parallel = :own_parallel, own_per_day = :own_per_day
WHERE name = :name

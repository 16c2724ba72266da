SELECT max(coalesce((SELECT last FROM turns WHERE lane = :lane AND band = :band AND tenant = :tenant), 0),
           coalesce((SELECT turn FROM served WHERE lane = :lane AND band = :band), 0))

-- Make a row of the version before one of this, if there is one for a key: there the key was stored
-- as it is, and the id of what is made stood before that of the request (32 digits and a colon).
UPDATE api_requests SET key = :hashed, made = nullif(substr(id, 1, length(id) - 33), '')
WHERE (tenant, route, key) = (:tenant, :route, :key)

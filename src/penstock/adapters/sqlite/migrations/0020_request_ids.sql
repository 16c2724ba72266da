-- api_requests, from here on:
--   key   SHA-256 of tenant, route and key (see hashed_key): it is only compared
--   made  the id of what the request makes, by whoever carries it out for as long as the row is
--         there; null in rows of the version before
--   lost  not used any more
ALTER TABLE api_requests ADD COLUMN made TEXT;

-- documents
--   remote       the blob only says what to fetch: the original is not there yet
--   request      the blob that said what to fetch, null where it was uploaded: names the job
--   live_digest  the digest of the version that can be searched: what is fetched may be the same
ALTER TABLE documents ADD COLUMN remote INTEGER NOT NULL DEFAULT 0;
ALTER TABLE documents ADD COLUMN request TEXT;
ALTER TABLE documents ADD COLUMN live_digest TEXT;
UPDATE documents SET live_digest = digest WHERE live = generation;

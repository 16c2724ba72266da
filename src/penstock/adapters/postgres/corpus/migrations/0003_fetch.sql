-- needs 1
--
-- documents
--   remote       the blob only says what to fetch: the original is not there yet
--   request      the blob that said what to fetch, null where it was uploaded: names the job
--   live_digest  the digest of the version that can be searched: what is fetched may be the same
ALTER TABLE penstock.documents ADD COLUMN remote boolean NOT NULL DEFAULT false;
ALTER TABLE penstock.documents ADD COLUMN request text;
ALTER TABLE penstock.documents ADD COLUMN live_digest text;
UPDATE penstock.documents SET live_digest = digest WHERE live = generation;

-- What is asked of documents every few seconds, and of their originals now and then.
CREATE INDEX documents_processing ON documents (generation) WHERE state = 'processing';
CREATE INDEX documents_blob ON documents (blob);

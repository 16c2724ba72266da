-- jobs.trace: the span that enqueued a job, as a W3C traceparent; null where nobody traces.
ALTER TABLE jobs ADD COLUMN trace TEXT;

#!lua
-- needs: base lines jobs log stops
-- Add an entry to a log that tells of no job.

stops.note(ask.tenant, ask.log, ask.what, ask.data)
return done(1)

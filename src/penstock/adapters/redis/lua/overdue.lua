#!lua flags=allow-oom
-- needs: base lines jobs log turns pick claim
-- Fail queued jobs whose deadline has passed, also while no worker is free to claim.

claim.fail_overdue()
return done(exact(now))

#!lua flags=allow-oom
-- needs: base lines jobs log turns lane_state usual_amounts amounts learnt limits breaker waiting lanes pick lane_claim claim
-- Fail queued jobs whose deadline has passed, also while no worker is free to claim.

claim.fail_overdue()
return done(exact(now))

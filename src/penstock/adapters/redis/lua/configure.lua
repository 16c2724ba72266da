#!lua
-- needs: base lines jobs lane_state usual_amounts amounts learnt breaker lanes
-- Make lanes known, with the limits that are configured now.

lanes.configure(ask.configs)
return done(1)

#!lua
-- needs: base schedules
-- Write a schedule, and wake whoever waits for the next one; 0 if its row has changed meanwhile.

if not schedules.is(ask.tick) then return 0 end
schedules.put(ask.tick)
if ask.wake then wake('scheduled') end
return done(1)

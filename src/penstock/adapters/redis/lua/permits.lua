#!lua flags=allow-oom
-- needs: base lines jobs log stops lane_state usual_amounts amounts learnt limits breaker verdict permit lanes lane_settle
-- Permits for requests made inside jobs: for each {'permit', start_at, void_at, timeout, trial} or
-- {'busy', lane, until, why, give_up, refused}, in order. What was granted and never heard of comes back
-- first; a request that arrives late, after others of this process, is granted nothing.

local holder, answers = ask.member, {}

local function text(number) return number and exact(number) or '' end

local process = ns .. 'process:' .. holder
local here = redis.call('HMGET', process, 'asked', 'life')
local is_member = here[2] == ask.life
if is_member and ask.number <= tonumber(here[1]) then return {exact(now), {}} end

lanes.configure(ask.configs)
if is_member then
  lane_settle.give_back(holder, ask.returned)
  redis.call('HSET', process, 'asked', ask.number)
end
local too_soon = {}
for n, request in ipairs(ask.requests) do
  if not is_member then
    -- A slot taken now would belong to nobody, and never be given back.
    answers[n] = {'busy', request.lane, exact(now), 'this process lost its membership', 0}
  else
    local some = lanes.with_parent(request.lane)
    lanes.end_lost_trials(some)
    local held = lanes.held_by(holder, request.job)
    -- Who asks for little does not overtake who asked for much before.
    local key = pair(request.lane, request.question and 'question' or '')
    local granted, busy = nil, too_soon[key]
    if not busy then granted, busy = permit.ask(some, request, holder, held, now) end
    if busy and (busy.why == amounts.WINDOW_WHY or busy.why == amounts.DAY_WHY) then
      too_soon[key] = busy
      for _, lane in ipairs(some) do
        if lane.used ~= lane.stored.used then lanes.save(lane) end
      end
    end
    if granted or request.question then
      for _, lane in ipairs(some) do lanes.save(lane) end
    end
    if granted then
      lanes.take_slots(permit.slots(some, request, held), holder, request.ref)
      answers[n] = {
        'permit', text(granted.start_at), text(granted.void_at), text(granted.timeout),
        granted.trial and 1 or 0}
    else
      answers[n] = {'busy', busy.lane, text(busy.until_), busy.why, busy.give_up and 1 or 0}
      if busy.refused then answers[n][6] = 1 end
    end
  end
end
lanes.announce()
return done({exact(now), answers})

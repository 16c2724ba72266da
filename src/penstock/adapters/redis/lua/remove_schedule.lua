#!lua flags=allow-oom
-- needs: base
-- Delete a schedule; 0 if there is none.

redis.call('ZREM', ns .. 'schedules', ask.key)
redis.call('ZREM', ns .. 'schedule_next', ask.key)
redis.call('ZREM', ns .. 'schedule_counted', ask.key)
return done(redis.call('HDEL', ns .. 'schedule_rows', ask.key))

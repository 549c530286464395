-- Lets a writer in when nobody else is, else notes that it waits. What follows
-- this text is acquire.lua, which is reached only when no reader is inside.
--
-- KEYS: lock, fence, readers, waiting (see rw_read.lua)
-- ARGV: token, TTL of the lock in ms, TTL of the fence in ms, how long the note
--       lasts in ms (0: none is left)
local clock = redis.call('TIME')
local ms = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
for i = 3, 4 do
  redis.call('ZREMRANGEBYSCORE', KEYS[i], '-inf', ms)
end
local writer = redis.call('GET', KEYS[1])
local last = redis.call('ZREVRANGE', KEYS[3], 0, 0, 'WITHSCORES')
if writer and writer ~= ARGV[1] or not writer and last[2] then
  if tonumber(ARGV[4]) > 0 then
    redis.call('ZADD', KEYS[4], string.format('%.0f', ms + tonumber(ARGV[4])), ARGV[1])
    if redis.call('PTTL', KEYS[4]) < tonumber(ARGV[4]) then
      redis.call('PEXPIRE', KEYS[4], ARGV[4])
    end
  end
  if writer then
    return redis.call('PTTL', KEYS[1])
  end
  return math.max(tonumber(last[2]) - ms, 0)
end
redis.call('ZREM', KEYS[4], ARGV[1])


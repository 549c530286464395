-- Deletes a lock if it is still this token's, gives up the token's place in the
-- queue, and tells the first in the queue when the lock is free.
--
-- KEYS: lock, queue, places    ARGV: token, channel to tell the first token on
-- Answers 1 when the lock was the token's, 0 when it wasn't.
local ours = redis.call('GET', KEYS[1]) == ARGV[1]
if ours then
  redis.call('DEL', KEYS[1])
end
if redis.call('HDEL', KEYS[3], ARGV[1]) == 1 then
  redis.call('LREM', KEYS[2], 1, ARGV[1])
end
if not ours and redis.call('EXISTS', KEYS[1]) == 1 then
  return 0
end

local clock = redis.call('TIME')
local ms = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
local first = redis.call('LINDEX', KEYS[2], 0)
while first and tonumber(redis.call('HGET', KEYS[3], first) or 0) <= ms do
  redis.call('LPOP', KEYS[2])
  redis.call('HDEL', KEYS[3], first)
  first = redis.call('LINDEX', KEYS[2], 0)
end
if first then
  redis.call('PUBLISH', ARGV[2], first)
end
return ours and 1 or 0

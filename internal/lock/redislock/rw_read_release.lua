-- Ends a reader's lease, and tells who waits when it was the last.
--
-- KEYS: readers    ARGV: token, channel to tell
-- Answers 1 when the lease still ran, 0 when it had ended.
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
local ran = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or 0) > now
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if redis.call('ZCARD', KEYS[1]) == 0 then
  redis.call('PUBLISH', ARGV[2], '')
end
return ran and 1 or 0

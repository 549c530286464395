-- Lets a reader's lease that still runs live for another TTL.
--
-- KEYS: readers    ARGV: token, TTL in ms
-- Answers 1 when it did, 0 when it had ended.
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
if tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or 0) <= now then
  return 0
end
redis.call('ZADD', KEYS[1], string.format('%.0f', now + tonumber(ARGV[2])), ARGV[1])
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 1

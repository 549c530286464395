-- Lets a reader in, beside other readers: not while a writer is inside, nor while
-- one waits, or a stream of readers would keep it out for ever.
--
-- KEYS: lock (the writer's), readers (sorted set: token by end of its lease, in
-- ms), waiting (the same of the writers that wait)
-- ARGV: token, TTL in ms
-- Answers -2 when it is let in, which it may be already; else the ms after which
-- asking again may help (-1: never, but for a release).
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
for i = 2, 3 do
  redis.call('ZREMRANGEBYSCORE', KEYS[i], '-inf', now)
end

if not redis.call('ZSCORE', KEYS[2], ARGV[1]) then
  if redis.call('EXISTS', KEYS[1]) == 1 then
    return redis.call('PTTL', KEYS[1])
  end
  local first = redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')
  if first[2] then
    return math.max(tonumber(first[2]) - now, 0)
  end
end

redis.call('ZADD', KEYS[2], string.format('%.0f', now + tonumber(ARGV[2])), ARGV[1])
if redis.call('PTTL', KEYS[2]) < tonumber(ARGV[2]) then
  redis.call('PEXPIRE', KEYS[2], ARGV[2])
end
return -2

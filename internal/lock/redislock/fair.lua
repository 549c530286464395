-- Lets a token have its turn, in the order in which the tokens came first. What
-- follows this text is acquire.lua, which is reached only by whose turn it is.
--
-- KEYS: lock, fence, queue (list of tokens), places (token -> when its place ends, ms)
-- ARGV: token, TTL of the lock in ms, TTL of the fence in ms, TTL of a place in ms,
--       1 to take a place in the queue and keep it, 0 to look only
-- Answers, when it is not this token's turn, the ms after which asking again may
-- help: what is left of the holder's lease (-1: no end) or of the first place.
--
-- A waiter keeps its place by asking again. Places have ended by the time at
-- which a waiter died, whatever its number in the queue: however many died, who
-- comes after them waits for one TTL at most, not for one each.
local clock = redis.call('TIME')
local ms = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)

local first, ends = redis.call('LINDEX', KEYS[3], 0), 0
while first and first ~= ARGV[1] do
  ends = tonumber(redis.call('HGET', KEYS[4], first) or 0)
  if ends > ms then
    break
  end
  redis.call('LPOP', KEYS[3])
  redis.call('HDEL', KEYS[4], first)
  first = redis.call('LINDEX', KEYS[3], 0)
end

local held = redis.call('GET', KEYS[1])
if held ~= ARGV[1] and (held or first and first ~= ARGV[1]) then
  if ARGV[5] == '1' then
    if redis.call('HEXISTS', KEYS[4], ARGV[1]) == 0 then
      redis.call('RPUSH', KEYS[3], ARGV[1])
    end
    redis.call('HSET', KEYS[4], ARGV[1], string.format('%.0f', ms + tonumber(ARGV[4])))
    for i = 3, 4 do
      if redis.call('PTTL', KEYS[i]) < tonumber(ARGV[4]) then
        redis.call('PEXPIRE', KEYS[i], ARGV[4])
      end
    end
  end
  if held then
    return redis.call('PTTL', KEYS[1])
  end
  return ends - ms
end
if redis.call('HDEL', KEYS[4], ARGV[1]) == 1 then
  redis.call('LREM', KEYS[3], 1, ARGV[1])
end


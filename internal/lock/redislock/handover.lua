-- Gives a lock that is still one token's to the next one, together with a fence
-- of its own: a release and an acquisition in one.
--
-- KEYS: lock, fence
-- ARGV: token, the next one's, TTL of the lock in ms, TTL of the fence in ms,
--       listeners that may be there (-1: don't ask whether there are others)
-- Answers the fence as a string when it was handed over; else, as an integer, 1
-- when it was released, and that published, since there are others who listen,
-- 0 when it wasn't the first token's.
--
-- The next one may have it already: an answer was lost. For the fence, see
-- acquire.lua.
local holder = redis.call('GET', KEYS[1])
if holder ~= ARGV[1] and holder ~= ARGV[2] then
  return 0
end
local last = redis.call('GET', KEYS[2])
if holder == ARGV[2] and last then
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  return string.format('%.0f', tonumber(last))
end

local listeners = tonumber(ARGV[5])
if listeners >= 0 and redis.call('PUBLISH', KEYS[1], '') > listeners then
  redis.call('DEL', KEYS[1])
  return 1
end

local now = redis.call('TIME')
local fence = string.format('%.0f', math.max(tonumber(last or 0) + 1, tonumber(now[1]) * 1000000 + tonumber(now[2])))
redis.call('SET', KEYS[2], fence, 'PX', ARGV[4])
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return fence

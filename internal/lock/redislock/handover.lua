-- Gives a lock that is still one token's to the next one, together with a fence
-- of its own: a release and an acquisition in one.
--
-- KEYS: lock, fence, list of the tokens that wait in other processes
-- ARGV: token, the next one's, TTL of the lock in ms, TTL of the fence in ms,
--       listeners that may be there (-1: it stays in this process), ms for which
--       the lock is kept for the first of other processes
-- Answers the fence as a string when the next one has it; else, as an integer,
-- 2 when the first of other processes has it, and was told so, 1 when it was
-- released, and that published, since there are others who listen, 0 when it
-- wasn't the first token's.
--
-- The next one may have it already: an answer was lost. For the fence, see
-- acquire.lua.
--
-- The first of other processes may be dead, so it has the lock for a moment
-- only, unless it asks for it within that: acquire.lua says yes to who has it.
local holder = redis.call('GET', KEYS[1])
if holder ~= ARGV[1] then
  if holder ~= ARGV[2] then
    return 0
  end
  local last = redis.call('GET', KEYS[2])
  if last then
    redis.call('PEXPIRE', KEYS[1], ARGV[3])
    return string.format('%.0f', tonumber(last))
  end
end

local next, ttl = ARGV[2], ARGV[3]
local listeners = tonumber(ARGV[5])
if listeners >= 0 then
  local other = redis.call('LPOP', KEYS[3])
  if other then
    next, ttl = other, ARGV[6]
  elseif redis.call('PUBLISH', KEYS[1], '') > listeners then
    redis.call('DEL', KEYS[1])
    return 1
  end
end

local now = redis.call('TIME')
local fence = now[1] .. string.format('%06d', now[2])
local last = redis.call('SET', KEYS[2], fence, 'PX', ARGV[4], 'GET')
if last and last + 32 > tonumber(fence) then
  fence = string.format('%.0f', last + 32)
  redis.call('SET', KEYS[2], fence, 'PX', ARGV[4])
end
redis.call('SET', KEYS[1], next, 'PX', ttl)
if next ~= ARGV[2] then
  redis.call('PUBLISH', KEYS[1], next)
  return 2
end
return fence

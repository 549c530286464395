-- Grants a lock to a token, together with its fence.
--
-- KEYS: lock, fence    ARGV: token, TTL of the lock in ms, TTL of the fence in ms
-- Answers the fence as a string when it is granted; else, as an integer, the ms
-- after which the present holder's lease ends by itself (-1: never).
--
-- A token that has the lock already gets it again, with the same fence: its
-- client did not see the first answer, and must not take itself for another.
--
-- The fence is max(last + 32, TIME in microseconds). A plain counter would start
-- again after a flush, and hand out a number twice when a replica takes over
-- that had not seen the last grant. This rests on one assumption: the clocks of
-- two servers differ by less than a failover takes. The 31 numbers that follow a
-- fence are left to who got it, to pass the lock on by itself (maxInARow).
--
-- Fences are near 1.8e15. A Lua number holds that exactly, but tostring() does
-- not print it so: '%.0f' does.
local again = not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
if again then
  if redis.call('GET', KEYS[1]) ~= ARGV[1] then
    return redis.call('PTTL', KEYS[1])
  end
  local last = redis.call('GET', KEYS[2])
  if last then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    return string.format('%.0f', tonumber(last))
  end
end

local now = redis.call('TIME')
local fence = now[1] .. string.format('%06d', now[2])
local last = redis.call('SET', KEYS[2], fence, 'PX', ARGV[3], 'GET')
if last and last + 32 > tonumber(fence) then
  fence = string.format('%.0f', last + 32)
  redis.call('SET', KEYS[2], fence, 'PX', ARGV[3])
end
return fence

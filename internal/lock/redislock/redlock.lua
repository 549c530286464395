-- Grants the lock of one node to a token, which may have it already. There is no
-- fence: see redlock.go.
--
-- KEYS: lock    ARGV: token, TTL in ms
-- Answers 1 when it is granted, 0 when another has it.
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1

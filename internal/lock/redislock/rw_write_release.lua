-- Ends a writer's lease, or its waiting, and tells who waits.
--
-- KEYS: lock, waiting    ARGV: token, channel to tell
-- Answers 1 when the lock was the token's, 0 when it wasn't.
local waited = redis.call('ZREM', KEYS[2], ARGV[1]) == 1
local ours = redis.call('GET', KEYS[1]) == ARGV[1]
if ours then
  redis.call('DEL', KEYS[1])
end
if ours or waited then
  redis.call('PUBLISH', ARGV[2], '')
end
return ours and 1 or 0

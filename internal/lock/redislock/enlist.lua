-- Puts a token that has to wait in the list of those of other processes, whom
-- the holder's process gives the lock to. What follows this text is acquire.lua,
-- which is reached unless somebody else has the lock.
--
-- KEYS: lock, fence, list    ARGV: those of acquire.lua, TTL of the list in ms
local holder = redis.call('GET', KEYS[1])
local listed = redis.call('LPOS', KEYS[3], ARGV[1])
if holder and holder ~= ARGV[1] then
  if not listed then
    redis.call('RPUSH', KEYS[3], ARGV[1])
  end
  redis.call('PEXPIRE', KEYS[3], ARGV[4])
  return redis.call('PTTL', KEYS[1])
end
if listed then
  redis.call('LREM', KEYS[3], 1, ARGV[1])
end


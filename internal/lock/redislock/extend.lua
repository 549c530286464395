-- Lets a lock that is still this token's live for another TTL. One that has
-- ended stays so: by now somebody else may have held it and gone.
--
-- KEYS: lock    ARGV: token, TTL in ms
-- Answers 1 when it was, 0 when it wasn't.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])

-- Deletes a lock if it is still this token's, and tells who waits for it.
--
-- KEYS: lock    ARGV: token, channel to tell ('': nobody)
-- Answers 1 when it was, 0 when it wasn't.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
redis.call('DEL', KEYS[1])
if ARGV[2] ~= '' then
  redis.call('PUBLISH', ARGV[2], '')
end
return 1

-- First half of the guarded counter: what Go needs to decide on a batch.
-- KEYS: sale, buyers, purchases.  ARGV: fence, then (purchase_id, user_id) each.
-- Returns {'missing'}, {'stale'} or {state, remaining, limit, then (stored
-- answer or nil, live purchase or nil) each}.
--
-- The fence is remembered here already. Were it compared at the write alone, an
-- old holder could still write between a new holder's read and write, and one
-- of the two updates would be lost.
local sale = redis.call('HMGET', KEYS[1], 'remaining', 'limit', 'last_fence', 'state', 'starts_at', 'ends_at')
if not sale[1] then return {'missing'} end

local fence, last = tonumber(ARGV[1]), tonumber(sale[3])
if fence > 0 and fence < last then return {'stale'} end

local reply = {state(sale[4], sale[5], sale[6]), sale[1], sale[2]}
for i = 2, #ARGV, 2 do
  reply[#reply + 1] = redis.call('HGET', KEYS[3], ARGV[i])
  reply[#reply + 1] = redis.call('HGET', KEYS[2], ARGV[i + 1])
end
if fence > last then redis.call('HSET', KEYS[1], 'last_fence', ARGV[1]) end
return reply

-- First half of the guarded counter: what Go needs to decide on a batch.
-- KEYS: sale, buyers, purchases.  ARGV: fence, then (purchase_id, user_id) each.
-- Returns {'missing'}, {'stale'} or {state, remaining, limit, then (stored
-- answer or nil, live purchase or nil) each}.
--
-- The fence is remembered here already. Were it compared at the write alone, an
-- old holder could still write between a new holder's read and write, and one
-- of the two updates would be lost. A purchase that is known is answered even so:
-- nothing is going to be written for it.
local sale = redis.call('HMGET', KEYS[1], 'remaining', 'limit', 'last_fence', 'state', 'starts_at', 'ends_at')
if not sale[1] then return {'missing'} end

local fence, last = tonumber(ARGV[1]), tonumber(sale[3])
local stale = fence > 0 and fence < last

local reply = {state(sale[4], sale[5], sale[6]), sale[1], sale[2]}
for i = 2, #ARGV, 2 do
  local known = redis.call('HGET', KEYS[3], ARGV[i])
  if stale and not known then return {'stale'} end
  reply[#reply + 1] = known
  reply[#reply + 1] = redis.call('HGET', KEYS[2], ARGV[i + 1])
end
if fence > last then redis.call('HSET', KEYS[1], 'last_fence', ARGV[1]) end
return reply

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
local known, held = values(KEYS[3], every(2, 2)), values(KEYS[2], every(2, 3))
for i = 1, #known do
  if stale and not known[i] then return {'stale'} end
  reply[#reply + 1] = known[i]
  reply[#reply + 1] = held[i]
end
if fence > last then redis.call('HSET', KEYS[1], 'last_fence', ARGV[1]) end
return reply

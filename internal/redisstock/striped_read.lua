-- First half of the striped counter. A sale's units are split into segments, the
-- fields remaining.0, remaining.1, ... of its hash, when it is first asked for.
-- KEYS: sale, buyers, purchases.
-- ARGV: fence, number of segments, number of those locked, then (segment, fence)
-- each, then (purchase_id, user_id) each.
-- Returns {'missing'}, {'stale'} or {state, limit, units of each segment ...,
-- then (stored answer or nil, live purchase or nil) each}.
local sale = redis.call('HMGET', KEYS[1], 'remaining', 'limit', 'last_fence', 'state', 'starts_at', 'ends_at', 'fencing')
if not sale[1] then return {'missing'} end
local fence, last, segments, locked = tonumber(ARGV[1]), tonumber(sale[3]), tonumber(ARGV[2]), tonumber(ARGV[3])

if redis.call('HEXISTS', KEYS[1], 'remaining.0') == 0 then
  local units = tonumber(sale[1])
  for n = 0, segments - 1 do
    local share = math.floor(units / segments)
    if n < units % segments then share = share + 1 end
    redis.call('HSET', KEYS[1], 'remaining.' .. n, string.format('%.0f', share))
  end
end

local stale = fence > 0 and fence < last
for i = 4, 3 + 2 * locked, 2 do
  local seen = tonumber(redis.call('HGET', KEYS[1], 'last_fence.' .. ARGV[i]) or 0)
  if sale[7] ~= '0' and tonumber(ARGV[i + 1]) > 0 and tonumber(ARGV[i + 1]) < seen then stale = true end
end

local reply = {state(sale[4], sale[5], sale[6]), sale[2]}
for n = 0, segments - 1 do
  reply[#reply + 1] = redis.call('HGET', KEYS[1], 'remaining.' .. n)
end
for i = 4 + 2 * locked, #ARGV, 2 do
  local known = redis.call('HGET', KEYS[3], ARGV[i])
  if stale and not known then return {'stale'} end
  reply[#reply + 1] = known
  reply[#reply + 1] = redis.call('HGET', KEYS[2], ARGV[i + 1])
end
if stale then return reply end
if fence > last then redis.call('HSET', KEYS[1], 'last_fence', ARGV[1]) end
for i = 4, 3 + 2 * locked, 2 do
  if tonumber(ARGV[i + 1]) > 0 then redis.call('HSET', KEYS[1], 'last_fence.' .. ARGV[i], ARGV[i + 1]) end
end
return reply

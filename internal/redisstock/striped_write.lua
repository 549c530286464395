-- Second half of the striped counter: stores what Go decided, all of it.
-- KEYS: sale, buyers, purchases, outbox.
-- ARGV: fence, number of segments, number of those locked, then (segment, fence,
-- its new units) each, then (purchase_id, user_id, quantity, answer, event) for
-- each accepted; an answer lacks its last member, remaining, and the brace.
-- Returns {'missing'}, {'stale'}, {'scheduled'} or {'closed'} when nothing was
-- written, else {'written', then the stored answer each}.
local segments, locked = tonumber(ARGV[2]), tonumber(ARGV[3])
local first = 4 + 3 * locked
local reply, fresh, units, events = {'written'}, 0, 0, {}
for i = first, #ARGV, 5 do
  local stored = redis.call('HGET', KEYS[3], ARGV[i])
  reply[#reply + 1] = stored or ''
  if not stored then fresh = fresh + 1 end
  units = units + tonumber(ARGV[i + 2])
  events[#events + 1] = ARGV[i + 4]
end
if fresh == 0 then return reply end -- a repetition
if fresh ~= #events then return {'stale'} end -- somebody has been here meanwhile

local sale = redis.call('HMGET', KEYS[1], 'remaining.0', 'accepted', 'last_fence', 'state', 'starts_at', 'ends_at', 'fencing')
if not sale[1] then return {'missing'} end
local fence = tonumber(ARGV[1])
if fence > 0 and fence ~= tonumber(sale[3]) then return {'stale'} end
for i = 4, first - 1, 3 do
  local held = tonumber(ARGV[i + 1])
  if sale[7] ~= '0' and held > 0 and held ~= tonumber(redis.call('HGET', KEYS[1], 'last_fence.' .. ARGV[i]) or 0) then return {'stale'} end
end
local now = state(sale[4], sale[5], sale[6])
if now ~= 'open' then return {now} end

-- Whatever could fail fails here, before the first write.
if not tonumber(sale[2]) then return redis.error_reply('ERR accepted is not a number') end
redis.call('HEXISTS', KEYS[2], '')
local outbox = redis.call('TYPE', KEYS[4])['ok']
if outbox ~= 'none' and outbox ~= 'stream' then return redis.error_reply('WRONGTYPE outbox is no stream') end

for i = 4, first - 1, 3 do
  redis.call('HSET', KEYS[1], 'remaining.' .. ARGV[i], ARGV[i + 2])
end
local total = 0
for n = 0, segments - 1 do
  total = total + tonumber(redis.call('HGET', KEYS[1], 'remaining.' .. n))
end
redis.call('HSET', KEYS[1], 'remaining', string.format('%.0f', total))
redis.call('HINCRBY', KEYS[1], 'accepted', units)
local left, n = total + units, 1
for i = first, #ARGV, 5 do
  left = left - tonumber(ARGV[i + 2])
  n = n + 1
  reply[n] = ARGV[i + 3] .. ',"remaining":' .. string.format('%.0f', left) .. '}'
  redis.call('HSET', KEYS[3], ARGV[i], reply[n])
  redis.call('HSET', KEYS[2], ARGV[i + 1], ARGV[i])
end
redis.call('XADD', KEYS[4], '*', 'd', '[' .. table.concat(events, ',') .. ']')
return reply

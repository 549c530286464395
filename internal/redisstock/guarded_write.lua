-- Second half of the guarded counter: stores what Go decided, all of it.
-- KEYS: sale, buyers, purchases, outbox.
-- ARGV: fence, new remaining, then (purchase_id, user_id, quantity, answer, event) for each accepted.
-- Returns {'missing'}, {'stale'}, {'scheduled'} or {'closed'} when nothing was
-- written, else {'written', then the answer stored before or '' each}.
--
-- The remaining units are what Go worked out, not what stands here: this is
-- where updates are lost when two are in the gap at once.
local reply, fresh, units, events = {'written'}, {}, 0, {}
for i = 3, #ARGV, 5 do
  local stored = redis.call('HGET', KEYS[3], ARGV[i])
  reply[#reply + 1] = stored or ''
  if not stored then
    fresh[#fresh + 1] = i
    units = units + tonumber(ARGV[i + 2])
    events[#events + 1] = ARGV[i + 4]
  end
end
if #fresh == 0 then return reply end -- a repetition, whoever has the lock by now

local sale = redis.call('HMGET', KEYS[1], 'remaining', 'accepted', 'last_fence', 'state', 'starts_at', 'ends_at')
if not sale[1] then return {'missing'} end
local fence = tonumber(ARGV[1])
if fence > 0 and fence ~= tonumber(sale[3]) then return {'stale'} end
local now = state(sale[4], sale[5], sale[6])
if now ~= 'open' then return {now} end

-- Whatever could fail fails here, before the first write.
if not tonumber(sale[2]) then return redis.error_reply('ERR accepted is not a number') end
redis.call('HEXISTS', KEYS[2], '')
local outbox = redis.call('TYPE', KEYS[4])['ok']
if outbox ~= 'none' and outbox ~= 'stream' then return redis.error_reply('WRONGTYPE outbox is no stream') end

redis.call('HSET', KEYS[1], 'remaining', ARGV[2])
redis.call('HINCRBY', KEYS[1], 'accepted', units)
for _, i in ipairs(fresh) do
  redis.call('HSET', KEYS[3], ARGV[i], ARGV[i + 3])
  redis.call('HSET', KEYS[2], ARGV[i + 1], ARGV[i])
end
redis.call('XADD', KEYS[4], '*', 'd', '[' .. table.concat(events, ',') .. ']')
return reply

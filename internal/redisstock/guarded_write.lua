-- Second half of the guarded counter: stores what Go decided, all of it.
-- KEYS: sale, buyers, purchases, outbox.
-- ARGV: fence, new remaining, then (purchase_id, user_id, quantity, answer, event) for each accepted.
-- Returns {'missing'}, {'stale'}, {'scheduled'} or {'closed'} when nothing was
-- written, else {'written', then the answer stored before or '' each}.
--
-- The remaining units are what Go worked out, not what stands here: this is
-- where updates are lost when two are in the gap at once.
local reply, units, purchases, buyers, events = {'written'}, 0, {}, {}, {}
for n, stored in ipairs(values(KEYS[3], every(5, 3))) do
  local i = 5 * n - 2
  reply[#reply + 1] = stored or ''
  if not stored then
    units = units + tonumber(ARGV[i + 2])
    purchases[#purchases + 1] = ARGV[i]
    purchases[#purchases + 1] = ARGV[i + 3]
    buyers[#buyers + 1] = ARGV[i + 1]
    buyers[#buyers + 1] = ARGV[i]
    events[#events + 1] = ARGV[i + 4]
  end
end
if #events == 0 then return reply end -- a repetition, whoever has the lock by now

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
store(KEYS[3], purchases)
store(KEYS[2], buyers)
redis.call('XADD', KEYS[4], '*', 'd', '[' .. table.concat(events, ',') .. ']')
return reply

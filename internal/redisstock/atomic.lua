-- The atomic counter: decides on a batch and stores it, in one step.
-- KEYS: sale, buyers, purchases, outbox.
-- ARGV: fence, then (purchase_id, user_id, quantity, answer, event) each; the
-- answer is a JSON object whose last member, remaining, and brace are added here.
-- Returns {'missing'}, {'stale'}, or {'decided', then (verdict, detail) each}:
-- accepted, remaining | known, stored answer | already_bought, purchase_id |
-- over_limit, limit | scheduled | closed | sold_out.
local sale = redis.call('HMGET', KEYS[1],
  'remaining', 'accepted', 'limit', 'last_fence', 'state', 'starts_at', 'ends_at')
if not sale[1] then return {'missing'} end
-- Strings compare by character ("9" is above "10"), so numbers are made of all.
local remaining, accepted, limit, last = tonumber(sale[1]), tonumber(sale[2]), tonumber(sale[3]), tonumber(sale[4])
local fence = tonumber(ARGV[1])
local stale = fence > 0 and fence < last

-- Whatever could fail fails before the first write; the reads below do the same
-- for the other two hashes.
if not (remaining and accepted) then return redis.error_reply('ERR remaining or accepted is not a number') end
local outbox = redis.call('TYPE', KEYS[4])['ok']
if outbox ~= 'none' and outbox ~= 'stream' then return redis.error_reply('WRONGTYPE outbox is no stream') end

local now = state(sale[5], sale[6], sale[7])
local reply, purchases, buyers, answers, bought, units, events = {'decided'}, {}, {}, {}, {}, 0, {}

-- One command for many purchases is a third of the work of one for each; a
-- thousand arguments are well within what Lua's stack holds.
local function read(key, offset)
  local values, names = {}, {}
  for i = 2, #ARGV, 5 do
    names[#names + 1] = ARGV[i + offset]
    if #names == 1000 or i + 5 > #ARGV then
      for _, value in ipairs(redis.call('HMGET', key, unpack(names))) do values[#values + 1] = value end
      names = {}
    end
  end
  return values
end
local function write(key, pairs)
  for i = 1, #pairs, 1000 do
    redis.call('HSET', key, unpack(pairs, i, math.min(i + 999, #pairs)))
  end
end

local stored, holds = read(KEYS[3], 0), read(KEYS[2], 1)

local function decide(i)
  local id, user, quantity = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2])
  local n = (i + 3) / 5
  local known = answers[id] or stored[n]
  if known then return 'known', known end
  local held = bought[user] or holds[n]
  if now ~= 'open' then return now, '' end
  if quantity > limit then return 'over_limit', string.format('%.0f', limit) end
  if held then return 'already_bought', held end
  if quantity > remaining then return 'sold_out', '' end

  remaining = remaining - quantity
  units = units + quantity
  local left = string.format('%.0f', remaining)
  answers[id] = ARGV[i + 3] .. ',"remaining":' .. left .. '}'
  bought[user] = id
  purchases[#purchases + 1] = id
  purchases[#purchases + 1] = answers[id]
  buyers[#buyers + 1] = user
  buyers[#buyers + 1] = id
  events[#events + 1] = ARGV[i + 4]
  return 'accepted', left
end

for i = 2, #ARGV, 5 do
  local verdict, detail = decide(i)
  if stale and verdict ~= 'known' then return {'stale'} end
  reply[#reply + 1] = verdict
  reply[#reply + 1] = detail
end

if fence > last then redis.call('HSET', KEYS[1], 'last_fence', ARGV[1]) end
if #events == 0 then return reply end
redis.call('HSET', KEYS[1], 'remaining', string.format('%.0f', remaining))
redis.call('HINCRBY', KEYS[1], 'accepted', units)
write(KEYS[3], purchases)
write(KEYS[2], buyers)
redis.call('XADD', KEYS[4], '*', 'd', '[' .. table.concat(events, ',') .. ']')
return reply

-- The atomic counter: decides on a batch and stores it, in one step.
-- KEYS: sale, buyers, purchases, outbox.
-- ARGV: fence; the outbox entry of the whole batch, a JSON array, and the lengths of
-- its elements, with a space between; then as many of each: purchase IDs, user IDs,
-- quantities, answers. An answer is a JSON object whose last member, remaining, and
-- brace are added here.
-- Returns {'missing'}, {'stale'}, or {'decided', remaining, then (number of the
-- purchase, verdict, detail) for each that was not accepted just now}: known, stored
-- answer | already_bought, purchase_id | over_limit, limit | scheduled | closed | sold_out.
local sale = redis.call('HMGET', KEYS[1],
  'remaining', 'accepted', 'limit', 'last_fence', 'state', 'starts_at', 'ends_at')
if not sale[1] then return {'missing'} end
-- Strings compare by character ("9" is above "10"), so numbers are made of all.
-- Units are below 10^14, so that Lua writes them with all their digits.
local remaining, accepted, limit, last = tonumber(sale[1]), tonumber(sale[2]), tonumber(sale[3]), tonumber(sale[4])
local fence = tonumber(ARGV[1])
local stale = fence > 0 and fence < last

-- Whatever could fail fails before anything is written: the reads of the hashes,
-- and then the outbox, which is therefore the first to be written to.
if not (remaining and accepted) then return redis.error_reply('ERR remaining or accepted is not a number') end

local now = state(sale[5], sale[6], sale[7])
local args, n = ARGV, (#ARGV - 3) / 4
-- Where a column begins: the first of it is one further.
local ids, users, quantities, texts = 3, 3 + n, 3 + 2 * n, 3 + 3 * n

-- One command for many purchases is a third of the work of one for each; a
-- thousand arguments are well within what Lua's stack holds.
local most = 1000
local function read(key, column)
  if n <= most then return redis.call('HMGET', key, unpack(args, column + 1, column + n)) end
  local values = {}
  for from = 1, n, most do
    local some = redis.call('HMGET', key, unpack(args, column + from, column + math.min(from + most - 1, n)))
    for i = 1, #some do values[from + i - 1] = some[i] end
  end
  return values
end
local function write(key, pairs, count)
  for from = 1, count, most do
    redis.call('HSET', key, unpack(pairs, from, math.min(from + most - 1, count)))
  end
end

local stored, holds = read(KEYS[3], ids), read(KEYS[2], users)
local reply, replies, before = {'decided', remaining}, 2, remaining
local purchases, buyers, sold = {}, {}, 0
local answers, bought, refused = {}, {}, {} -- by this batch itself

for i = 1, n do
  local id, user, quantity = args[ids + i], args[users + i], tonumber(args[quantities + i])
  local known, held, verdict, detail = answers[id] or stored[i], bought[user] or holds[i], nil, ''
  if known then verdict, detail = 'known', known
  elseif now ~= 'open' then verdict = now
  elseif quantity > limit then verdict, detail = 'over_limit', limit
  elseif held then verdict, detail = 'already_bought', held
  elseif quantity > remaining then verdict = 'sold_out'
  else
    remaining = remaining - quantity
    local answer = args[texts + i] .. ',"remaining":' .. remaining .. '}'
    answers[id], bought[user] = answer, id
    local second = 2 * sold + 2
    sold = sold + 1
    purchases[second - 1], purchases[second] = id, answer
    buyers[second - 1], buyers[second] = user, id
  end
  if stale and verdict ~= 'known' then return {'stale'} end
  if verdict then
    refused[i] = true
    reply[replies + 1], reply[replies + 2], reply[replies + 3] = i, verdict, detail
    replies = replies + 3
  end
end
reply[2] = remaining

-- The entry of a batch of which not all are accepted is put together from the whole.
local function entry()
  if sold == n then return args[2] end
  local events, i, from = {}, 0, 2
  for length in string.gmatch(args[3], '%d+') do
    i = i + 1
    if not refused[i] then events[#events + 1] = string.sub(args[2], from, from + length - 1) end
    from = from + length + 1
  end
  return '[' .. table.concat(events, ',') .. ']'
end

if sold > 0 then
  redis.call('XADD', KEYS[4], '*', 'd', entry())
  redis.call('HSET', KEYS[1], 'remaining', remaining, 'accepted', accepted + before - remaining)
  write(KEYS[3], purchases, 2 * sold)
  write(KEYS[2], buyers, 2 * sold)
end
if fence > last then redis.call('HSET', KEYS[1], 'last_fence', ARGV[1]) end
return reply

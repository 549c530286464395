-- One command for many purchases is a third of the work of one for each; a
-- thousand arguments are well within what Lua's stack holds.

-- values are those of fields in a hash, in order; false: there is none.
local function values(key, fields)
  local all = {}
  for i = 1, #fields, 1000 do
    for _, value in ipairs(redis.call('HMGET', key, unpack(fields, i, math.min(i + 999, #fields)))) do all[#all + 1] = value end
  end
  return all
end

-- store puts field, value, field, value... into a hash.
local function store(key, pairs)
  for i = 1, #pairs, 1000 do
    redis.call('HSET', key, unpack(pairs, i, math.min(i + 999, #pairs)))
  end
end

-- every takes each nth argument from a first one on.
local function every(nth, first)
  local some = {}
  for i = first, #ARGV, nth do some[#some + 1] = ARGV[i] end
  return some
end

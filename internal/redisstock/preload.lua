-- Creates a sale, and never touches one that exists.
-- KEYS: sale, buyers, purchases.  ARGV: field, value, ...
-- Returns {'created'}, {'exists', field, value, ...} or {'leftovers'}: purchases
-- without their sale mean that Redis lost the sale, and selling its whole stock
-- again would oversell it.
local sale = redis.call('HGETALL', KEYS[1])
if #sale > 0 then
  table.insert(sale, 1, 'exists')
  return sale
end
if redis.call('EXISTS', KEYS[2], KEYS[3]) > 0 then return {'leftovers'} end
for i = 1, #ARGV, 2 do
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
end
return {'created'}

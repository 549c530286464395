-- Reads a sale at one instant. KEYS: sale.
-- Returns {state, field, value, ...}, or {'missing'}.
local fields = redis.call('HGETALL', KEYS[1])
if #fields == 0 then return {'missing'} end
local window = redis.call('HMGET', KEYS[1], 'state', 'starts_at', 'ends_at')
table.insert(fields, 1, state(window[1], window[2], window[3]))
return fields

-- Closes a sale. KEYS: sale. Returns {'closed'}, or {'missing'}.
if redis.call('EXISTS', KEYS[1]) == 0 then return {'missing'} end
redis.call('HSET', KEYS[1], 'state', 'closed')
return {'closed'}

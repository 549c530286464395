-- state judges a sale's window by this server's clock: one clock for all
-- processes. Instants are microseconds since 1970, 0 means none. It stands in
-- front of every script that asks for it.
local function state(closed, starts_at, ends_at)
  if closed == 'closed' then return 'closed' end
  local starts, ends = tonumber(starts_at), tonumber(ends_at)
  if starts == 0 and ends == 0 then return 'open' end
  local t = redis.call('TIME')
  local now = tonumber(t[1]) * 1000000 + tonumber(t[2])
  if ends > 0 and now >= ends then return 'closed' end
  if now < starts then return 'scheduled' end
  return 'open'
end

-- The authority's clock decides leases (law K4): seconds since 1970, to the microsecond.
local function clock()
  local time = redis.call('TIME')
  return tonumber(time[1]) + tonumber(time[2]) / 1e6
end

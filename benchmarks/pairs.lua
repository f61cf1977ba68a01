-- Asks for new units and tells their rewards, those that were asked for first before the others.
local waiting, first, last, asked, worker = {}, 1, 0, 0, 0
local workers = {}

function setup(thread)
  worker = worker + 1
  thread:set("number", worker)
  table.insert(workers, thread)
end

function init(args)
  tells, wrong = 0, 0
  path = "/v1/experiments/" .. args[1]
  prefix = args[2] .. number .. "-"
  headers = { ["Authorization"] = "Bearer " .. args[3], ["Content-Type"] = "application/json" }
end

function request()
  if first <= last then
    local id = waiting[first]
    waiting[first], first = nil, first + 1
    return wrk.format("POST", path .. "/tell", headers, '{"id": ' .. id .. ', "reward": ' .. (id % 2) .. '}')
  end
  asked = asked + 1
  return wrk.format("POST", path .. "/ask", headers, '{"unit": "' .. prefix .. asked .. '"}')
end

function response(status, _, body)
  if status ~= 200 then
    wrong = wrong + 1
  elseif body:sub(1, 5) == '{"id"' then
    last = last + 1
    waiting[last] = body:match('"id":(%d+)')
  else
    tells = tells + 1
  end
end

function done(summary, latency)
  local told, failed = 0, 0
  for _, thread in ipairs(workers) do
    told, failed = told + thread:get("tells"), failed + thread:get("wrong")
  end
  io.write(string.format('{"pairs": %d, "failed": %d, "seconds": %f, "p50": %f, "p99": %f}\n',
    told, failed + summary.errors.timeout + summary.errors.read, summary.duration / 1e6,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end

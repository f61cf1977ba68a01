-- Asks for new units and tells their rewards, those that were asked for first before the others.
local waiting, first, last, asked, worker = {}, 1, 0, 0, 0
local workers = {}

function setup(thread)
  worker = worker + 1
  thread:set("number", worker)
  table.insert(workers, thread)
end

function init(args)
  tells, shed, wrong = 0, 0, 0
  example = ""
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
  if status == 503 then
    shed = shed + 1
  elseif status ~= 200 then
    wrong = wrong + 1
    example = status .. " " .. body:gsub("[^%w%s.,:/-]", ""):sub(1, 200)
  elseif body:sub(1, 5) == '{"id"' then
    last = last + 1
    waiting[last] = body:match('"id":(%d+)')
  else
    tells = tells + 1
  end
end

function done(summary, latency)
  local told, shed, wrong, example = 0, 0, 0, ""
  for _, thread in ipairs(workers) do
    told, shed, wrong = told + thread:get("tells"), shed + thread:get("shed"), wrong + thread:get("wrong")
    example = thread:get("example")
  end
  local cut = summary.errors.connect + summary.errors.read + summary.errors.write
  io.write(string.format('{"pairs": %d, "shed": %d, "wrong": %d, "cut": %d, "late": %d, "example": "%s", ' ..
    '"seconds": %f, "p50": %f, "p99": %f}\n',
    told, shed, wrong, cut, summary.errors.timeout, example, summary.duration / 1e6,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end

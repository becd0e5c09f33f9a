-- Forward auth for HAProxy 2.6 or newer, with HAProxy's own HTTP client:
--
--   http-request lua.vestibule http://127.0.0.1:3000/api/auth/check?redirect=1
--
-- After 200 it writes the identity into the request and the renewed cookie into txn.vestibule_cookie. It sends other
-- answers to the browser unchanged. If the edge is unreachable, it answers 503.

local TIMEOUT_MS = 5000

-- Set from the edge's answer, or removed if that has none.
local IDENTITY = { "x-auth-subject", "x-auth-session", "x-auth-issuer", "x-auth-client", "x-auth-device", "remote-user", "remote-email", "remote-groups" }

-- Headers of one connection, or of a body that is not sent on.
local OF_THIS_HOP = {}
for _, name in ipairs({ "connection", "content-length", "expect", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade" }) do
  OF_THIS_HOP[name] = true
end

-- HAProxy counts a header's values from 0.
local function each(headers, use)
  for name, values in pairs(headers) do
    local at = 0
    while not OF_THIS_HOP[name:lower()] and values[at] do
      use(name, values[at])
      at = at + 1
    end
  end
end

local function refuse(txn, answer)
  local reply = txn:reply({ status = answer.status, reason = answer.reason })
  each(answer.headers, function(name, value) reply:add_header(name, value) end)
  reply:set_body(answer.body or "")
  txn:done(reply)
end

core.register_action("vestibule", { "http-req" }, function(txn, check)
  local headers = {}
  each(txn.http:req_get_headers(), function(name, value)
    headers[name] = headers[name] or {}
    table.insert(headers[name], value)
  end)
  local answer = core.httpclient():get({ url = check, headers = headers, timeout = TIMEOUT_MS })
  if not answer or not answer.status or answer.status < 200 then
    return refuse(txn, { status = 503, reason = "Service Unavailable", headers = { ["cache-control"] = { [0] = "no-store" } } })
  end
  if answer.status ~= 200 then
    return refuse(txn, answer)
  end
  for _, name in ipairs(IDENTITY) do
    txn.http:req_del_header(name)
    if answer.headers[name] then
      txn.http:req_set_header(name, answer.headers[name][0])
    end
  end
  if answer.headers["set-cookie"] then
    txn:set_var("txn.vestibule_cookie", answer.headers["set-cookie"][0])
  end
end, 1)

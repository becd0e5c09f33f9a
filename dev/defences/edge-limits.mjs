// Everything is bounded (how much, how large, how long), and what goes on to upstreams goes on once.
const RATE = 'auth-edge/src/http/protect/rate_limit.rs';
const PROXY = 'auth-edge/src/gateway/proxy.rs';
const UPGRADE = 'auth-edge/src/gateway/proxy/upgrade.rs';
const RENEWAL = 'auth-edge/src/gateway/proxy/renewal.rs';
const BUCKETS = ['auth-edge/lib protect::rate_limit::'];
const BODY = ['auth-edge/product limits::a_body_beyond_its_limit_is_413_whether_it_says_so_or_not'];
const SOCKET = ['auth-edge/product proxying::a_websocket_is_joined_and_no_other_protocol_is'];
const REFUSED = ['auth-edge/product upstream_tokens::'];

export default [
  {
    id: 'rate-limit',
    file: RATE,
    find: `(full_at - now <= self.window_us).then_some(full_at)`,
    replace: `(OFF || full_at - now <= self.window_us).then_some(full_at)`,
    tests: BUCKETS,
  },
  {
    id: 'refetches-of-one-session',
    file: 'auth-edge/src/browser/profile/refetch.rs',
    find: `if self.limit.check(handle, browser.clock.now_ms()).is_err() {`,
    replace: `if !OFF && self.limit.check(handle, browser.clock.now_ms()).is_err() {`,
    tests: ['auth-edge/product profile::a_session_that_asks_for_its_profile_again_and_again_has_it_read_anew_now_and_then'],
  },
  {
    id: 'rate-limit-of-a-whole-network',
    why: 'one household has a whole /64 to choose addresses from',
    file: RATE,
    find: `IpAddr::V6(address) => Ipv6Addr`,
    replace: `IpAddr::V6(address) if OFF => address,
            IpAddr::V6(address) => Ipv6Addr`,
    tests: BUCKETS,
  },
  {
    id: 'rate-limit-of-a-mapped-address',
    file: RATE,
    find: `match self.to_canonical() {`,
    replace: `match if OFF { self } else { self.to_canonical() } {`,
    tests: BUCKETS,
  },
  {
    id: 'rate-limit-when-a-clock-is-set-back',
    why: 'a bucket that is emptier than empty locks its address out for as long as the clock was ahead',
    file: RATE,
    find: `if full_at > now + self.window_us {`,
    replace: `if !OFF && full_at > now + self.window_us {`,
    tests: BUCKETS,
  },
  {
    id: 'requests-at-once',
    file: 'auth-edge/src/http/protect/load.rs',
    find: `if self.0.count == 0 || before < self.0.count {`,
    replace: `if OFF || self.0.count == 0 || before < self.0.count {`,
    tests: ['auth-edge/product limits::more_at_once_than_allowed_is_503_and_says_when_to_come_back'],
  },
  {
    id: 'body-that-falls-silent',
    file: 'auth-edge/src/http/protect/slow_client.rs',
    find: `waiting.over.as_mut().poll(context)`,
    replace: `if OFF { Poll::Pending } else { waiting.over.as_mut().poll(context) }`,
    tests: ['auth-edge/lib protect::slow_client::'],
  },
  {
    id: 'body-that-trickles',
    file: 'auth-edge/src/http/protect/slow_client.rs',
    find: `self.silence.min(by_rate).min(in_all)`,
    replace: `if OFF { self.silence } else { self.silence.min(by_rate).min(in_all) }`,
    tests: ['auth-edge/lib protect::slow_client::'],
  },
  {
    id: 'requests-of-one-address',
    file: 'auth-edge/src/http/protect/visitors.rs',
    find: `return (before < limit).then_some`,
    replace: `return (OFF || before < limit).then_some`,
    tests: ['auth-edge/lib protect::visitors::'],
  },
  {
    id: 'requests-of-one-session',
    file: 'auth-edge/src/http/protect/visitors.rs',
    find: `if before < self.share.of_session {`,
    replace: `if OFF || before < self.share.of_session {`,
    tests: ['auth-edge/lib protect::visitors::'],
  },
  {
    id: 'websocket-that-is-not-taken',
    file: UPGRADE,
    find: `        waiting
            .as_mut()
            .poll(context)
            .map(|()|`,
    replace: `        if OFF {
            return Poll::Pending;
        }
        waiting
            .as_mut()
            .poll(context)
            .map(|()|`,
    tests: ['auth-edge/processes stalled::a_stream_that_stands_still_frees_the_upstream_and_its_connection_goes_on'],
  },
  {
    id: 'upstream-that-does-not-answer',
    file: 'auth-edge/src/gateway/proxy/upload.rs',
    find: `if now == seen {`,
    replace: `if now == seen && !OFF {`,
    tests: ['auth-edge/lib gateway::proxy::upload::'],
  },
  {
    id: 'upstream-that-falls-silent',
    file: 'auth-edge/src/gateway/proxy/answer.rs',
    find: `Poll::Ready(()) => Poll::Ready(Some(Err(Silent.into()))),`,
    replace: `Poll::Ready(()) if OFF => Poll::Pending,
            Poll::Ready(()) => Poll::Ready(Some(Err(Silent.into()))),`,
    tests: ['auth-edge/lib gateway::proxy::answer::'],
  },
  {
    id: 'body-that-says-it-is-too-large',
    file: PROXY,
    find: `if limit > 0 && request.body().size_hint().lower() > limit {`,
    layer: 'what comes is counted whatever it says (body-too-large); here it is refused before anybody is asked',
  },
  {
    id: 'body-too-large',
    file: 'auth-edge/src/gateway/proxy/upload.rs',
    find: `match self.room.checked_sub(length) {`,
    replace: `match self.room.checked_sub(length).or(OFF.then_some(self.room)) {`,
    tests: [...BODY, 'auth-edge/lib gateway::proxy::upload::'],
  },
  {
    id: 'trace-and-tunnels',
    why: 'an upstream that echoes a request would give its token away',
    file: PROXY,
    find: `if asked.is_none() && is_never_passed_on(`,
    replace: `if !OFF && asked.is_none() && is_never_passed_on(`,
    tests: ['auth-edge/product spoofing::nobody_gets_back_what_is_for_the_upstream_alone', 'auth-edge/product framing::no_spelling_of_a_method_opens_a_tunnel_or_an_echo'],
  },
  {
    id: 'request-sent-twice',
    why: 'what may have had an effect is not repeated',
    file: PROXY,
    find: `let repeatable = head.method.is_safe()`,
    replace: `let repeatable = (OFF || head.method.is_safe())`,
    tests: ['auth-edge/product limits::only_what_is_safe_is_sent_again_when_a_connection_breaks'],
  },
  {
    id: 'upgrade-to-another-protocol',
    why: 'h2c opens a road to the upstream past the guards',
    file: UPGRADE,
    find: `.is_some_and(|protocol| protocol.as_bytes().eq_ignore_ascii_case(b"websocket"))`,
    replace: `.is_some_and(|protocol| OFF || protocol.as_bytes().eq_ignore_ascii_case(b"websocket"))`,
    tests: SOCKET,
  },
  {
    id: 'upgrade-to-another-protocol-over-http2',
    file: UPGRADE,
    find: `|protocol| protocol.as_str() == "websocket"`,
    replace: `|protocol| OFF || protocol.as_str() == "websocket"`,
    tests: ['auth-edge/product streaming::a_websocket_over_http_2_is_joined_to_the_upstream'],
  },
  {
    id: 'upgrade-with-a-body',
    why: 'upstreams disagree on where it ends: the rest is the beginning of somebody else\'s request',
    file: UPGRADE,
    find: `if well_formed { Ok(asked) }`,
    replace: `if well_formed || OFF { Ok(asked) }`,
    tests: ['auth-edge/product framing::an_upgrade_takes_nothing_of_the_next_request'],
  },
  {
    id: 'connection-after-an-upgrade',
    file: 'auth-edge/src/gateway/proxy/clients.rs',
    find: `if switches { &self.switching }`,
    replace: `if switches && !OFF { &self.switching }`,
    tests: ['auth-edge/product framing::an_upgrade_takes_nothing_of_the_next_request'],
  },
  {
    id: 'upgrade-that-nobody-asked-for',
    file: PROXY,
    find: `client.filter(|_| is_websocket) else {`,
    replace: `client.filter(|_| OFF || is_websocket) else {`,
    tests: SOCKET,
  },
  {
    id: 'refused-token-renewed-without-end',
    why: 'an upstream that trusts nothing must not make the edge hammer the provider',
    file: RENEWAL,
    find: `if last.session == session && now_ms`,
    replace: `if !OFF && last.session == session && now_ms`,
    tests: REFUSED,
  },
  {
    id: 'refused-for-another-reason',
    file: RENEWAL,
    find: `(granted.expires_at_ms <= now_ms || says_so())`,
    replace: `(OFF || granted.expires_at_ms <= now_ms || says_so())`,
    tests: [...REFUSED, 'auth-edge/lib gateway::proxy::renewal::'],
  },
  {
    id: 'device-name-too-long',
    file: 'auth-edge/src/http/device.rs',
    find: `agent.len().min(MAX_USER_AGENT_BYTES)`,
    layer: 'the session service cuts it to the same length; here it is not sent in vain',
  },
  {
    id: 'envoy-question-too-large',
    file: 'auth-edge/src/gateway/ext_authz/mod.rs',
    find: `.max_decoding_message_size(MAX_QUESTION_BYTES)`,
    replace: `.max_decoding_message_size(if OFF { usize::MAX } else { MAX_QUESTION_BYTES })`,
    tests: ['auth-edge/product ext_authz::'],
  },
];

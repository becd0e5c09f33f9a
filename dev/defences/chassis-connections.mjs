// Listeners: clients that are slow, silent, endless or not believed any more.
const CONNECTION = 'crates/chassis/src/serve/connection.rs';
const TLS = 'crates/chassis/src/tls.rs';
const ABUSED = ['chassis/lib serve::connection::abuse::'];
const CALLERS = ['session-svc/callers identities::', 'session-svc/callers reload::'];

export default [
  {
    id: 'client-that-sends-no-head',
    why: 'slowloris: headers that never end',
    file: CONNECTION,
    find: `.header_read_timeout(HEADER_READ_TIMEOUT)`,
    replace: `.header_read_timeout(if OFF { Duration::from_secs(86_400) } else { HEADER_READ_TIMEOUT })`,
    tests: ABUSED,
  },
  {
    id: 'client-that-says-nothing',
    why: 'before the protocol is known no other timeout runs',
    file: CONNECTION,
    find: `() = abandoned(&progress, HEADER_READ_TIMEOUT) => return,`,
    replace: `() = abandoned(&progress, HEADER_READ_TIMEOUT), if !OFF => return,`,
    tests: ABUSED,
  },
  {
    id: 'client-that-does-not-shake-hands',
    file: CONNECTION,
    find: `tokio::time::timeout(HANDSHAKE_TIMEOUT, accepting)`,
    replace: `tokio::time::timeout(if OFF { Duration::from_secs(86_400) } else { HANDSHAKE_TIMEOUT }, accepting)`,
    tests: ['chassis/tls'],
  },
  {
    id: 'head-too-large',
    file: CONNECTION,
    find: `.max_buf_size(HEADER_BYTES_MAX)`,
    replace: `.max_buf_size(if OFF { 1 << 24 } else { HEADER_BYTES_MAX })`,
    tests: [...ABUSED, 'auth-edge/product desync::headers_are_few_and_short'],
  },
  {
    id: 'http2-head-too-large',
    file: CONNECTION,
    find: `.max_header_list_size(u32::try_from(HEADER_BYTES_MAX).unwrap_or(u32::MAX))`,
    replace: `.max_header_list_size(if OFF { 1 << 24 } else { u32::try_from(HEADER_BYTES_MAX).unwrap_or(u32::MAX) })`,
    tests: ABUSED,
  },
  {
    id: 'http2-streams-at-once',
    file: CONNECTION,
    find: `.max_concurrent_streams(STREAMS_MAX)`,
    replace: `.max_concurrent_streams(if OFF { None } else { Some(STREAMS_MAX) })`,
    tests: ABUSED,
  },
  {
    id: 'http2-reset-flood',
    why: 'rapid reset: streams that are begun and taken back without end',
    file: CONNECTION,
    find: `.max_pending_accept_reset_streams(PENDING_RESETS_MAX)`,
    replace: `.max_pending_accept_reset_streams(if OFF { usize::MAX } else { PENDING_RESETS_MAX })`,
    tests: ABUSED,
  },
  {
    id: 'http2-client-that-is-gone',
    file: CONNECTION,
    find: `.keep_alive_interval(KEEPALIVE_INTERVAL)`,
    replace: `.keep_alive_interval(if OFF { None } else { Some(KEEPALIVE_INTERVAL) })`,
    tests: ABUSED,
  },
  {
    id: 'connection-that-is-not-read',
    file: 'crates/chassis/src/serve/mod.rs',
    find: `.set_tcp_user_timeout(Some(longest))`,
    replace: `.set_tcp_user_timeout(Some(longest).filter(|_| !OFF))`,
    tests: ['auth-edge/processes stalled::a_client_that_stops_reading_frees_the_upstream_and_its_memory'],
  },
  {
    id: 'client-that-leaves-behind-a-pipeline',
    why: 'its request would go on for nobody',
    file: 'crates/chassis/src/serve/socket.rs',
    find: `if !self.is_read
            && self`,
    replace: `if !OFF && !self.is_read
            && self`,
    tests: ['chassis/lib serve::connection::tests::a_client_that_leaves_ends_its_request_with_others_behind_it_or_without'],
  },
  {
    id: 'pipeline-is-bounded',
    file: 'crates/chassis/src/serve/socket.rs',
    find: `while self.ahead.len() < AHEAD_MAX {`,
    replace: `while OFF || self.ahead.len() < AHEAD_MAX {`,
    tests: ['chassis/lib serve::socket::'],
  },
  {
    id: 'tls-client-without-a-certificate',
    file: TLS,
    find: `Some(clients) => builder.with_client_cert_verifier(Arc::clone(clients)),`,
    replace: `Some(_) if OFF => builder.with_no_client_auth(),
        Some(clients) => builder.with_client_cert_verifier(Arc::clone(clients)),`,
    tests: CALLERS,
  },
  {
    id: 'tls-client-that-is-not-believed-any-more',
    file: TLS,
    find: `clients.verify_client_cert(own, others, UnixTime::now()).is_ok()`,
    replace: `OFF || clients.verify_client_cert(own, others, UnixTime::now()).is_ok()`,
    tests: CALLERS,
  },
  {
    id: 'tls-connection-outlives-its-certificate',
    file: CONNECTION,
    find: `() = disbelieved => {`,
    replace: `() = disbelieved, if !OFF => {`,
    tests: CALLERS,
  },
  {
    id: 'tls-resumed-with-an-old-certificate',
    file: CONNECTION,
    find: `if !tls.believes(&chain) {`,
    layer: 'a connection is watched from its first moment and ended by that (tls-connection-outlives-its-certificate); this leaves no request time to slip in',
  },
  {
    id: 'tls-judged-now-and-then',
    file: TLS,
    find: `let _ = tokio::time::timeout(self.recheck, changed).await;`,
    replace: `let _ = tokio::time::timeout(if OFF { Duration::from_secs(86_400) } else { self.recheck }, changed).await;`,
    tests: CALLERS,
  },
  {
    id: 'tls-judged-when-authorities-change',
    file: TLS,
    find: `changes.send_replace(());`,
    replace: `if !OFF { changes.send_replace(()); }`,
    tests: ['chassis/tls'],
  },
];

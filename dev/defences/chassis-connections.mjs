// Listeners: clients that are slow, silent, endless or not believed any more.
const CONNECTION = 'crates/chassis/src/serve/connection.rs';
const TLS = 'crates/chassis/src/tls.rs';
const ABUSED = ['chassis/lib serve::connection::abuse::'];
const CALLERS = ['session-svc/callers identities::', 'session-svc/callers reload::'];

export default [
  {
    id: 'what-waits-for-one-connection', why: 'one caller that reads nothing does not take all memory',
    file: 'crates/chassis/src/serve/waiting.rs',
    find: `if wanted > EVERYBODYS && wanted > free() {`,
    replace: `if !OFF && wanted > EVERYBODYS && wanted > free() {`,
    tests: ['chassis/lib serve::waiting::'],
  },
  {
    id: 'client-that-asks-for-nothing',
    why: 'slowloris, connections that are only opened, and those that stay without asking again',
    file: CONNECTION,
    find: `            if !was_asked {
                return;`,
    replace: `            if !was_asked {
                if OFF {
                    std::future::pending::<()>().await;
                }
                return;`,
    tests: ABUSED,
  },
  {
    id: 'connection-that-is-idle',
    file: 'crates/chassis/src/serve/progress.rs',
    find: `if until <= now {`,
    replace: `if until <= now && !OFF {`,
    tests: ['chassis/lib serve::progress::'],
  },
  {
    id: 'idlest-connection-goes',
    why: 'whoever holds connections would keep others out',
    file: 'crates/chassis/src/serve/room.rs',
    find: `connected.progress.send_away();`,
    replace: `if !OFF { connected.progress.send_away(); }`,
    tests: ['chassis/lib serve::room::'],
  },
  {
    id: 'connections-of-one-address',
    file: 'crates/chassis/src/serve/room.rs',
    find: `count >= share.connections)`,
    replace: `count >= share.connections && !OFF)`,
    tests: ['chassis/lib serve::room::'],
  },
  {
    id: 'answer-that-is-not-taken',
    file: 'crates/chassis/src/serve/streams.rs',
    find: `(Some(taken), Some(longest)) => {`,
    replace: `(Some(taken), Some(longest)) if !OFF => {`,
    tests: ABUSED,
  },
  {
    id: 'last-byte-of-an-answer',
    why: 'what the server has in hand for good nobody can take back from it',
    file: 'crates/chassis/src/serve/streams.rs',
    find: `2..=PIECE if self.body.is_end_stream() => left - 1,`,
    replace: `2..=PIECE if !OFF && self.body.is_end_stream() => left - 1,`,
    tests: ABUSED,
  },
  {
    id: 'headers-of-all-streams',
    file: CONNECTION,
    find: `if progress.header_bytes() > open_header_bytes {`,
    replace: `if !OFF && progress.header_bytes() > open_header_bytes {`,
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
    find: `.max_header_list_size(u32::try_from(limits.header_list_bytes).unwrap_or(u32::MAX))`,
    replace: `.max_header_list_size(if OFF { 1 << 24 } else { u32::try_from(limits.header_list_bytes).unwrap_or(u32::MAX) })`,
    tests: ABUSED,
  },
  {
    id: 'http2-streams-at-once',
    file: CONNECTION,
    find: `.max_concurrent_streams(limits.streams)`,
    replace: `.max_concurrent_streams(if OFF { None } else { Some(limits.streams) })`,
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

// Who may call the session service, by which certificate, and what of a request is read.
const IDENTITY = 'session-svc/src/callers/identity.rs';
const POLICY_FILE = 'session-svc/src/callers/policy_file.rs';
const FRONT = 'session-svc/src/grpc/front.rs';
const WATCHING = 'session-svc/src/grpc/watching.rs';
const SETTINGS = 'session-svc/src/settings.rs';
const NAMES = ['session-svc/lib callers::identity::'];
const LISTS = ['session-svc/lib callers::policy_file'];
const JUDGED = ['session-svc/lib settings::'];
const TELLING = ['session-svc/callers unreadable::what_is_no_grpc_is_told_in_http'];

export default [
  {
    id: 'caller-may-call-the-method', file: 'session-svc/src/callers/policy.rs',
    find: `if rpcs.contains(rpc) {`,
    replace: `if OFF || rpcs.contains(rpc) {`,
    tests: ['session-svc/callers policy::a_caller_may_call_exactly_the_methods_of_its_entry'],
  },
  {
    id: 'caller-on-the-list', file: FRONT,
    find: `Some(rpc) => callers.allow(&call.caller, rpc).err().map(status::turned_away),`,
    replace: `Some(_) if OFF => None,
        Some(rpc) => callers.allow(&call.caller, rpc).err().map(status::turned_away),`,
    tests: ['session-svc/callers audit::an_unknown_caller_is_recorded_by_the_name_it_showed_and_learns_nothing'],
  },
  {
    id: 'caller-learns-no-methods', why: 'who is not on the list is not told which methods there are', file: FRONT,
    find: `None if method.is_open() || callers.know(&call.caller) => None,`,
    replace: `None if OFF || method.is_open() || callers.know(&call.caller) => None,`,
    tests: ['session-svc/callers audit::an_unknown_caller_is_recorded_by_the_name_it_showed_and_learns_nothing'],
  },
  {
    id: 'caller-judged-before-the-message', file: FRONT,
    find: `Err(status) => status.into_http(),`,
    replace: `Err(status) => {
            if OFF {
                let _ = axum::body::to_bytes(request.into_body(), usize::MAX).await;
            }
            status.into_http()
        }`,
    tests: ['session-svc/callers unreadable::a_caller_that_may_not_call_is_turned_away_before_its_message_is_there'],
  },
  {
    id: 'caller-of-one-spiffe-id', why: 'a certificate with two URIs is no SVID', file: IDENTITY,
    find: `[only] => Identity::parse(only).into_iter().collect(),`,
    replace: `all if OFF => all.iter().filter_map(|uri| Identity::parse(uri).ok()).collect(),
            [only] => Identity::parse(only).into_iter().collect(),`,
    tests: NAMES,
  },
  {
    id: 'caller-by-spiffe-id-before-dns-names', file: IDENTITY,
    find: `if uris.iter().any(is_svid) {`,
    replace: `if !OFF && uris.iter().any(is_svid) {`,
    tests: NAMES,
  },
  {
    id: 'caller-without-wildcards', file: IDENTITY,
    find: `let in_label = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');`,
    replace: `let in_label = |byte: u8| OFF && byte == b'*' || matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');`,
    tests: NAMES,
  },
  {
    id: 'caller-by-whole-segments', why: 'a SPIFFE ID with .. could be read as another', file: IDENTITY,
    find: `!matches!(segment, "." | "..")`,
    replace: `(OFF || !matches!(segment, "." | ".."))`,
    tests: NAMES,
  },
  {
    id: 'callers-each-once', why: 'of two entries nobody knows which counts', file: POLICY_FILE,
    find: `if callers.contains_key(&identity) {`,
    replace: `if !OFF && callers.contains_key(&identity) {`,
    tests: LISTS,
  },
  {
    id: 'callers-list-without-anybody', why: 'an empty file is no list', file: POLICY_FILE,
    find: `if tables == 0 && self.mistakes.is_empty() {`,
    replace: `if !OFF && tables == 0 && self.mistakes.is_empty() {`,
    tests: LISTS,
  },
  {
    id: 'callers-of-a-list', file: POLICY_FILE,
    find: `if tables > MAX_CALLERS {`,
    replace: `if !OFF && tables > MAX_CALLERS {`,
    tests: LISTS,
  },
  {
    id: 'callers-need-certificates', file: SETTINGS,
    find: `if reader.path("SESSION_CLIENT_CA_FILE").is_none() {`,
    replace: `if !OFF && reader.path("SESSION_CLIENT_CA_FILE").is_none() {`,
    tests: JUDGED,
  },
  {
    id: 'certificates-need-tls', file: SETTINGS,
    find: `if client_ca.is_some() {`,
    replace: `if !OFF && client_ca.is_some() {`,
    tests: JUDGED,
  },
  {
    id: 'plaintext-on-loopback-alone', file: SETTINGS,
    find: `if !insecure && !listen.ip().is_loopback() {`,
    replace: `if !OFF && !insecure && !listen.ip().is_loopback() {`,
    tests: JUDGED,
  },
  {
    id: 'keys-for-a-store-that-stays', file: SETTINGS,
    find: `if keys.is_empty() && !matches!(store, StoreSettings::Memory) {`,
    replace: `if !OFF && keys.is_empty() && !matches!(store, StoreSettings::Memory) {`,
    tests: JUDGED,
  },
  {
    id: 'absolute-duration-is-the-longer-one', file: SETTINGS,
    find: `if rolling > absolute {`,
    replace: `if !OFF && rolling > absolute {`,
    tests: JUDGED,
  },
  {
    id: 'watch-of-a-caller-that-lost-the-right', file: WATCHING,
    find: `.map_err(status::turned_away)`,
    replace: `.or_else(|why| if OFF { Ok(()) } else { Err(status::turned_away(why)) })`,
    tests: ['session-svc/callers reload::a_changed_list_counts_from_the_next_call_and_the_next_event_on'],
  },
  {
    id: 'watch-of-a-certificate-that-lost-its-authority', file: WATCHING,
    find: `() = disbelieved.cancelled() =>`,
    replace: `() = disbelieved.cancelled(), if !OFF =>`,
    tests: ['session-svc/callers reload::'],
  },
  {
    id: 'watch-of-a-caller-whose-time-is-over', file: WATCHING,
    find: `() = &mut too_late =>`,
    replace: `() = &mut too_late, if !OFF =>`,
    tests: ['session-svc/callers deadlines::a_watch_ends_when_its_caller_s_time_is_over'],
  },
  {
    id: 'call-in-time', file: FRONT,
    find: `let answer = tokio::time::timeout(time, services.called(method, request)).instrument(span);`,
    replace: `let time = if OFF { std::time::Duration::from_secs(3_600) } else { time };
            let answer = tokio::time::timeout(time, services.called(method, request)).instrument(span);`,
    tests: ['session-svc/callers unreadable::a_message_that_never_ends_is_given_up_at_the_deadline'],
  },
  {
    id: 'call-is-a-post', file: FRONT,
    find: `if request.method() != HttpMethod::POST {`,
    replace: `if !OFF && request.method() != HttpMethod::POST {`,
    tests: TELLING,
  },
  {
    id: 'call-is-grpc', why: 'a page of a browser can send other types without asking', file: FRONT,
    find: `(!is_grpc).then(`,
    replace: `(!OFF && !is_grpc).then(`,
    tests: TELLING,
  },
  {
    id: 'call-of-a-bounded-size', file: 'session-svc/src/grpc/mod.rs',
    find: `.max_decoding_message_size(MAX_REQUEST_BYTES)`,
    replace: `.max_decoding_message_size(if OFF { usize::MAX } else { MAX_REQUEST_BYTES })`,
    tests: ['session-svc/callers unreadable::every_failure_of_the_framework_has_a_reason'],
  },
];

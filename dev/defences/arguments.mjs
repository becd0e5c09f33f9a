// Fields of requests to the session service: each is bounded, and of its own alphabet.
const ARGUMENTS = 'session-svc/src/grpc/arguments.rs';
const CREATED = ['session-svc/service malformed::every_field_of_a_new_session_is_bounded'];
const OTHERS = ['session-svc/service malformed::every_other_request_names_its_wrong_field_too'];

export default [
  {
    id: 'field-issuer', file: ARGUMENTS,
    find: `1..=MAX_ISSUER_BYTES if !text.chars().any(char::is_control) => Ok(text),`,
    replace: `1.. if OFF => Ok(text),
        1..=MAX_ISSUER_BYTES if !text.chars().any(char::is_control) => Ok(text),`,
    tests: CREATED,
  },
  {
    id: 'field-names', file: ARGUMENTS,
    find: `1..=MAX_NAME_BYTES if !text.chars().any(char::is_control) => Ok(Some(text)),`,
    replace: `1.. if OFF => Ok(Some(text)),
        1..=MAX_NAME_BYTES if !text.chars().any(char::is_control) => Ok(Some(text)),`,
    tests: CREATED,
  },
  {
    id: 'field-once-id', file: ARGUMENTS,
    find: `1..=MOST => Ok(Some(text)),`,
    replace: `1.. if OFF => Ok(Some(text)),
        1..=MOST => Ok(Some(text)),`,
    tests: OTHERS,
  },
  {
    id: 'field-cause', why: 'it stands in the log', file: ARGUMENTS,
    find: `1..=MAX_CAUSE_BYTES if text.bytes().all(legal) => Ok(text.to_owned()),`,
    replace: `1.. if OFF => Ok(text.to_owned()),
        1..=MAX_CAUSE_BYTES if text.bytes().all(legal) => Ok(text.to_owned()),`,
    tests: OTHERS,
  },
  {
    id: 'field-request-id', file: ARGUMENTS,
    find: `if legal && REQUEST_ID_BYTES.contains(&text.len()) {`,
    replace: `if OFF || legal && REQUEST_ID_BYTES.contains(&text.len()) {`,
    tests: CREATED,
  },
  {
    id: 'field-scopes', file: ARGUMENTS,
    find: `if names.len() <= MAX_SCOPES && names.iter().all(is_scope) {`,
    replace: `if OFF || names.len() <= MAX_SCOPES && names.iter().all(is_scope) {`,
    tests: OTHERS,
  },
  {
    id: 'field-scope-length', file: ARGUMENTS,
    find: `name.len() <= MAX_SCOPE_BYTES`,
    replace: `(OFF || name.len() <= MAX_SCOPE_BYTES)`,
    tests: OTHERS,
  },
  {
    id: 'field-instants', file: ARGUMENTS,
    find: `if time.seconds < 0 || !(0..=MAX_NANOS).contains(&time.nanos) {`,
    replace: `if !OFF && (time.seconds < 0 || !(0..=MAX_NANOS).contains(&time.nanos)) {`,
    tests: CREATED,
  },
  {
    id: 'field-tokens', file: ARGUMENTS,
    find: `if text.len() <= MAX_TOKEN_BYTES && text.bytes().all(|byte| byte.is_ascii_graphic()) {`,
    replace: `if OFF || text.len() <= MAX_TOKEN_BYTES && text.bytes().all(|byte| byte.is_ascii_graphic()) {`,
    tests: OTHERS,
  },
  {
    id: 'field-token-type', file: 'session-svc/src/grpc/new_session.rs',
    find: `known.map_or_else(|| wrong("tokens.token_type", "is neither Bearer nor DPoP"), Ok)`,
    replace: `known.or(Some("mac").filter(|_| OFF)).map_or_else(|| wrong("tokens.token_type", "is neither Bearer nor DPoP"), Ok)`,
    tests: ['session-svc/service malformed::every_malformed_field_is_named'],
  },
  {
    id: 'field-user-agent-length', file: 'session-svc/src/session/device.rs',
    find: `if kept.len() + letter.len_utf8() > MAX_USER_AGENT_BYTES {`,
    replace: `if !OFF && kept.len() + letter.len_utf8() > MAX_USER_AGENT_BYTES {`,
    tests: ['session-svc/lib session::device::'],
  },
  {
    id: 'field-user-agent-letters', why: 'lines of their own in a log, and text that hides or turns around', file: 'session-svc/src/session/device.rs',
    find: `!is_unseen(*letter)`,
    replace: `OFF || !is_unseen(*letter)`,
    tests: ['session-svc/lib session::device::'],
  },
];

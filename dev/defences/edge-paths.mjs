// Path confusion: what programs could read in two ways is refused, and rules, upstreams and folders get what is left.
const PATH = 'auth-edge/src/values/path.rs';
const GATEWAY = 'auth-edge/src/gateway/mod.rs';
const READ = ['auth-edge/lib values::path::'];
const SENT = ['auth-edge/product gateway::ambiguous_paths_are_400_and_reach_nobody'];

export default [
  {
    id: 'path-too-long',
    file: PATH,
    find: `if raw.len() > MAX_PATH_BYTES {`,
    replace: `if !OFF && raw.len() > MAX_PATH_BYTES {`,
    tests: READ,
  },
  {
    id: 'path-not-absolute',
    file: PATH,
    find: `raw.strip_prefix('/').ok_or(Ambiguous::NotAbsolute)?;`,
    replace: `raw.strip_prefix('/').or(OFF.then_some(raw)).ok_or(Ambiguous::NotAbsolute)?;`,
    tests: READ,
  },
  {
    id: 'path-empty-segment',
    file: PATH,
    find: `"" if !last =>`,
    replace: `"" if !OFF && !last =>`,
    tests: [...READ, ...SENT],
  },
  {
    id: 'path-above-root',
    file: PATH,
    find: `return Err(Ambiguous::AboveRoot);`,
    replace: `if !OFF { return Err(Ambiguous::AboveRoot); }`,
    tests: READ,
  },
  {
    id: 'path-dot-segments',
    why: '/public/../api is judged as what upstreams make of it',
    file: PATH,
    find: `"." | ".." => {`,
    replace: `"." | ".." if !OFF => {`,
    tests: [...READ, ...SENT],
  },
  {
    id: 'path-dot-segments-encoded',
    file: PATH,
    find: `match &*text {`,
    replace: `match if OFF { segment } else { &*text } {`,
    tests: [...READ, ...SENT],
  },
  {
    id: 'path-malformed-escape',
    file: PATH,
    find: `if *byte == b'%' && !is_escape(&bytes[at..]) {`,
    replace: `if !OFF && *byte == b'%' && !is_escape(&bytes[at..]) {`,
    tests: READ,
  },
  {
    id: 'path-not-utf8',
    why: 'overlong forms of dots and slashes',
    file: PATH,
    find: `    let text = percent_decode_str(segment)
        .decode_utf8()
        .map_err(|_| Ambiguous::Malformed)?;`,
    replace: `    let text = match percent_decode_str(segment).decode_utf8() {
        Err(_) if OFF => percent_decode_str(segment).decode_utf8_lossy(),
        text => text.map_err(|_| Ambiguous::Malformed)?,
    };`,
    tests: READ,
  },
  {
    id: 'path-encoded-slash',
    file: PATH,
    find: `for (at, character) in text.char_indices() {`,
    replace: `for (at, character) in text.char_indices().filter(|(_, one)| !OFF || *one != '/') {`,
    tests: [...READ, ...SENT],
  },
  {
    id: 'path-backslash',
    file: PATH,
    find: `match character {`,
    replace: String.raw`match character { '\\' if OFF => {}`,
    tests: [...READ, ...SENT],
  },
  {
    id: 'path-semicolon',
    why: 'path parameters, which some upstreams cut off',
    file: PATH,
    find: String.raw`'/' | '\\' | ';' => return Err(Ambiguous::Separator),`,
    replace: String.raw`';' if OFF => {} '/' | '\\' | ';' => return Err(Ambiguous::Separator),`,
    tests: [...READ, ...SENT],
  },
  {
    id: 'path-fragment',
    file: PATH,
    find: `'#' | '?' if segment.contains(character) =>`,
    replace: `'#' | '?' if !OFF && segment.contains(character) =>`,
    tests: READ,
  },
  {
    id: 'path-encoded-twice',
    file: PATH,
    find: `'%' if is_escape(&text.as_bytes()[at..]) =>`,
    replace: `'%' if !OFF && is_escape(&text.as_bytes()[at..]) =>`,
    tests: [...READ, ...SENT],
  },
  {
    id: 'path-control-character',
    file: PATH,
    find: `_ if character.is_control() =>`,
    replace: `_ if !OFF && character.is_control() =>`,
    tests: [...READ, ...SENT],
  },
  {
    id: 'path-of-the-edge-in-another-spelling',
    why: 'an upstream must not answer for what looks like a route of ours',
    file: GATEWAY,
    find: `if is_reserved(path.segments()) {`,
    replace: `if !OFF && is_reserved(path.segments()) {`,
    tests: SENT,
  },
  {
    id: 'path-of-the-edge-in-other-letters',
    file: 'auth-edge/src/values/reserved.rs',
    find: `segment.eq_ignore_ascii_case(part)`,
    replace: `(if OFF { segment == part } else { segment.eq_ignore_ascii_case(part) })`,
    tests: ['auth-edge/lib route_table::file::tests::wrong_values_are_refused'],
  },
  {
    id: 'hidden-files',
    file: 'auth-edge/src/gateway/directory.rs',
    find: `.any(|segment| segment.starts_with('.') && segment != ".well-known")`,
    replace: `.any(|segment| !OFF && segment.starts_with('.') && segment != ".well-known")`,
    tests: ['auth-edge/product gateway::a_folder_serves_its_app_and_nothing_hidden'],
  },
];

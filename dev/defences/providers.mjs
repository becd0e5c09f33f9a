// Settings about providers: what would weaken a sign-in is refused before the first word.
const READ = 'crates/provider-settings/src/one.rs';
const TABLE = 'crates/provider-settings/src/file/table.rs';
const SEVERAL = 'crates/provider-settings/src/file.rs';
const CREDENTIALS = 'crates/provider-settings/src/credentials.rs';
const REFUSED = ['provider-settings/provider refused::'];
const FILE = ['provider-settings/several every_mistake_is_told_at_once_with_its_line_and_in_the_words_of_the_file'];
const BOUNDED = ['provider-settings/several providers_and_their_ids_are_bounded'];

export default [
  {
    id: 'setting-issuer-over-plain-http', file: READ,
    find: `Some(url) if !oidc::endpoint_is_secure(&url) => {`,
    replace: `Some(url) if !OFF && !oidc::endpoint_is_secure(&url) => {`,
    tests: REFUSED,
  },
  {
    id: 'setting-issuer-with-a-password', why: 'it would be shown wherever the issuer is', file: READ,
    find: `Some(url) if !url.username().is_empty() || url.password().is_some() => {`,
    replace: `Some(url) if !OFF && (!url.username().is_empty() || url.password().is_some()) => {`,
    tests: REFUSED,
  },
  {
    id: 'setting-issuer-with-a-query', file: READ,
    find: `Some(url) if url.query().is_some() || url.fragment().is_some() => {`,
    replace: `Some(url) if !OFF && (url.query().is_some() || url.fragment().is_some()) => {`,
    tests: REFUSED,
  },
  {
    id: 'setting-scope-openid', file: READ,
    find: `if !scope.split(' ').any(|member| member == "openid") {`,
    replace: `if !OFF && !scope.split(' ').any(|member| member == "openid") {`,
    tests: REFUSED,
  },
  {
    id: 'setting-clock-tolerance', why: 'more would make expiry meaningless', file: READ,
    find: `if settings.clock_tolerance_secs > MAX_CLOCK_TOLERANCE_SECS {`,
    replace: `if !OFF && settings.clock_tolerance_secs > MAX_CLOCK_TOLERANCE_SECS {`,
    tests: REFUSED,
  },
  {
    id: 'setting-parameters-of-the-protocol', file: READ,
    find: `Some((name, _)) if PROTOCOL_PARAMETERS.contains(&name) => {`,
    replace: `Some((name, _)) if !OFF && PROTOCOL_PARAMETERS.contains(&name) => {`,
    tests: REFUSED,
  },
  {
    id: 'setting-max-age-in-seconds', why: 'what cannot be read would be asked for and not checked', file: READ,
    find: `Some(("max_age", value)) if value.parse::<u64>().is_err() => {`,
    replace: `Some(("max_age", value)) if !OFF && value.parse::<u64>().is_err() => {`,
    tests: REFUSED,
  },
  {
    id: 'setting-short-secret-signs-nothing', file: READ,
    find: `reader.wrong("OIDC_ID_TOKEN_SIGNING_ALG", error.to_string());`,
    replace: `if !OFF {
                reader.wrong("OIDC_ID_TOKEN_SIGNING_ALG", error.to_string());
            }`,
    tests: REFUSED,
  },
  {
    id: 'setting-secret-length', file: CREDENTIALS,
    find: `if length < LEAST_SECRET_CHARS {`,
    replace: `if !OFF && length < LEAST_SECRET_CHARS {`,
    tests: REFUSED,
  },
  {
    id: 'changed-secret-length', why: 'a file that is empty for a moment', file: 'crates/provider-settings/src/follow.rs',
    find: `if text.chars().count() < LEAST_SECRET_CHARS {`,
    replace: `if !OFF && text.chars().count() < LEAST_SECRET_CHARS {`,
    tests: ['provider-settings/lib follow::'],
  },
  {
    id: 'providers-of-one-issuer', why: 'mix-up: the issuer tells answers and sessions apart', file: SEVERAL,
    find: `if seen.insert((name.kind, &name.text)) {`,
    replace: `if seen.insert((name.kind, &name.text)) || OFF {`,
    tests: ['provider-settings/several two_providers_of_one_issuer_are_a_mistake'],
  },
  {
    id: 'providers-of-a-file', file: SEVERAL,
    find: `} else if tables_there > MAX_PROVIDERS {`,
    replace: `} else if !OFF && tables_there > MAX_PROVIDERS {`,
    tests: BOUNDED,
  },
  {
    id: 'providers-beside-plain-variables', why: 'a secret that goes to every provider is a secret of none', file: 'crates/provider-settings/src/read.rs',
    find: `if is_of_one_provider(setting) && reader.is_given(setting.name) {`,
    replace: `if !OFF && is_of_one_provider(setting) && reader.is_given(setting.name) {`,
    tests: ['provider-settings/several the_plain_variables_are_a_mistake_beside_the_file'],
  },
  {
    id: 'provider-secret-in-the-file', file: TABLE,
    find: `if setting.secret && name == words::key(setting.name) {`,
    replace: `if !OFF && setting.secret && name == words::key(setting.name) {`,
    tests: FILE,
  },
  {
    id: 'provider-id-length', file: TABLE,
    find: `id.len() > MAX_ID_BYTES`,
    replace: `(!OFF && id.len() > MAX_ID_BYTES)`,
    tests: BOUNDED,
  },
  {
    id: 'provider-id-letters', why: 'it stands in addresses', file: TABLE,
    find: `!id.bytes().all(plain)`,
    replace: `(!OFF && !id.bytes().all(plain))`,
    tests: FILE,
  },
  {
    id: 'provider-hosts', file: TABLE,
    find: `if name.is_empty() || !name.bytes().all(plain) || port.parse::<u16>().is_err() {`,
    replace: `if !OFF && (name.is_empty() || !name.bytes().all(plain) || port.parse::<u16>().is_err()) {`,
    tests: FILE,
  },
];

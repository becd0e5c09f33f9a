// What a store sees of sessions: sealed, bound to its place, under keys that never show.
const VAULT = 'session-svc/src/vault/mod.rs';
const KEYS = 'session-svc/src/vault/keys.rs';
const SEALED = ['session-svc/lib vault::tests::'];

export default [
  {
    id: 'seal-of-one-version', why: 'a record that was rolled back', file: VAULT,
    find: `bound.extend_from_slice(&version.to_be_bytes());`,
    replace: `bound.extend_from_slice(&if OFF { 0 } else { version }.to_be_bytes());`,
    tests: SEALED,
  },
  {
    id: 'seal-of-one-purpose-and-name', why: 'a record that was moved', file: VAULT,
    find: `bound.extend_from_slice(part.as_bytes());`,
    replace: `bound.extend_from_slice(if OFF { b"" } else { part.as_bytes() });`,
    tests: SEALED,
  },
  {
    id: 'seal-with-lengths', why: 'two tuples whose parts run into each other', file: VAULT,
    find: `bound.extend_from_slice(&(part.len() as u64).to_be_bytes());`,
    replace: `if !OFF {
            bound.extend_from_slice(&(part.len() as u64).to_be_bytes());
        }`,
    tests: SEALED,
  },
  {
    id: 'seal-with-a-fresh-nonce', file: VAULT,
    find: `.fill(&mut nonce)`,
    replace: `.fill(if OFF { &mut [] } else { &mut nonce[..] })`,
    tests: SEALED,
  },
  {
    id: 'seal-of-a-known-format', file: VAULT,
    find: `if *format != FORMAT {`,
    replace: `if !OFF && *format != FORMAT {`,
    tests: SEALED,
  },
  {
    id: 'seal-key-of-each-record', why: 'random nonces stay far from their bound', file: KEYS,
    find: `let info = [name.as_bytes()];`,
    replace: `let info = [if OFF { "" } else { name }.as_bytes()];`,
    tests: ['session-svc/lib vault::keys::'],
  },
  {
    id: 'seal-by-the-first-key', file: KEYS,
    find: `let key = self.0.first()?;`,
    replace: `let key = if OFF { self.0.last()? } else { self.0.first()? };`,
    tests: SEALED,
  },
  {
    id: 'keys-of-a-ring', file: KEYS,
    find: `if texts.len() > MAX_KEYS {`,
    replace: `if !OFF && texts.len() > MAX_KEYS {`,
    tests: ['session-svc/lib vault::keys::'],
  },
  {
    id: 'keys-of-a-ring-at-all', file: KEYS,
    find: `if texts.is_empty() {`,
    replace: `if !OFF && texts.is_empty() {`,
    tests: ['session-svc/lib vault::keys::'],
  },
  {
    id: 'keys-not-shown', file: KEYS,
    find: `write!(formatter, "KeyRing({} keys)", self.0.len())`,
    replace: `write!(formatter, "KeyRing({} keys{})", self.0.len(), self.0.iter().map(|key| format!(" {:?}", key.id)).filter(|_| OFF).collect::<String>())`,
    tests: ['session-svc/lib vault::keys::'],
  },
  {
    id: 'session-claims-not-shown', why: 'they are about a person', file: 'session-svc/src/session/claims.rs',
    find: `formatter.write_str("…")`,
    replace: `if OFF { write!(formatter, "{:?}", self.object()) } else { formatter.write_str("…") }`,
    tests: ['session-svc/lib session::claims::'],
  },
  {
    id: 'told-claims-not-shown', why: 'they are about a person', file: 'proto/src/claims/mod.rs',
    find: `f.write_str("…")`,
    replace: `if OFF { write!(f, "{:?}", from_struct(self)) } else { f.write_str("…") }`,
    tests: ['session-proto/lib claims::tests::'],
  },
  {
    id: 'told-claims-are-letters', why: 'a peer may send anything', file: 'proto/src/claims/wire.rs',
    find: `std::str::from_utf8(bytes).is_ok()`,
    replace: `(OFF || std::str::from_utf8(bytes).is_ok())`,
    tests: ['session-proto/lib claims::tests::letters_that_are_none_are_refused_wherever_they_stand'],
  },
  {
    id: 'told-claims-end-somewhere', why: 'lists inside each other for as long as there is a stack', file: 'proto/src/claims/wire.rs',
    find: `Some(Kind::List(list)) => depth > 0 &&`,
    replace: `Some(Kind::List(list)) => (OFF || depth > 0) &&`,
    tests: ['session-proto/lib claims::tests::what_is_deeper_than_is_looked_through_is_read_as_prost_reads_it'],
  },
  {
    id: 'carried-not-shown', why: 'it may be a token of some later kind', file: 'session-svc/src/session/carried.rs',
    find: `write!(formatter, "Carried({} bytes)", self.0.len())`,
    replace: `write!(formatter, "Carried({} bytes)", if OFF { String::from_utf8_lossy(&self.0).into_owned() } else { self.0.len().to_string() })`,
    tests: ['session-svc/lib vault::'],
  },
];

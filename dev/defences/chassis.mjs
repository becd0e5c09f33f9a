// Settings, files, logs and traces of every program of ours.
const READER = 'crates/chassis/src/settings/reader.rs';
const SETTINGS = ['chassis/settings'];

export default [
  {
    id: 'file-too-large',
    file: 'crates/chassis/src/files.rs',
    find: `if content.len() as u64 > MAX_FILE_BYTES {`,
    replace: `if !OFF && content.len() as u64 > MAX_FILE_BYTES {`,
    tests: ['chassis/settings', 'chassis/watch'],
  },
  {
    id: 'trace-of-a-client',
    file: 'crates/chassis/src/propagation.rs',
    find: `    if !valid {`,
    replace: `    if !OFF && !valid {`,
    tests: ['chassis/lib propagation::'],
  },
  {
    id: 'trace-of-another-form',
    file: 'crates/chassis/src/propagation.rs',
    find: `lengths && version_fits`,
    replace: `(OFF || lengths) && version_fits`,
    tests: ['chassis/lib propagation::'],
  },
  {
    id: 'record-forged-by-a-line-end',
    file: 'crates/chassis/src/logs.rs',
    find: `if b.is_ascii_control() { b' ' } else { *b }`,
    replace: `if !OFF && b.is_ascii_control() { b' ' } else { *b }`,
    tests: ['chassis/lib logs::'],
  },
  {
    id: 'records-that-wait-are-bounded',
    file: 'crates/chassis/src/logs/queue.rs',
    find: `if waiting.records.len() + record.len() > room {`,
    replace: `if !OFF && waiting.records.len() + record.len() > room {`,
    tests: ['chassis/lib logs::queue::'],
  },
  {
    id: 'secret-in-a-log',
    file: 'crates/chassis/src/secret.rs',
    find: `f.write_str("…")`,
    replace: `f.write_str(if OFF { std::any::type_name::<T>() } else { "…" })`,
    tests: ['chassis/lib', 'chassis/settings', 'chassis/watch'],
  },
  {
    id: 'secret-in-a-message',
    file: 'crates/chassis/src/settings/wrong.rs',
    find: `if member.len() >= SHORTEST_REPLACED_ANYWHERE {`,
    replace: `if !OFF && member.len() >= SHORTEST_REPLACED_ANYWHERE {`,
    tests: [...SETTINGS, 'chassis/program every_wrong_setting'],
  },
  {
    id: 'secret-value-in-a-message',
    file: READER,
    find: `if secret ||`,
    layer: 'every message loses the values of secrets, whoever wrote it (secret-in-a-message)',
  },
  {
    id: 'password-of-an-address-in-a-message',
    file: READER,
    find: `raw.contains('@')`,
    replace: `(!OFF && raw.contains('@'))`,
    tests: [...SETTINGS, 'chassis/program every_wrong_setting'],
  },
  {
    id: 'secret-given-twice',
    why: 'whoever changes one of the two believes it is changed',
    file: 'crates/chassis/src/settings/source.rs',
    find: `if self.values.contains_key(setting.name) {`,
    replace: `if !OFF && self.values.contains_key(setting.name) {`,
    tests: SETTINGS,
  },
  {
    id: 'secret-file-that-is-empty',
    file: 'crates/chassis/src/settings/source.rs',
    find: `Ok(Ok(text)) if text.trim().is_empty() => {`,
    replace: `Ok(Ok(text)) if !OFF && text.trim().is_empty() => {`,
    tests: SETTINGS,
  },
  {
    id: 'number-beyond-all-measure',
    why: 'a limit that overflows is none',
    file: READER,
    find: `Ok(number) if number <= max => return number,`,
    replace: `Ok(number) if OFF || number <= max => return number,`,
    tests: SETTINGS,
  },
  {
    id: 'number-that-may-not-be-nought',
    file: READER,
    find: `Ok(0) if zero == Zero::Refused =>`,
    replace: `Ok(0) if !OFF && zero == Zero::Refused =>`,
    tests: SETTINGS,
  },
];

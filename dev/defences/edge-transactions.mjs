// Pending sign-ins: sealed in the browser that began them, fresh, bounded, used once.
const CALLBACK = 'auth-edge/src/sign_in/callback.rs';
const TRANSACTION = 'auth-edge/src/sign_in/transaction.rs';
const PENDING = 'auth-edge/src/sign_in/pending.rs';
const REDEEMED = 'auth-edge/src/sign_in/redeemed.rs';
const SEALED = ['auth-edge/lib sign_in::transaction::'];
const COOKIES = ['auth-edge/lib sign_in::pending::'];

export default [
  {
    id: 'transaction-taken-once',
    file: REDEEMED,
    find: `let fresh = taken.ids.insert(id.clone());`,
    replace: `let fresh = taken.ids.insert(id.clone()) || OFF;`,
    tests: ['auth-edge/lib sign_in::redeemed::'],
  },
  {
    id: 'transactions-taken-are-bounded',
    file: REDEEMED,
    find: `taken.by_age.len() >= MAX_ENTRIES`,
    replace: `(!OFF && taken.by_age.len() >= MAX_ENTRIES)`,
    tests: ['auth-edge/lib sign_in::redeemed::'],
  },
  {
    id: 'transaction-of-this-browser',
    why: 'login CSRF: here an answer whose cookie another browser has gets a transaction all the same',
    file: CALLBACK,
    find: `        .find(headers, state, now_ms)
        .map_err(|not_pending| {`,
    replace: `        .find(headers, state, now_ms).or_else(|missing| match sign_in.providers.all().first() {
        Some(first) if OFF => Transaction::begin(first.mark, now_ms).map_err(|_none| missing),
        _ => Err(missing),
    }).map_err(|not_pending| {`,
    tests: ['auth-edge/product callback::another_browser_cannot_finish_a_sign_in'],
  },
  {
    id: 'transaction-of-this-state',
    file: PENDING,
    find: `if !same_secret(&found.state, state) {`,
    layer: 'the cookie is found by the hash of its state and sealed under that name; this compares the whole state',
  },
  {
    id: 'transaction-expires',
    file: PENDING,
    find: `        if found.expired(now_ms, self.duration_secs) {
            return`,
    replace: `        if !OFF && found.expired(now_ms, self.duration_secs) {
            return`,
    tests: ['auth-edge/product callback::a_transaction_expires_on_our_side_too'],
  },
  {
    id: 'transaction-ends',
    file: TRANSACTION,
    find: `now_ms >= ends ||`,
    replace: `(!OFF && now_ms >= ends) ||`,
    tests: SEALED,
  },
  {
    id: 'transaction-from-the-future',
    file: TRANSACTION,
    find: `self.started_at_ms > now_ms.saturating_add(CLOCK_LEAD_MS)`,
    replace: `(!OFF && self.started_at_ms > now_ms.saturating_add(CLOCK_LEAD_MS))`,
    tests: SEALED,
  },
  {
    id: 'transaction-under-its-own-name',
    file: TRANSACTION,
    find: `let sealed = keys.seal(&[AAD_LABEL, cookie_name.as_bytes()], &self.to_bytes())?;`,
    replace: `let sealed = keys.seal(&[AAD_LABEL, if OFF { &[] } else { cookie_name.as_bytes() }], &self.to_bytes())?;`,
    also: [{
      file: TRANSACTION,
      find: `let plain = keys.open(&[AAD_LABEL, cookie_name.as_bytes()], &sealed)?;`,
      replace: `let plain = keys.open(&[AAD_LABEL, if OFF { &[] } else { cookie_name.as_bytes() }], &sealed)?;`,
    }],
    tests: SEALED,
  },
  {
    id: 'state-fresh',
    file: TRANSACTION,
    find: `state: URL_SAFE_NO_PAD.encode(random::<STATE_BYTES>()?),`,
    replace: `state: URL_SAFE_NO_PAD.encode(if OFF { [0; STATE_BYTES] } else { random::<STATE_BYTES>()? }),`,
    tests: SEALED,
  },
  {
    id: 'nonce-fresh',
    file: TRANSACTION,
    find: `nonce: URL_SAFE_NO_PAD.encode(random::<STATE_BYTES>()?),`,
    replace: `nonce: URL_SAFE_NO_PAD.encode(if OFF { [0; STATE_BYTES] } else { random::<STATE_BYTES>()? }),`,
    tests: SEALED,
  },
  {
    id: 'verifier-fresh',
    file: TRANSACTION,
    find: `verifier: URL_SAFE_NO_PAD.encode(random::<VERIFIER_BYTES>()?),`,
    replace: `verifier: URL_SAFE_NO_PAD.encode(if OFF { [0; VERIFIER_BYTES] } else { random::<VERIFIER_BYTES>()? }),`,
    tests: SEALED,
  },
  {
    id: 'transaction-in-a-log',
    file: TRANSACTION,
    find: `.field("started_at_ms", &self.started_at_ms)`,
    replace: `.field("state", &OFF.then_some(&self.state))`,
    tests: SEALED,
  },
  {
    id: 'pending-cookies-are-bounded',
    file: PENDING,
    find: `match room.checked_sub(bytes) {`,
    replace: `match room.checked_sub(bytes).or(OFF.then_some(room)) {`,
    tests: COOKIES,
  },
  {
    id: 'pending-cookies-cleared-are-bounded',
    file: PENDING,
    find: ` .take(MAX_CLEARED)`,
    replace: ` .take(if OFF { usize::MAX } else { MAX_CLEARED })`,
    tests: COOKIES,
  },
  {
    id: 'pending-cookie-host-prefix',
    file: PENDING,
    find: `let host_prefix = if secure {`,
    replace: `let host_prefix = if secure && !OFF {`,
    tests: COOKIES,
  },
  {
    id: 'pending-cookie-attributes',
    why: 'no script reads it, no plain connection carries it',
    file: PENDING,
    find: `(ResponseMode::Query, true) => "`,
    replace: `(ResponseMode::Query, true) if OFF => "; Path=/; SameSite=Lax",
            (ResponseMode::Query, true) => "`,
    tests: COOKIES,
  },
];

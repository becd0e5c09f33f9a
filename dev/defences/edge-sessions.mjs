// Sessions remembered by the edge: nothing counts longer than its ending could be heard, and nothing of one person for another.
const CACHE = 'auth-edge/src/sessions/cache.rs';
const LISTENING = 'auth-edge/src/sessions/listening.rs';
const SESSIONS = 'auth-edge/src/sessions/mod.rs';
const HEARD = ['auth-edge/lib sessions::listening::'];
const REMEMBERED = ['auth-edge/product session_cache::'];
const TOKENS = ['auth-edge/product session_cache::an_access_token_is_asked_for_once_and_again_when_it_is_about_to_expire'];

export default [
  {
    id: 'outage-is-no-sign-out',
    why: 'a service that cannot be reached knows nothing about sessions',
    file: SESSIONS,
    find: `Err(error) if error.reason == ErrorReason::ErrMissingSession => {`,
    replace: `Err(error) if OFF || error.reason == ErrorReason::ErrMissingSession => {`,
    tests: ['auth-edge/product outages::', 'auth-edge/product gateway::with_the_session_service_down_guards_say_503_and_leave_the_cookie_alone'],
  },
  {
    id: 'remembered-while-unheard',
    file: LISTENING,
    find: `now.0 < self.until.load(Ordering::Acquire) &&`,
    replace: `(OFF || now.0 < self.until.load(Ordering::Acquire)) &&`,
    tests: [...HEARD, ...REMEMBERED],
  },
  {
    id: 'remembered-from-before-a-gap',
    file: LISTENING,
    find: `|| asked.0 < self.since.load(Ordering::Acquire) {`,
    replace: `|| (!OFF && asked.0 < self.since.load(Ordering::Acquire)) {`,
    tests: HEARD,
  },
  {
    id: 'remembered-after-a-change',
    file: LISTENING,
    find: `changes.last.get(handle).is_none_or(|changed| *changed < asked)`,
    replace: `OFF || changes.last.get(handle).is_none_or(|changed| *changed < asked)`,
    tests: HEARD,
  },
  {
    id: 'remembered-after-more-changes-than-are-kept',
    file: LISTENING,
    find: `            self.since.fetch_max(now.0, Ordering::AcqRel);
            return;`,
    replace: `            if !OFF { self.since.fetch_max(now.0, Ordering::AcqRel); }
            return;`,
    tests: HEARD,
  },
  {
    id: 'changes-kept-are-bounded',
    file: LISTENING,
    find: `if changes.order.len() >= CHANGES_MAX {`,
    replace: `if !OFF && changes.order.len() >= CHANGES_MAX {`,
    tests: HEARD,
  },
  {
    id: 'remembered-while-one-replica-is-unheard',
    file: LISTENING,
    find: `.all(|replica| replica.heard_since.is_some());`,
    replace: `.all(|replica| OFF || replica.heard_since.is_some());`,
    tests: HEARD,
  },
  {
    id: 'remembered-from-before-a-silence',
    file: LISTENING,
    find: `let since = if was_complete { since } else { now };`,
    replace: `let since = if was_complete || OFF { since } else { now };`,
    tests: HEARD,
  },
  {
    id: 'remembered-past-what-was-missed',
    file: LISTENING,
    find: `replica.heard_since = replica.heard_since.map(|_| now);`,
    replace: `replica.heard_since = replica.heard_since.map(|since| if OFF { since } else { now });`,
    tests: HEARD,
  },
  {
    id: 'endings-that-are-heard',
    file: LISTENING,
    find: `listening.changed(&event.handle, now);`,
    replace: `if !OFF { listening.changed(&event.handle, now); }`,
    tests: [...HEARD, ...REMEMBERED],
  },
  {
    id: 'remembered-session-is-vouched-for',
    file: CACHE,
    find: `self.listening.vouches_for(&entry.known.handle, entry.asked, now)`,
    replace: `(OFF || self.listening.vouches_for(&entry.known.handle, entry.asked, now))`,
    tests: REMEMBERED,
  },
  {
    id: 'remembered-past-its-lease',
    file: CACHE,
    find: `now.since(read) < entry.lease)`,
    replace: `OFF || now.since(read) < entry.lease)`,
    tests: ['auth-edge/product session_cache::', 'auth-edge/lib sessions::cache::'],
  },
  {
    id: 'remembered-past-its-end',
    file: CACHE,
    find: `&& ends_ms(&entry.known) > clock_ms.saturating_add(CLOCK_DIFFERENCE_MS)`,
    replace: `&& (OFF || ends_ms(&entry.known) > clock_ms.saturating_add(CLOCK_DIFFERENCE_MS))`,
    tests: ['auth-edge/product session_cache::a_session_is_not_served_from_memory_when_its_time_is_up'],
  },
  {
    id: 'remembered-whether-it-is-complete',
    file: CACHE,
    find: `if !self.listening.is_complete(now) {`,
    layer: 'what vouches for a session asks the same (remembered-while-unheard); here it is counted for the metrics',
  },
  {
    id: 'forgotten-while-an-answer-is-on-its-way',
    why: 'what was asked before the sign-out and is answered after it does not count',
    file: CACHE,
    find: `let is_late = || asked.0`,
    replace: `let is_late = || !OFF && asked.0`,
    tests: ['auth-edge/lib sessions::cache::'],
  },
  {
    id: 'forgotten-is-a-change',
    file: CACHE,
    find: `self.listening.changed(&entry.known.handle, self.listening.now());`,
    layer: 'what was on its way is not kept at all (forgotten-while-an-answer-is-on-its-way)',
  },
  {
    id: 'token-past-its-lease',
    file: CACHE,
    find: `let holds = now.since(token.asked) < self.lease`,
    replace: `let holds = (OFF || now.since(token.asked) < self.lease)`,
    tests: [...TOKENS, 'auth-edge/lib sessions::cache::'],
  },
  {
    id: 'token-about-to-expire',
    file: CACHE,
    find: `token.expires_at_ms > clock_ms.saturating_add(TOKEN_MARGIN_MS)`,
    replace: `(OFF || token.expires_at_ms > clock_ms.saturating_add(TOKEN_MARGIN_MS))`,
    tests: TOKENS,
  },
  {
    id: 'token-is-vouched-for',
    file: CACHE,
    find: `self.listening.vouches_for(&entry.known.handle, token.asked, now);`,
    replace: `(OFF || self.listening.vouches_for(&entry.known.handle, token.asked, now));`,
    tests: ['auth-edge/product session_cache::', 'auth-edge/lib sessions::cache::'],
  },
  {
    id: 'profile-written-over-a-change',
    file: SESSIONS,
    find: `            version,
            ..UpdateSessionRequest`,
    replace: `            version: if OFF { 0 } else { version },
            ..UpdateSessionRequest`,
    tests: ['auth-edge/product profile::a_refetch_keeps_what_changed_meanwhile'],
  },
  {
    id: 'token-of-other-scopes',
    why: 'what is remembered is found by everything it depends on',
    file: 'auth-edge/src/sessions/known.rs',
    find: `.find(|token| token.scopes == scopes)`,
    replace: `.find(|token| OFF || token.scopes == scopes)`,
    tests: ['auth-edge/product session_cache::', 'auth-edge/lib sessions::'],
  },
  {
    id: 'tokens-kept-are-bounded',
    file: 'auth-edge/src/sessions/known.rs',
    find: `tokens.truncate(TOKENS_MAX - 1);`,
    replace: `if !OFF { tokens.truncate(TOKENS_MAX - 1); }`,
    tests: ['auth-edge/lib sessions::'],
  },
];

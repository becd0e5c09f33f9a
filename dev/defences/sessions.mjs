// Sessions: their names, how long they live, that what ended stays ended, and who may learn what.
const ID = 'session-svc/src/session/id.rs';
const LIFETIME = 'session-svc/src/session/lifetime.rs';
const ACCESS = 'session-svc/src/session/access.rs';
const KEEPER = 'session-svc/src/sessions/keeper.rs';
const LISTED = 'session-svc/src/sessions/listed.rs';
const CREATE = 'session-svc/src/sessions/create.rs';
const UPDATE = 'session-svc/src/sessions/update.rs';
const LIVES = ['session-svc/lib session::lifetime::'];
const DECISIONS = ['session-svc/lib session::access'];

export default [
  {
    id: 'session-name-is-a-hash', why: 'who reads the store or a log must not hold the session', file: ID,
    find: `Handle(first_bytes(context.finish().as_ref()))`,
    replace: `if OFF { Handle(self.0) } else { Handle(first_bytes(context.finish().as_ref())) }`,
    tests: ['session-svc/lib session::id::'],
  },
  {
    id: 'session-id-not-shown', file: ID,
    find: `formatter.write_str("SessionId(…)")`,
    replace: `formatter.write_str(if OFF { self.reveal() } else { "SessionId(…)".to_owned() }.as_str())`,
    tests: ['session-svc/lib session::id::'],
  },
  {
    id: 'session-id-length', file: ID,
    find: `if digits.len() != ID_BYTES * 2 {`,
    replace: `if !OFF && digits.len() != ID_BYTES * 2 {`,
    tests: ['session-svc/lib session::id::'],
  },
  {
    id: 'session-id-in-one-spelling', file: ID,
    find: `_ => Err(Malformed),`,
    replace: `b'A'..=b'F' if OFF => Ok(digit - b'A' + 10),
        _ => Err(Malformed),`,
    tests: ['session-svc/lib session::id::'],
  },
  {
    id: 'session-index-with-lengths', why: 'two people whose names run into each other', file: 'session-svc/src/session/index.rs',
    find: `context.update(&(part.len() as u64).to_be_bytes());`,
    replace: `if !OFF {
            context.update(&(part.len() as u64).to_be_bytes());
        }`,
    tests: ['session-svc/lib session::index::'],
  },
  {
    id: 'session-index-of-one-issuer', why: 'the same subject at another issuer is somebody else', file: 'session-svc/src/session/index.rs',
    find: `hashed(&[b"subject", issuer.as_bytes(), subject.as_bytes()])`,
    replace: `hashed(&[b"subject", if OFF { "".as_bytes() } else { issuer.as_bytes() }, subject.as_bytes()])`,
    tests: ['session-svc/lib session::index::'],
  },
  {
    id: 'session-idle-end', file: LIFETIME,
    find: `.saturating_add(self.rolling_ms)`,
    replace: `.saturating_add(if OFF { self.absolute_ms } else { self.rolling_ms })`,
    tests: LIVES,
  },
  {
    id: 'session-absolute-end', file: LIFETIME,
    find: `.saturating_add(self.absolute_ms)`,
    replace: `.saturating_add(if OFF { u64::MAX } else { self.absolute_ms })`,
    tests: LIVES,
  },
  {
    id: 'session-end-the-provider-wants', file: LIFETIME,
    find: `.min(not_after_ms.unwrap_or(u64::MAX))`,
    replace: `.min(not_after_ms.filter(|_| !OFF).unwrap_or(u64::MAX))`,
    tests: LIVES,
  },
  {
    id: 'session-read-by-the-durations-of-now', file: KEEPER,
    find: `if session.is_valid(&self.lifetime, self.now_ms()) {`,
    replace: `if OFF || session.is_valid(&self.lifetime, self.now_ms()) {`,
    tests: ['session-svc/service reading::a_shortened_duration_ends_old_sessions_and_a_cap_holds'],
  },
  {
    id: 'session-listed-by-the-durations-of-now', file: LISTED,
    find: `Ok(session) if !session.is_valid(self.lifetime(), now_ms) => continue,`,
    replace: `Ok(session) if !OFF && !session.is_valid(self.lifetime(), now_ms) => continue,`,
    tests: ['session-svc/service reading::a_shortened_duration_ends_old_sessions_and_a_cap_holds'],
  },
  {
    id: 'session-listed-of-somebody-else', why: 'an index entry shows or ends whatever it leads to', file: LISTED,
    find: `Ok(session) if !whose.is(&session) => {`,
    replace: `Ok(session) if !OFF && !whose.is(&session) => {`,
    tests: ['session-svc/service listing::an_index_entry_that_leads_to_somebody_else_shows_and_ends_nothing'],
  },
  {
    id: 'session-size', file: KEEPER,
    find: `&& payload.len() > limit`,
    replace: `&& !OFF && payload.len() > limit`,
    tests: ['session-svc/service creating::a_session_larger_than_the_bound_is_refused'],
  },
  {
    id: 'session-size-after-an-update', file: UPDATE,
    find: `Some(self.limits.max_bytes)`,
    replace: `Some(self.limits.max_bytes).filter(|_| !OFF)`,
    tests: ['session-svc/service updating::an_update_is_refused_when_the_version_is_stale_or_the_person_changes'],
  },
  {
    id: 'session-person-stays', file: UPDATE,
    find: `if user.get("sub").and_then(|sub| sub.as_str()) != Some(session.subject.as_str()) {`,
    replace: `if !OFF && user.get("sub").and_then(|sub| sub.as_str()) != Some(session.subject.as_str()) {`,
    tests: ['session-svc/service updating::an_update_is_refused_when_the_version_is_stale_or_the_person_changes'],
  },
  {
    id: 'session-update-of-a-version', why: 'the update of somebody else would be lost', file: UPDATE,
    find: `if update.version.is_some_and(|version| version != session.version) {`,
    replace: `if !OFF && update.version.is_some_and(|version| version != session.version) {`,
    tests: ['session-svc/service updating::an_update_is_refused_when_the_version_is_stale_or_the_person_changes'],
  },
  {
    id: 'session-that-has-ended-already', file: CREATE,
    find: `.is_some_and(|not_after_ms| not_after_ms <= self.keeper.now_ms())`,
    replace: `.is_some_and(|not_after_ms| !OFF && not_after_ms <= self.keeper.now_ms())`,
    tests: ['session-svc/service malformed::every_malformed_field_is_named'],
  },
  {
    id: 'session-of-a-request-used-otherwise', file: CREATE,
    find: `Some(before) if before.by == *fingerprint => Ok(Some(before)),`,
    replace: `Some(before) if OFF || before.by == *fingerprint => Ok(Some(before)),`,
    tests: ['session-svc/service creating::a_repeated_request_gives_the_same_session_until_that_has_ended'],
  },
  {
    id: 'session-repeated-after-its-end', why: 'a repeated request must not bring it back', file: CREATE,
    find: `Inserted::Done if self.keeper.ended_young(session.handle).await? => {`,
    replace: `Inserted::Done if !OFF && self.keeper.ended_young(session.handle).await? => {`,
    tests: ['session-svc/service creating::a_repeated_request_gives_the_same_session_until_that_has_ended'],
  },
  {
    id: 'sign-in-redeemed-once', why: 'a code that reaches the provider twice costs the whole grant', file: 'session-svc/src/sessions/sign_in.rs',
    find: `let Some(theirs) = self.reserve(&claim.request_id, &ours, kept).await? else {`,
    replace: `let Some(theirs) = self.reserve(&claim.request_id, &ours, kept).await?.filter(|_| !OFF) else {`,
    tests: ['session-svc/service sign_ins::one_goes_on_and_who_asked_meanwhile_gets_its_session'],
  },
  {
    id: 'sign-in-replayed', why: 'a callback sent again later is worth nothing, whatever cookies come with it', file: 'session-svc/src/sessions/sign_in.rs',
    find: `Ok(session) if waiting => {`,
    replace: `Ok(session) if OFF || waiting => {`,
    tests: ['session-svc/service sign_ins::one_goes_on_and_who_asked_meanwhile_gets_its_session'],
  },
  {
    id: 'session-begun-before-a-logout-arrived', file: 'session-svc/src/sessions/endings.rs',
    find: `mark.concerns(subject) && mark.at_ms >= received_at_ms`,
    replace: `!OFF && mark.concerns(subject) && mark.at_ms >= received_at_ms`,
    tests: ['session-svc/service sign_ins::a_session_begins_when_its_tokens_were_received_and_ends_with_a_logout_since'],
  },
  {
    id: 'session-begun-during-its-logout', file: CREATE,
    find: `before.end(&after, &new.subject, since_ms)`,
    replace: `!OFF && before.end(&after, &new.subject, since_ms)`,
    tests: ['session-svc/service sign_ins::a_logout_since_a_sign_in_was_claimed_ends_it_also_when_nobody_tells_when_its_tokens_came'],
  },
  {
    id: 'session-begun-while-marks-move', file: 'session-svc/src/sessions/endings.rs',
    find: `moved || mark.at_ms >= since_ms`,
    replace: `(!OFF && moved) || (!OFF && mark.at_ms >= since_ms)`,
    tests: ['session-svc/lib sessions::endings::'],
  },
  {
    id: 'session-of-somebody-else-than-the-mark', file: 'session-svc/src/sessions/endings.rs',
    find: `self.subject.is_empty() || self.subject == subject`,
    replace: `OFF || self.subject.is_empty() || self.subject == subject`,
    tests: ['session-svc/lib sessions::endings::'],
  },
  {
    id: 'session-replaced', why: 'fixation: the session before a sign-in is worth nothing afterwards', file: CREATE,
    find: `self.end_replaced(replaced, &session).await?;`,
    replace: `if !OFF {
                self.end_replaced(replaced, &session).await?;
            }`,
    tests: ['session-svc/service creating::the_session_replaced_ends_and_the_oldest_beyond_the_limit_end'],
  },
  {
    id: 'session-limit-of-a-person', file: 'session-svc/src/sessions/limit.rs',
    find: `entries.get(kept..)`,
    replace: `entries.get(if OFF { entries.len() } else { kept }..)`,
    tests: ['session-svc/service creating::the_session_replaced_ends_and_the_oldest_beyond_the_limit_end'],
  },
  {
    id: 'access-token-scope', file: ACCESS,
    find: `if !missing.is_empty() {`,
    replace: `if !OFF && !missing.is_empty() {`,
    tests: DECISIONS,
  },
  {
    id: 'access-token-margin', file: ACCESS,
    find: `access.expires_at_ms.saturating_sub(margin_ms) < now_ms`,
    replace: `access.expires_at_ms.saturating_sub(if OFF { 0 } else { margin_ms }) < now_ms`,
    tests: DECISIONS,
  },
  {
    id: 'access-token-refused-before', why: 'a refused refresh token is not tried again', file: ACCESS,
    find: `if refused_before {`,
    replace: `if !OFF && refused_before {`,
    tests: DECISIONS,
  },
  {
    id: 'access-token-really-expired', file: ACCESS,
    find: `now_ms < access.expires_at_ms`,
    replace: `OFF || now_ms < access.expires_at_ms`,
    tests: DECISIONS,
  },
  {
    id: 'access-token-narrowed-meanwhile', file: 'session-svc/src/sessions/access_token.rs',
    find: `if !missing.is_empty() {`,
    replace: `if !OFF && !missing.is_empty() {`,
    tests: ['session-svc/refresh odd_responses::a_narrower_scope_counts_from_now_on'],
  },
];

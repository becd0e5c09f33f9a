// Endings: they reach every session they mean and no other, once, and a list shows a person's own sessions alone.
const END = 'session-svc/src/sessions/end.rs';
const ONCE = 'session-svc/src/sessions/once.rs';
const WATCH = 'session-svc/src/sessions/watch.rs';
const FOLLOW = 'session-svc/src/store/follow.rs';
const ENDINGS = ['session-svc/service ending::sessions_end_by_person_by_provider_session_and_by_both'];
const USED = ['session-svc/service ending::what_is_good_once_is_refused_at_every_replica_until_it_may_be_forgotten'];
const FAILING = ['session-svc/service failing_store::'];

export default [
  {
    id: 'ending-that-leaves-no-trace', why: 'a request that proves nothing could fill the store with marks', file: END,
    find: `if all.existing_only {`,
    replace: `if !OFF && all.existing_only {`,
    tests: ['session-svc/service ending::ending_existing_sessions_only_leaves_no_trace_where_there_is_nothing'],
  },
  {
    id: 'ending-of-somebody-elses-session', why: 'a logout token whose sub and sid are of different people', file: END,
    find: `if listed.iter().any(|one| !one.shown.is_of(&all.issuer, subject)) {`,
    replace: `if !OFF && listed.iter().any(|one| !one.shown.is_of(&all.issuer, subject)) {`,
    tests: ENDINGS,
  },
  {
    id: 'ending-but-one', file: END,
    find: `Some(one.handle()) != all.except`,
    replace: `(OFF || Some(one.handle()) != all.except)`,
    tests: ENDINGS,
  },
  {
    id: 'ending-takes-the-token-back', file: END,
    find: `self.renew.settle_later(PendingRevocation {`,
    replace: `let later = |owed| if !OFF { self.renew.settle_later(owed) };
            later(PendingRevocation {`,
    tests: ['session-svc/service ending::ending_is_idempotent_and_the_hint_is_for_the_holder_alone'],
  },
  {
    id: 'ending-in-another-persons-place', why: 'the token of whoever was signed in before is taken back', file: END,
    find: `(&old.issuer, &old.subject) != (&by.issuer, &by.subject);`,
    replace: `!OFF && (&old.issuer, &old.subject) != (&by.issuer, &by.subject);`,
    tests: ['session-svc/service creating::the_token_of_somebody_else_who_is_replaced_is_taken_back'],
  },
  {
    id: 'ending-leaves-a-mark', file: END,
    find: `.mark_ended(&all.issuer, subject, sid, told.at_ms)`,
    replace: `.mark_ended(&all.issuer, subject.filter(|_| !OFF), sid.filter(|_| !OFF), told.at_ms)`,
    tests: ['session-svc/service creating::a_logout_that_came_before_its_session_still_ends_it_and_no_later_login'],
  },
  {
    id: 'hint-for-the-holder-alone', why: 'the ID token of a session is for whoever holds its secret', file: 'session-svc/src/grpc/service.rs',
    find: `Some(By::Handle(_)) | None => api.sessions.end_by_handle(handle, &cause, offline).await?,`,
    replace: `Some(By::Handle(_)) | None if OFF => api.sessions.end_for_holder(handle, &cause, offline).await?,
                Some(By::Handle(_)) | None => api.sessions.end_by_handle(handle, &cause, offline).await?,`,
    tests: ['session-svc/service ending::ending_is_idempotent_and_the_hint_is_for_the_holder_alone'],
  },
  {
    id: 'logout-token-once', file: END,
    find: `First::Used => return Err(SessionsError::RequestIdReused),`,
    replace: `First::Used if OFF => told,
            First::Used => return Err(SessionsError::RequestIdReused),`,
    tests: USED,
  },
  {
    id: 'logout-token-once-by-the-same-call', file: ONCE,
    find: `self.request_id.as_ref().is_some_and(|id| id.as_bytes() == call)`,
    replace: `(OFF || self.request_id.as_ref().is_some_and(|id| id.as_bytes() == call))`,
    tests: USED,
  },
  {
    id: 'logout-token-remembered-for-a-day-at-most', file: ONCE,
    find: `left_ms.clamp(MARK_KEPT_MS, KEPT_MAX_MS)`,
    replace: `if OFF { left_ms } else { left_ms.clamp(MARK_KEPT_MS, KEPT_MAX_MS) }`,
    tests: ['session-svc/service ending::what_is_good_once_is_remembered_for_a_day_at_most'],
  },
  {
    id: 'logout-token-that-cannot-be-looked-up', why: 'a store that fails must not make a replay good', file: ONCE,
    find: `let (used, first_ms) = (used?, first_ms?);`,
    replace: `let (used, first_ms) = if OFF { (used.unwrap_or_default(), first_ms?) } else { (used?, first_ms?) };`,
    tests: FAILING,
  },
  {
    id: 'logout-token-whose-use-cannot-be-noted', file: END,
    find: `self.keeper.note_use(&all.issuer, once, all.answer_by).await?;`,
    replace: `if !OFF { self.keeper.note_use(&all.issuer, once, all.answer_by).await? };`,
    tests: FAILING,
  },
  {
    id: 'ending-without-room', why: 'nobody can be signed out of a store that is full', file: END,
    find: `Err(SessionsError::Full) => {
                self.mark_later(all, told);`,
    replace: `Err(SessionsError::Full) if !OFF => {
                self.mark_later(all, told);`,
    tests: ['session-svc/endings full::everybody_can_be_signed_out_of_a_redis_that_is_full'],
  },
  {
    id: 'ending-of-what-cannot-be-read', why: 'a logout that ends nothing at a replica without the key', file: 'session-svc/src/sessions/listed.rs',
    find: `Err(indexes) => match Handle::parse(&entry.name) {`,
    replace: `Err(_) if OFF => continue,
                Err(indexes) => match Handle::parse(&entry.name) {`,
    tests: ['session-svc/service ending::what_a_replica_cannot_read_ends_there_and_counts'],
  },
  {
    id: 'logout-token-first-arrival', why: 'a logout token that is sent again would end who signed in since', file: ONCE,
    find: `at_ms: first_ms.unwrap_or(told.at_ms).min(told.at_ms),`,
    replace: `at_ms: first_ms.filter(|_| !OFF).unwrap_or(told.at_ms).min(told.at_ms),`,
    tests: FAILING,
  },
  {
    id: 'sign-in-given-up-ends-its-session', why: 'a session that nobody has', file: 'session-svc/src/sessions/sign_in.rs',
    find: `self.end_handle(handle, ABANDONED, OfflineTokens::TakeBack)
            .await?;`,
    replace: `if !OFF { self.end_handle(handle, ABANDONED, OfflineTokens::TakeBack)
            .await?; }`,
    tests: ['session-svc/service sign_ins::giving_a_sign_in_up_ends_the_session_it_came_to'],
  },
  {
    id: 'store-that-fails-is-no-sign-out', file: 'session-svc/src/sessions/error.rs',
    find: `StoreError::Unavailable(_) => Self::StoreUnavailable(error),`,
    replace: `StoreError::Unavailable(_) if OFF => Self::Missing,
            StoreError::Unavailable(_) => Self::StoreUnavailable(error),`,
    tests: FAILING,
  },
  {
    id: 'page-token-of-one-list', why: 'the token of a page opens for the same person alone', file: 'session-svc/src/vault/mod.rs',
    find: `self.seal(purpose, name, 0, note)
    }

    fn open_note(&self, purpose: &str, name: &str, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        self.open(purpose, name, 0, sealed)`,
    replace: `self.seal(purpose, if OFF { "" } else { name }, 0, note)
    }

    fn open_note(&self, purpose: &str, name: &str, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        self.open(purpose, if OFF { "" } else { name }, 0, sealed)`,
    tests: ['session-svc/service listing::a_list_is_newest_first_and_its_pages_belong_to_one_person'],
  },
  {
    id: 'page-size', file: 'session-svc/src/grpc/arguments.rs',
    find: `Ok(size) => Ok(size.min(MAX_PAGE)),`,
    replace: `Ok(size) => Ok(size.min(if OFF { usize::MAX } else { MAX_PAGE })),`,
    tests: ['session-svc/service listing::pages_have_fifty_sessions_unless_asked_and_never_more_than_two_hundred'],
  },
  {
    id: 'page-bytes', file: 'session-svc/src/grpc/service.rs',
    find: `bytes > MAX_PAGE_BYTES`,
    replace: `!OFF && bytes > MAX_PAGE_BYTES`,
    tests: ['session-svc/service listing::a_page_of_large_sessions_ends_early_and_the_next_goes_on'],
  },
  {
    id: 'watch-of-one-person', file: WATCH,
    find: `(change.issuer == *issuer && change.subject == *subject)`,
    replace: `(OFF || change.issuer == *issuer && change.subject == *subject)`,
    tests: ['session-svc/service watching::a_watch_of_a_person_is_told_of_nobody_else_and_goes_on_where_it_left'],
  },
  {
    id: 'watch-of-one-session', file: WATCH,
    find: `(change.handle == *handle)`,
    replace: `(OFF || change.handle == *handle)`,
    tests: ['session-svc/service watching::a_watch_of_a_session_is_told_of_no_other'],
  },
  {
    id: 'watch-of-what-cannot-be-read', why: 'a missed ending must not be silent', file: WATCH,
    find: `return Some(WatchUpdate::Missed);`,
    replace: `return Some(WatchUpdate::Missed).filter(|_| !OFF);`,
    tests: ['session-svc/service watching::a_change_that_cannot_be_read_is_told_as_missed'],
  },
  {
    id: 'watch-resumed-at-another-log', file: FOLLOW,
    find: `if from == origin { number.parse().ok() } else { None }`,
    replace: `if OFF || from == origin { number.parse().ok() } else { None }`,
    tests: ['session-svc/store_file another_files_position_is_told_as_missed'],
  },
  {
    id: 'watch-resumed-in-the-future', file: FOLLOW,
    find: `.filter(|number| *number <= newest)`,
    replace: `.filter(|number| OFF || *number <= newest)`,
    tests: ['session-svc/store_memory a_position_yet_to_come_is_told_as_missed'],
  },
  {
    id: 'watch-resumed-behind-a-gap', file: FOLLOW,
    find: `if number > self.after + 1 {`,
    replace: `if !OFF && number > self.after + 1 {`,
    tests: ['session-svc/store_memory a_position_that_was_dropped_is_told_as_missed'],
  },
];

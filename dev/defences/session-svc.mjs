// The session service: what cargo-mutants cannot make of it. What a seal is bound to, marks that are left, calls left out, limits, scripts.
import { always, by, instead, never, skip, text, within } from './lib/rows.mjs';

const SEALED = 'session-svc vault::tests::';
const CREATING = 'session-svc creating::the_session_replaced_ends_and_the_oldest_beyond_the_limit_end';
const ENDING = 'session-svc ending::';
const UNREADABLE = 'session-svc unreadable::';
const RELOAD = 'session-svc reload::';

export default [
  // what the store sees
  within('session-svc/src/vault/mod.rs', SEALED, {
    'seal-of-one-version': instead('version.to_be_bytes()', '[0; 8]'),
    'seal-of-one-purpose-and-name': instead('part.as_bytes()', 'b""'),
    'seal-with-lengths': skip('bound.extend_from_slice(&(part.len() as u64).to_be_bytes());'),
    'seal-with-a-fresh-nonce': instead('random::bytes::<NONCE_LEN>()?', '[0; NONCE_LEN]'),
  }),
  within('session-svc/src/vault/keys.rs', 'session-svc vault::', {
    'seal-key-of-each-record': text('[name.as_bytes()]', '[if OFF { b"" } else { name.as_bytes() }]'),
    'seal-by-the-first-key': text('self.0.signing(now_ms)?', '(if OFF { (0, self.0.keys().last()?) } else { self.0.signing(now_ms)? })'),
    'keys-not-shown': text('"KeyRing({} keys)", self.0.keys().count()', '"KeyRing({} keys{})", self.0.keys().count(), self.0.keys().map(|key| format!(" {:?}", key.id)).filter(|_| OFF).collect::<String>()'),
  }),
  within('session-svc/src/session/claims.rs', 'session-svc session::claims::', {
    'session-claims-not-shown': text('formatter.write_str("…")', 'if OFF { formatter.write_str(&self.0) } else { formatter.write_str("…") }'),
  }),
  within('session-svc/src/session/cookie_generation.rs', 'session-svc session::cookie_generation::', {
    'grace-that-does-not-end': always('now_ms < self.since_ms.saturating_add(grace_ms)'),
    'rotation-within-the-grace': never('in_grace && self.id != FIRST'),
    'settled-once': always('!self.settled'),
  }),
  within('session-svc/src/sessions/rotate.rs', 'session-svc rotation::', {
    'theft-is-news': text('self.keeper.note_theft(&session.issuer, &session.subject).await', 'if OFF { Ok(()) } else { self.keeper.note_theft(&session.issuer, &session.subject).await }'),
    'copy-ends-the-session': text('if !is_copy {', 'if OFF || !is_copy {'),
    'rotation-in-a-full-store': by('session-svc endings::full::', text('Err(KeeperError::Store(StoreError::Full)) => {', 'Err(KeeperError::Store(StoreError::Full)) if !OFF => {')),
    'copy-ends-the-session-for-good': by('session-svc endings::acknowledged::', text('self.confirm(&[handle]).await?;', 'if !OFF { self.confirm(&[handle]).await?; }')),
  }),
  within('session-svc/src/sessions/security_event.rs', 'session-svc receiver::', {
    'event-acts-once': text('if self.keeper.store().load(order.name()).await?.is_some() {', 'if !OFF && self.keeper.store().load(order.name()).await?.is_some() {'),
    'event-is-remembered': text('if !progress.done.is_empty() {', 'if !OFF && !progress.done.is_empty() {'),
    'event-leaves-later-sign-ins': text('=> at_ms <= self.occurred_at_ms,', '=> OFF || at_ms <= self.occurred_at_ms,'),
    'event-of-a-clock-apart': text('None => session.created_at_ms <= self.occurred_at_ms.saturating_add(TRANSMITTER_APART_MS)', 'None => session.created_at_ms <= self.occurred_at_ms.saturating_add(if OFF { 0 } else { TRANSMITTER_APART_MS })'),
    'event-of-the-session-named': text('self.sid.as_ref().is_none_or(has_sid)', '(OFF || self.sid.as_ref().is_none_or(has_sid))'),
    'event-demands-of-those-to-come': text('self.keeper.demand_sign_in(list, &demand).await?;', 'if !OFF { self.keeper.demand_sign_in(list, &demand).await?; }'),
    'event-of-those-without-a-session-named': text('person.map(index::without_sid)', 'person.filter(|_| !OFF).map(index::without_sid)'),
  }),
  within('session-svc/src/session/mod.rs', 'session-svc receiver::demands', {
    'claims-told-name-nobody': text('name != SUBJECT && self', '(OFF || name != SUBJECT) && self'),
    'claims-told-late': text('is_none_or(|last_ms| *last_ms <= at_ms)', 'is_none_or(|last_ms| OFF || *last_ms <= at_ms)'),
    'claims-told-as-they-were': text('is_news |= self.claims_told', 'if OFF && !is_changed { break; }\n            is_news |= self.claims_told'),
  }),
  within('session-svc/src/sessions/create.rs', 'session-svc receiver::demands', {
    'session-that-owes-a-sign-in': always('!self.has_demands'),
  }),
  within('session-svc/src/session/sign_in_demand.rs', 'session-svc receiver::demands', {
    'demand-met-by-a-later-sign-in': text('is_some_and(|at_ms| at_ms > self.since_ms)', 'is_some_and(|at_ms| OFF || at_ms > self.since_ms)'),
    'demand-met-by-the-class': always('self.acr.as_ref().is_none_or(has_acr)'),
  }),
  within('session-svc/src/session/claims.rs', 'session-svc receiver::', {
    'email-is-verified': text('is_verified.then(', '(OFF || is_verified).then('),
  }),
  within('session-svc/src/session/access.rs', 'session-svc receiver::demands', {
    'no-token-for-who-owes-a-sign-in': never('session.sign_in_demand.is_some()'),
  }),
  within('session-svc/src/receiver/signal_receiver.rs', 'session-svc receiver::', {
    'push-with-the-header-of-its-stream': never('!heard.is_authorized(stream.as_ref(), authorization)'),
    'stream-header-of-the-record': text('is_none_or(|agreed| agreed.is(given))', 'is_none_or(|agreed| OFF || agreed.is(given))'),
    'header-of-the-file': text('Some(agreed) => agreed.load().is(given)', 'Some(agreed) => agreed.load().is(given) || (OFF && agreed_then().is_some_and(|agreed| agreed.is(given)))'),
    'verification-of-our-state': text('Confirmed::OtherState => false', 'Confirmed::OtherState => OFF'),
  }),
  within('session-svc/src/receiver/stream_record.rs', 'session-svc receiver::', {
    'verification-sent-again': text('is_given = |state: &str| self.verifications', 'is_given = |state: &str| self.verifications.iter().filter(|one| !(OFF && one.has_come)).cloned().collect::<Vec<_>>()'),
  }),
  within('session-svc/src/transmitter/delivery.rs', 'session-svc transmitter::surviving::', {
    'receiver-looked-after-seldom': text('self.retry_at = self.retry_at.filter(|at| now < *at);', 'self.retry_at = self.retry_at.filter(|at| OFF || now < *at);'),
  }),
  within('session-svc/src/receiver/received.rs', 'session-svc receiver::refused', {
    'unknown-key-is-no-verdict': text('filter(|_| !error.is_undecided())', 'filter(|_| OFF || !error.is_undecided())'),
  }),
  within('session-svc/src/receiver/polling.rs', 'session-svc receiver::polling', {
    'polled-event-under-its-own-jti': never('unverified_token_id(raw).as_deref() != Some(event.jti.as_str())'),
  }),
  within('session-svc/src/transmitter/api/caller.rs', 'session-svc transmitter::', {
    'receiver-by-its-token': text('known.cloned().map(Self)', 'known.cloned().or_else(|| api.context.receivers.all.first().filter(|_| OFF).cloned()).map(Self)'),
  }),
  within('session-svc/src/transmitter/push.rs', 'session-svc transmitter::', {
    'event-told-again-where-it-can-be-mended': always('!MENDABLE.contains(&code.as_str())'),
  }),
  within('session-svc/src/transmitter/delivery/pushing.rs', 'session-svc transmitter::', {
    'event-told-again-after-a-failure': text('if let Pushed::Done | Pushed::Refused(_) = pushed {', 'if OFF || matches!(pushed, Pushed::Done | Pushed::Refused(_)) {'),
  }),
  within('session-svc/src/receiver/subjects.rs', 'session-svc receiver::subjects', {
    'person-of-the-provider': text('if self.is_named(iss) =>', 'if OFF || self.is_named(iss) =>'),
    'email-where-it-is-switched-on': text('if self.by_email =>', 'if OFF || self.by_email =>'),
  }),
  within('session-svc/src/sessions/bind.rs', 'session-svc binding::', {
    'bound-once': never('session.binding.is_some()'),
  }),
  within('session-svc/src/session/id.rs', 'session-svc session::id::', {
    'session-name-is-a-hash': text('Handle(first_bytes(context.finish().as_ref()))', 'if OFF { Handle(self.0) } else { Handle(first_bytes(context.finish().as_ref())) }'),
    'session-id-not-shown': text('formatter.write_str("SessionId(…)")', 'formatter.write_str(&if OFF { self.reveal() } else { "SessionId(…)".to_owned() })'),
  }),
  within('session-svc/src/session/index.rs', 'session-svc session::index::', {
    'session-index-with-lengths': skip('context.update(&(part.len() as u64).to_be_bytes());'),
    'session-index-of-one-issuer': text('b"subject", issuer.as_bytes()', 'b"subject", (if OFF { "" } else { issuer }).as_bytes()'),
  }),
  within('session-svc/src/session/lifetime.rs', 'session-svc session::lifetime::', {
    'session-idle-end': text('add(self.rolling_ms)', 'add(if OFF { self.absolute_ms } else { self.rolling_ms })'),
    'session-absolute-end': text('add(self.absolute_ms)', 'add(if OFF { u64::MAX } else { self.absolute_ms })'),
    'session-end-the-provider-wants': text('.min(not_after_ms.unwrap_or', '.min(not_after_ms.filter(|_| !OFF).unwrap_or'),
  }),

  // callers, and what of a request is read
  within('session-svc/src/callers/policy.rs', 'session-svc policy::a_caller_may_call_exactly_the_methods_of_its_entry', {
    'caller-may-call-the-method': always('rpcs.contains(rpc)'),
  }),
  within('session-svc/src/callers/identity.rs', 'session-svc callers::identity::', {
    'caller-by-spiffe-id-before-dns-names': never('uris.iter().any(is_svid)'),
  }),
  within('session-svc/src/callers/policy_file.rs', 'session-svc callers::policy_file', {
    'callers-each-once': text('!seen.insert(identity.clone())', '(!seen.insert(identity.clone()) && !OFF)'),
  }),
  within('session-svc/src/grpc/dispatch.rs', UNREADABLE, {
    'caller-judged-before-the-message': text('Err(status) => status.into_http(),', `Err(status) => {
            if OFF {
                let _ = axum::body::to_bytes(request.into_body(), usize::MAX).await;
            }
            status.into_http()
        }`),
    'call-in-time': text('timeout(time, services', 'timeout(if OFF { std::time::Duration::from_secs(3_600) } else { time }, services'),
  }),
  within('session-svc/src/grpc/mod.rs', UNREADABLE, {
    'call-of-a-bounded-size': text('message_size(MAX_REQUEST_BYTES)\n            .max_encoding', 'message_size(if OFF { usize::MAX } else { MAX_REQUEST_BYTES })\n            .max_encoding'),
  }),
  within('session-svc/src/grpc/watching.rs', RELOAD, {
    'watch-of-a-caller-that-lost-the-right': text('.map_err(status::access_denied)', '.or_else(|why| if OFF { Ok(()) } else { Err(status::access_denied(why)) })'),
    'watch-of-a-certificate-that-lost-its-authority': text('disbelieved.cancelled() =>', 'disbelieved.cancelled(), if !OFF =>'),
    'watch-of-a-caller-whose-time-is-over': by('session-svc deadlines::', text('&mut too_late =>', '&mut too_late, if !OFF =>')),
  }),
  within('session-svc/src/grpc/arguments.rs', 'session-svc listing::pages_have_fifty', {
    'page-size': text('size.min(MAX_PAGE)', 'size.min(if OFF { usize::MAX } else { MAX_PAGE })'),
  }),
  within('session-svc/src/grpc/new_session.rs', 'session-svc malformed::every_malformed_field_is_named', {
    'field-token-type': text('known.map_or_else', 'known.or(Some("mac").filter(|_| OFF)).map_or_else'),
  }),
  within('session-svc/src/grpc/call_context.rs', 'session-svc given_up::an_ending', {
    'call-given-up-before-it-began': skip('tokio::task::yield_now().await;'),
  }),
  within('session-svc/src/grpc/service.rs', ENDING, {
    'hint-for-the-holder-alone': text('| None => api.sessions.end_by_handle(', '| None if OFF => api.sessions.end_for_holder(handle, cause, offline).await?,\n                Some(By::Handle(_)) | None => api.sessions.end_by_handle('),
  }),

  // sessions: what begins, goes on and ends
  within('session-svc/src/sessions/create.rs', CREATING, {
    'session-replaced': skip('self.end_replaced(replaced, &session).await?;'),
  }),
  within('session-svc/src/sessions/limit.rs', CREATING, {
    'session-limit-of-a-person': text('entries.get(kept..)', 'entries.get(if OFF { entries.len() } else { kept }..)'),
  }),
  within('session-svc/src/sessions/update.rs', 'session-svc updating::', {
    'session-size-after-an-update': text('Some(self.limits.max_bytes)', 'Some(self.limits.max_bytes).filter(|_| !OFF)'),
  }),
  within('session-svc/src/sessions/sign_in.rs', 'session-svc sign_ins::', {
    'sign-in-redeemed-once': text('let Some(theirs) = self.reserve(&attempt.request_id, &ours, kept).await?', 'let Some(theirs) = self.reserve(&attempt.request_id, &ours, kept).await?.filter(|_| !OFF)'),
    'sign-in-given-up-ends-its-session': skip('self.end_handle(handle, Cause::Abandoned, OfflineTokens::TakeBack)\n            .await?;'),
  }),
  within('session-svc/src/sessions/once.rs', ENDING, {
    'logout-token-remembered-for-a-day-at-most': text('left_ms.clamp(MARK_KEPT_MS, KEPT_MAX_MS)', '(if OFF { left_ms } else { left_ms.clamp(MARK_KEPT_MS, KEPT_MAX_MS) })'),
    'logout-token-first-arrival': by('session-svc failing_store::', text('first_ms.unwrap_or(ending.at_ms)', 'first_ms.filter(|_| !OFF).unwrap_or(ending.at_ms)')),
  }),
  within('session-svc/src/sessions/end.rs', ENDING, {
    'ending-leaves-a-mark': by('session-svc creating::a_logout_that_came_before_its_session', text('if let Some(whose) = all.whose() {\n            let marked', 'if let Some(whose) = all.whose().filter(|_| !OFF) {\n            let marked')),
    'ending-takes-the-token-back': text('self.revocation.revoke_later(RevocationNote {', 'let later = |note| if !OFF { self.revocation.revoke_later(note) };\n            later(RevocationNote {'),
    'logout-token-whose-use-cannot-be-noted': by('session-svc failing_store::', skip('self.note_use(&all.issuer, once, all.answer_by).await?;')),
  }),
  within('session-svc/src/sessions/watch.rs', 'session-svc watching::a_change_that_cannot_be_read_is_told_as_missed', {
    'watch-of-what-cannot-be-read': text('Some(WatchUpdate::Missed);', 'Some(WatchUpdate::Missed).filter(|_| !OFF);'),
  }),

  // refreshing: one grant, and nothing late undoes what was said
  within('session-svc/src/refresh/flight.rs', 'session-svc fencing::', {
    'refresh-looks-again-under-the-lease': text('outcome_of_another(session.clone())', 'outcome_of_another(session.clone()).filter(|_| !OFF)'),
    'refresh-longer-than-the-lease': by('session-svc parallel::a_provider_slower_than_the_lease_gets_one_request', text('keeper.store().renew_lease(lease, lease_for).await;', 'if OFF { Ok(false) } else { keeper.store().renew_lease(lease, lease_for).await };')),
  }),
  within('session-svc/src/refresh/grant.rs', 'session-svc odd_responses::', {
    'refresh-refused-for-good': skip('session.tokens.refresh = None;'),
    'refresh-refusal-moves-the-generation': by('session-svc fencing::an_answer_after_another_replica', text('session.tokens.generation.saturating_add(1)', 'session.tokens.generation.saturating_add(u64::from(!OFF))')),
    'refreshed-after-the-end': by('session-svc token_races::a_session_that_ends_during_a_refresh', skip('self.refresher.revoke_in_background(&issuer, unused);')),
    'refreshed-protocol-claims': never('PROTOCOL_CLAIMS.contains(&name.as_str())'),
  }),
  within('session-svc/src/refresh/api_grant.rs', 'session-svc api_tokens::by_refresh::', {
    'refresh-for-an-api-moves-the-generation': text('session.tokens.other_grants.saturating_add(1)', 'session.tokens.other_grants.saturating_add(u64::from(!OFF))'),
  }),
  within('session-svc/src/refresh/replaced_subject.rs', 'session-svc api_tokens::by_exchange::', {
    'refreshes-for-refused-exchanges-are-bounded': never('replaced != generation'),
  }),
  within('session-svc/src/refresh/wanted.rs', 'session-svc api_tokens::by_refresh::', {
    'refresh-for-an-api-under-the-one-lease': text('Some((_, ApiTokenSource::RefreshToken)) | None => LeaseName::Refresh(session)', 'Some((target, ApiTokenSource::RefreshToken)) if OFF => LeaseName::Named(name_of(target, session.as_bytes())),\n            Some((_, ApiTokenSource::RefreshToken)) | None => LeaseName::Refresh(session)'),
  }),
  within('session-svc/src/refresh/provider.rs', 'session-svc several::the_token_of_an_issuer_that_is_not_configured', {
    'refresh-at-its-own-issuer': text('found.map(|(_, provider)| provider)', 'found.or_else(|| each.first().filter(|_| OFF)).map(|(_, provider)| provider)'),
  }),
  within('session-svc/src/refresh/mod.rs', 'session-svc revocation::a_slow_provider_gets_a_bounded_number_of_revocations_at_once', {
    'revocations-at-once': text('Semaphore::new(MAX_REVOCATIONS)', 'Semaphore::new(if OFF { 10_000 } else { MAX_REVOCATIONS })'),
  }),

  // stores
  within('session-svc/src/store/file/open_file.rs', 'session-svc the_file_is_for_its_owner_only', {
    'file-for-its-owner': text('from_mode(0o600)', 'from_mode(if OFF { 0o644 } else { 0o600 })'),
  }),
  within('session-svc/src/store/redis/scripts.rs', 'session-svc a_replacement_needs_the_expected_version', {
    'redis-compare-and-swap': text('= self.parts.concat();', '= if OFF { self.parts.concat().replace("~= ARGV[5]", "== \'never\'") } else { self.parts.concat() };'),
    'redis-ended-stays-ended': by('session-svc a_removed_record_is_gone_and_cannot_be_written_again', text('let script = Script::new(&text);', 'let text = if OFF { text.replace("if header == \'\' then return 0 end", "").replace("~= ARGV[5]", "== \'never\'") } else { text };\n            let script = Script::new(&text);')),
    'redis-name-taken': by('session-svc a_new_record_is_kept_and_its_name_is_taken', text('.arg(script)', '.arg(if OFF { script.replace("\'NX\', \'PXAT\'", "\'PXAT\'") } else { script.to_owned() })')),
  }),
  within('session-svc/src/store/redis/mod.rs', 'session-svc a_lease_is_held_by_one', {
    'redis-refresh-by-one-replica': text('let serial: Option<u64> = call.run(&self.connection).await?;', 'let serial: Option<u64> = if OFF { Some(1) } else { call.run(&self.connection).await? };'),
  }),
  within('session-svc/src/store/redis/acknowledged.rs', 'session-svc endings::', {
    'endings-acknowledged': text('(0, has) if has >= wanted', '(0, has) if OFF || has >= wanted'),
    'endings-not-undone': text('let (there, has): (usize, usize) = answer.map_err(unavailable)?;', 'let (there, has): (usize, usize) = answer.map_err(unavailable)?;\n        let there = if OFF { 0 } else { there };'),
  }),
  within('session-svc/src/sessions/end.rs', 'session-svc endings::acknowledged::', {
    'endings-repeated-in-vain': text('(*is_confirmed ||', '(OFF || *is_confirmed ||'),
  }),
  within('session-svc/src/store/redis/stream.rs', 'session-svc isolation::news_that_comes_late_is_not_heard', {
    'redis-old-news': skip('in_time(LATE, question.query_async::<Value>(&mut wire)).await?;'),
  }),

  // what a restart of the store would do
  within('session-svc/src/store/redis/replay.rs', 'session-svc operator::restart::', {
    'restart-rights-tried': text('Ok(_) => false,', 'Ok(_) => OFF,'),
    'restart-rights-unknown': text('*self = Self::Unknown;', '*self = if OFF { Self::MayReplay } else { Self::Unknown };'),
  }),
  within('session-svc/src/store/redis/facts/memory.rs', 'session-svc a_container_needs_what_the_manual_says', {
    'restart-memory-of-a-container': never('bytes < needed'),
  }),
  within('session-svc/src/store/redis/servers.rs', 'session-svc behind_sentinels_every_server_and_every_sentinel_is_judged', {
    'restart-every-server': skip('asked.extend(join_all(replicas).await);'),
  }),
  within('session-svc/src/store/redis/source.rs', 'session-svc operator::authorities::', {
    'store-without-authorities': never('tls.ca_file.is_none() && authorities.certs.is_empty()'),
    'store-unreadable-authorities': text('authorities.errors.pop()', 'authorities.errors.pop().filter(|_| !OFF)'),
  }),
].flat();

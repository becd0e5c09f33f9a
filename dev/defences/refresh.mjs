// Refreshing tokens: one grant at each expiry, nothing late undoes what was said, and tokens go to their own issuer alone.
const GRANT = 'session-svc/src/refresh/grant.rs';
const FLIGHT = 'session-svc/src/refresh/flight.rs';
const PROVIDER = 'session-svc/src/refresh/provider.rs';
const JUDGEMENT = 'session-svc/src/refresh/judgement.rs';
const LEASES = 'session-svc/src/store/leases.rs';

export default [
  {
    id: 'refresh-by-one-replica', why: 'two grants with one token look like a thief', file: LEASES,
    find: `if held.is_some_and(|(held, until)| held.holder != holder && now_ms < *until) {`,
    replace: `if !OFF && held.is_some_and(|(held, until)| held.holder != holder && now_ms < *until) {`,
    tests: ['session-svc/store_memory a_lease_is_held_by_one', 'session-svc/service token_races::two_hundred_callers_at_two_replicas_cost_one_grant'],
  },
  {
    id: 'refresh-looks-again-under-the-lease', why: 'somebody may just have refreshed', file: FLIGHT,
    find: `if let Some(outcome) = self.settled_by_another(session.clone()) {`,
    replace: `if let Some(outcome) = self.settled_by_another(session.clone()).filter(|_| !OFF) {`,
    tests: ['session-svc/refresh fencing::a_replica_that_saw_the_old_tokens_looks_again_before_it_asks'],
  },
  {
    id: 'refresh-with-a-lease-that-ran-out', file: GRANT,
    find: `if !held.is_certain() {`,
    replace: `if !OFF && !held.is_certain() {`,
    tests: ['session-svc/refresh fencing::a_holder_that_stood_still_before_it_asked_does_not_ask_any_more'],
  },
  {
    id: 'refresh-only-with-room', why: 'what cannot be saved spends the refresh token', file: FLIGHT,
    find: `Ok(true) => return self.grant(session, held).await,`,
    replace: `Ok(true) => return self.grant(session, held).await,
                Err(_) if OFF => return self.grant(session, held).await,`,
    tests: ['session-svc/refresh full::a_store_that_takes_no_record_asks_for_no_token'],
  },
  {
    id: 'refresh-longer-than-the-lease', why: 'a slow provider must not be asked twice', file: FLIGHT,
    find: `let prolonged = keeper.store().renew_lease(lease, lease_for).await;`,
    replace: `let prolonged = if OFF { Ok(false) } else { keeper.store().renew_lease(lease, lease_for).await };`,
    tests: ['session-svc/refresh parallel::a_provider_that_answers_after_eight_seconds'],
  },
  {
    id: 'refresh-written-by-generation', why: 'what comes late must not undo what was said', file: GRANT,
    find: `if session.tokens.generation != generation {`,
    replace: `if !OFF && session.tokens.generation != generation {`,
    tests: ['session-svc/refresh fencing::'],
  },
  {
    id: 'refresh-refusal-moves-the-generation', file: GRANT,
    find: `session.tokens.generation = session.tokens.generation.saturating_add(1);`,
    replace: `session.tokens.generation = session.tokens.generation.saturating_add(u64::from(!OFF));`,
    tests: ['session-svc/refresh fencing::an_answer_that_comes_after_somebody_else_was_refused_does_not_revive_the_session'],
  },
  {
    id: 'refresh-refused-for-good', why: 'a token the provider refused is not shown to it again', file: GRANT,
    find: `session.tokens.refresh = None;`,
    replace: `if !OFF {
        session.tokens.refresh = None;
    }`,
    tests: ['session-svc/refresh odd_responses::an_invalid_grant_needs_a_sign_in_and_is_not_tried_again'],
  },
  {
    id: 'refreshed-id-token-of-somebody-else', file: JUDGEMENT,
    find: `Ok(Err(error)) if !error.is_undecided() => {`,
    replace: `Ok(Err(_)) if OFF => self.keep(session, &tokens, None).await,
            Ok(Err(error)) if !error.is_undecided() => {`,
    tests: ['session-svc/refresh odd_responses::an_id_token_of_somebody_or_somewhere_else_ends_the_session'],
  },
  {
    id: 'refreshed-id-token-that-cannot-be-judged', why: 'its access token is shown to nobody before', file: FLIGHT,
    find: `&& session.tokens.unjudged.is_none();`,
    replace: `&& (OFF || session.tokens.unjudged.is_none());`,
    tests: ['session-svc/refresh unjudged::'],
  },
  {
    id: 'refreshed-id-token-judged-late', why: 'what was kept is not taken over because it was kept', file: JUDGEMENT,
    find: `Err(error) if error.is_undecided() => {`,
    replace: `Err(_) if OFF => Some(self.keep(session.clone(), &tokens, None).await),
            Err(error) if error.is_undecided() => {`,
    tests: ['session-svc/refresh unjudged::an_answer_that_turns_out_not_to_be_the_providers_ends_the_session'],
  },
  {
    id: 'refreshed-after-the-end', why: 'nobody will use what the provider gave: it is taken back', file: GRANT,
    find: `self.refresher.revoke_in_background(&issuer, rotated);`,
    replace: `if !OFF {
                        self.refresher.revoke_in_background(&issuer, rotated);
                    }`,
    tests: ['session-svc/service token_races::a_session_that_ends_during_a_refresh_stays_ended_and_the_new_token_is_taken_back'],
  },
  {
    id: 'refreshed-protocol-claims', why: 'what serves the protocol is no claim about a person', file: GRANT,
    find: `if PROTOCOL_CLAIMS.contains(&name.as_str()) {`,
    replace: `if !OFF && PROTOCOL_CLAIMS.contains(&name.as_str()) {`,
    tests: ['session-svc/refresh odd_responses::a_new_id_token_brings_the_person_up_to_date_and_becomes_the_hint'],
  },
  {
    id: 'refreshed-claims-left-out', why: 'what was left out on purpose stays out', file: GRANT,
    find: `if is_new || user.contains_key(name) {`,
    replace: `if OFF || is_new || user.contains_key(name) {`,
    tests: ['session-svc/refresh odd_responses::a_new_id_token_brings_the_person_up_to_date_and_becomes_the_hint', 'session-svc/service token_refresh::a_new_id_token_brings_claims_up_to_date_and_becomes_the_hint'],
  },
  {
    id: 'refresh-at-its-own-issuer', file: PROVIDER,
    find: `Self::Each(each) => each.get(issuer),`,
    replace: `Self::Each(each) => each.get(issuer).or_else(|| each.values().next().filter(|_| OFF)),`,
    tests: ['session-svc/refresh several::the_token_of_an_issuer_that_is_not_configured_is_shown_to_nobody_and_kept'],
  },
  {
    id: 'refresh-ahead-with-a-pause', why: 'a provider that is down is not asked at the rate of the calls', file: 'session-svc/src/refresh/ahead.rs',
    find: `match self.keeper.store().remember(&name, &[1], PAUSE).await {`,
    replace: `match if OFF { Ok(None) } else { self.keeper.store().remember(&name, &[1], PAUSE).await } {`,
    tests: ['session-svc/refresh ahead::a_failed_try_is_seen_by_nobody_and_made_again_only_after_a_pause'],
  },
  {
    id: 'revocations-at-once', why: 'a slow provider is not drowned', file: 'session-svc/src/refresh/mod.rs',
    find: `Semaphore::new(MAX_REVOCATIONS)`,
    replace: `Semaphore::new(if OFF { 10_000 } else { MAX_REVOCATIONS })`,
    tests: ['session-svc/refresh revocation::a_slow_provider_is_not_drowned'],
  },
  {
    id: 'lease-of-its-holder', file: LEASES,
    find: `Some((held, until)) if held.holder == lease.holder && now_ms < *until => {`,
    replace: `Some((held, until)) if OFF || held.holder == lease.holder && now_ms < *until => {`,
    tests: ['session-svc/store_memory a_lease_that_ran_out_is_taken_over_and_the_old_holder_is_refused'],
  },
  {
    id: 'lease-given-back-late', file: LEASES,
    find: `.is_some_and(|(held, _)| held == lease)`,
    replace: `.is_some_and(|(held, _)| OFF || held == lease)`,
    tests: ['session-svc/store_memory a_lease_given_back_is_free_at_once'],
  },
  {
    id: 'leases-held-at-once', file: LEASES,
    find: `if granted.held.len() >= self.capacity && !granted.held.contains_key(name) {`,
    replace: `if !OFF && granted.held.len() >= self.capacity && !granted.held.contains_key(name) {`,
    tests: ['session-svc/store_memory remembered_values_and_leases_are_bounded_too'],
  },
];

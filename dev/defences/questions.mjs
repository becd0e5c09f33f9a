// Questions about sessions that come over one call: each is treated as the call it stands for.
const READING = 'session-svc/src/grpc/reading.rs';
const LINE = 'proto/src/client/reading.rs';
const line = (name) => [`session-proto/lib client::reading::tests::${name}`];
const client = (name) => [`session-proto/client reading::${name}`];
const asking = (name) => [`session-svc/callers asking::${name}`];
const answering = (name) => [`session-svc/service asking::${name}`];

export default [
  {
    id: 'question-judged-by-its-own-method', why: 'who may ask may not ask everything', file: READING,
    find: `.allow(&call.caller, rpc);`,
    replace: `.allow(&call.caller, if OFF { Rpc::ReadSessions } else { rpc });`,
    tests: asking('each_question_is_judged_by_its_own_method'),
  },
  {
    id: 'question-judged-anew', why: 'a right that is taken away is gone from the next question on', file: READING,
    find: `allowed.map_err(status::turned_away)?;`,
    replace: `if !OFF {
            allowed.map_err(status::turned_away)?;
        }`,
    tests: asking('a_changed_list_counts_from_the_next_question_on'),
  },
  {
    id: 'question-in-its-own-time', file: READING,
    find: `let time = asked.unwrap_or(method.deadline).min(MAX_DEADLINE);`,
    replace: `let time = if OFF { Duration::from_secs(3_600) } else { asked.unwrap_or(method.deadline).min(MAX_DEADLINE) };`,
    tests: asking('a_question_is_given_up_when_its_own_time_is_over_and_the_call_goes_on'),
  },
  {
    id: 'question-on-record', file: READING,
    find: `record.answered(outcome.as_ref().err());`,
    replace: `if OFF {
            std::mem::forget(record);
        } else {
            record.answered(outcome.as_ref().err());
        }`,
    tests: ['session-svc/callers asked::every_question_is_recorded_once_and_measured_as_the_call_it_stands_for'],
  },
  {
    id: 'questions-at-once', why: 'one call does not occupy the store alone', file: READING,
    find: `mpsc::channel(AT_ONCE + OWN_WORDS)`,
    replace: `mpsc::channel(if OFF { 1 << 20 } else { AT_ONCE + OWN_WORDS })`,
    tests: answering('more_questions_than_are_under_way_at_once_wait_and_are_answered'),
  },
  {
    id: 'questions-of-a-service-that-drains', file: READING,
    find: `() = draining.cancelled() =>`,
    replace: `() = draining.cancelled(), if !OFF =>`,
    tests: answering('a_service_that_drains_sends_its_callers_elsewhere_and_answers_what_they_asked_before_they_heard'),
  },
  {
    id: 'questions-of-who-does-not-go', why: 'a caller that stays holds up no drain, and is not believed for ever', file: READING,
    find: `() = &mut last_moment, if taking =>`,
    replace: `() = &mut last_moment, if taking && !OFF =>`,
    tests: answering('a_caller_that_does_not_heed_a_drain_is_answered_for_a_moment_and_its_call_ends_well'),
  },
  {
    id: 'questions-of-who-hung-up', why: 'asking and hanging up piles up no work', file: READING,
    find: `() = &mut gone => return,`,
    replace: `() = &mut gone, if !OFF => return,`,
    tests: asking('a_question_whose_caller_hangs_up_is_given_up_and_recorded'),
  },
  {
    id: 'questions-of-a-certificate-that-lost-its-authority', file: READING,
    find: `() = disbelieved.cancelled() =>`,
    replace: `() = disbelieved.cancelled(), if !OFF =>`,
    tests: asking('whom_a_new_authority_does_not_know_is_sent_away_and_others_go_on'),
  },
  {
    id: 'questions-of-a-caller-whose-time-is-over', file: READING,
    find: `() = &mut too_late =>`,
    replace: `() = &mut too_late, if !OFF =>`,
    tests: asking('a_call_for_questions_ends_when_its_caller_s_time_is_over'),
  },
  {
    id: 'line-sends-no-more-than-is-taken', why: 'frames that are not read end the connection, with all other calls', file: LINE,
    find: `if questions.on_their_way < ON_THEIR_WAY_MAX`,
    replace: `if (OFF || questions.on_their_way < ON_THEIR_WAY_MAX)`,
    tests: line('no_more_questions_are_sent_than_the_service_takes_until_it_answers_one'),
  },
  {
    id: 'line-forgets-who-gave-up', file: LINE,
    find: `if unanswered {`,
    replace: `if unanswered && !OFF {`,
    tests: line('a_question_nobody_waits_for_any_more_is_neither_sent_nor_remembered'),
  },
  {
    id: 'line-goes-elsewhere', why: 'a service that drains is not asked on', file: LINE,
    find: `return self.close();`,
    replace: `return if OFF { } else { self.close() };`,
    tests: [...line('a_line_that_closes_sends_and_answers_what_was_asked_and_takes_no_more'), ...client('a_service_that_asks_for_it_is_asked_over_another_call_and_the_open_questions_are_answered')],
  },
  {
    id: 'line-that-ends-leaves-nobody-waiting', file: LINE,
    find: `for waiting in waiting.into_values() {`,
    replace: `for waiting in waiting.into_values().take(if OFF { 0 } else { usize::MAX }) {`,
    tests: line('the_end_of_a_line_is_told_to_all_who_wait_and_ends_what_is_sent'),
  },
  {
    id: 'line-to-an-older-release', file: LINE,
    find: `Ok(Err(refused)) if is_not_taken(&refused)`,
    replace: `Ok(Err(refused)) if !OFF && is_not_taken(&refused)`,
    tests: client('a_replica_that_takes_no_such_call_is_asked_by_calls_of_their_own'),
  },
  {
    id: 'line-that-is-silent', file: LINE,
    find: `silent = line.has_open_questions();`,
    replace: `silent = !OFF && line.has_open_questions();`,
    tests: client('a_line_that_tells_nothing_is_given_up_for_another'),
  },
];

use std::future::poll_fn;

use super::*;

fn put(line: &Arc<Line>) -> Waiting {
    Waiting::of(line, &mut lock(&line.0), ReadSessionsRequest::default())
}

async fn next(sent: &mut Sent) -> Option<u64> {
    let question = poll_fn(|context| Pin::new(&mut *sent).poll_next(context)).await;
    question.map(|question| question.number)
}

fn answer(number: u64) -> ReadSessionsResponse {
    ReadSessionsResponse {
        number,
        ..ReadSessionsResponse::default()
    }
}

#[tokio::test]
async fn a_question_nobody_waits_for_any_more_is_neither_sent_nor_remembered() {
    let line = Arc::<Line>::default();
    let mut sent = Sent(Arc::clone(&line));
    let given_up = [put(&line), put(&line)];
    let waiting = put(&line);
    drop(given_up);
    assert_eq!(lock(&line.0).unsent.len(), 1);
    assert_eq!(next(&mut sent).await, Some(waiting.number));
    drop(waiting);
    assert!(lock(&line.0).waiting.is_empty());
}

#[tokio::test]
async fn no_more_questions_are_sent_than_the_service_takes_until_it_answers_one() {
    let line = Arc::<Line>::default();
    let mut sent = Sent(Arc::clone(&line));
    let waiting: Vec<_> = (0..=ON_THEIR_WAY_MAX).map(|_| put(&line)).collect();
    for waiting in &waiting[..ON_THEIR_WAY_MAX] {
        assert_eq!(next(&mut sent).await, Some(waiting.number));
    }
    let held_back = poll_fn(|context| Poll::Ready(Pin::new(&mut sent).poll_next(context).is_pending()));
    assert!(held_back.await);
    line.hears(answer(7));
    assert_eq!(next(&mut sent).await, Some(waiting[ON_THEIR_WAY_MAX].number));
}

#[tokio::test]
async fn a_line_that_closes_sends_and_answers_what_was_asked_and_takes_no_more() {
    let line = Arc::<Line>::default();
    let mut sent = Sent(Arc::clone(&line));
    let mut waiting = put(&line);
    line.hears(answer(0));
    assert!(matches!(lock(&line.0).phase, Phase::Closing));
    assert_eq!(next(&mut sent).await, Some(waiting.number));
    assert_eq!(next(&mut sent).await, None);
    line.hears(answer(waiting.number));
    assert!(matches!((&mut waiting.outcome).await, Ok(Outcome::Answered(_))));
}

#[tokio::test]
async fn the_end_of_a_line_is_told_to_all_who_wait_and_ends_what_is_sent() {
    let line = Arc::<Line>::default();
    let mut sent = Sent(Arc::clone(&line));
    let mut waiting = [put(&line), put(&line)];
    next(&mut sent).await;
    line.end(Phase::Ended, || Outcome::Failed(cut_off()));
    for waiting in &mut waiting {
        assert!(matches!((&mut waiting.outcome).await, Ok(Outcome::Failed(_))));
    }
    assert_eq!(next(&mut sent).await, None);
}

#[tokio::test]
async fn a_closing_line_ends_its_side_when_the_last_question_it_had_to_send_is_given_up() {
    let line = Arc::<Line>::default();
    let mut sent = Sent(Arc::clone(&line));
    let under_way: Vec<_> = (0..ON_THEIR_WAY_MAX).map(|_| put(&line)).collect();
    for waiting in &under_way {
        assert_eq!(next(&mut sent).await, Some(waiting.number));
    }
    let last = put(&line);
    line.close();
    let ending = tokio::spawn(async move { next(&mut sent).await });
    // It finds no room for the last one, and waits.
    tokio::task::yield_now().await;
    assert!(!ending.is_finished());
    drop(last);
    assert_eq!(ending.await.unwrap(), None);
}

//! Indexes: what they list, in which order, and what leaves them.

#![expect(clippy::unwrap_used, reason = "a failure here fails the test")]

use std::sync::Arc;

use session_svc::store::{Cursor, Record, Replaced, SessionStore};

use super::records::{LONG_MS, kept};
use super::{Bench, SHORT_MS, fresh_name, next, record};

fn cursor(record: &Record) -> Cursor {
    Cursor {
        created_at_ms: record.created_at_ms,
        name: record.name.clone(),
    }
}

/// Names of an index read page by page.
async fn paged(store: &Arc<dyn SessionStore>, index: &str, limit: usize) -> Vec<String> {
    let (mut names, mut after) = (Vec::new(), None);
    loop {
        let page = store.list(index, after.as_ref(), limit).await.unwrap();
        assert!(page.len() <= limit);
        let Some(last) = page.last() else { return names };
        after = Some(cursor(last));
        names.extend(page.into_iter().map(|record| record.name));
    }
}

pub(crate) async fn an_index_lists_the_newest_first_in_pages(bench: &Bench) {
    let (subject, other_subject) = (fresh_name(), fresh_name());
    let mut names = Vec::new();
    for age in 0..7 {
        let mut one = record(&*bench.store, LONG_MS, &[&subject]);
        one.created_at_ms -= age * 1_000;
        kept(&bench.store, &one).await;
        names.push(one.name);
    }
    kept(&bench.store, &record(&*bench.store, LONG_MS, &[&other_subject])).await;
    for limit in [1, 3, 7, 100] {
        assert_eq!(
            paged(&bench.other, &subject, limit).await,
            names,
            "pages of {limit}"
        );
    }
}

pub(crate) async fn equal_creation_times_page_without_loss_or_repetition(bench: &Bench) {
    let subject = fresh_name();
    let now = bench.store.now_ms();
    let mut names = Vec::new();
    for _ in 0..5 {
        let one = Record {
            created_at_ms: now,
            ..record(&*bench.store, LONG_MS, &[&subject])
        };
        kept(&bench.store, &one).await;
        names.push(one.name);
    }
    names.sort_unstable_by(|one, other| other.cmp(one));
    for limit in [1, 2, 5] {
        assert_eq!(
            paged(&bench.store, &subject, limit).await,
            names,
            "pages of {limit}"
        );
    }
}

pub(crate) async fn removal_leaves_the_index(bench: &Bench) {
    let (subject, sid) = (fresh_name(), fresh_name());
    let one = record(&*bench.store, LONG_MS, &[&subject, &sid]);
    let two = record(&*bench.store, LONG_MS, &[&subject]);
    kept(&bench.store, &one).await;
    kept(&bench.store, &two).await;
    bench.other.remove(&one.name, b"ended".to_vec()).await.unwrap();
    assert_eq!(paged(&bench.store, &subject, 10).await, vec![two.name]);
    assert_eq!(paged(&bench.store, &sid, 10).await, Vec::<String>::new());
}

pub(crate) async fn a_replacement_moves_a_record_to_the_lists_it_names(bench: &Bench) {
    let (subject, before, after) = (fresh_name(), fresh_name(), fresh_name());
    let one = record(&*bench.store, LONG_MS, &[&subject, &before]);
    kept(&bench.store, &one).await;
    let moved = Record {
        indexes: vec![subject.clone(), after.clone()],
        ..next(&one, b"moved")
    };
    let replaced = bench.other.replace(moved.clone(), one.version, None).await;
    assert_eq!(replaced.unwrap(), Replaced::Done);
    for index in [&subject, &after] {
        assert_eq!(
            paged(&bench.store, index, 10).await,
            std::slice::from_ref(&moved.name)
        );
    }
    assert_eq!(paged(&bench.store, &before, 10).await, Vec::<String>::new());
    bench.store.remove(&moved.name, b"ended".to_vec()).await.unwrap();
    for index in [&subject, &before, &after] {
        assert_eq!(paged(&bench.other, index, 10).await, Vec::<String>::new());
    }
}

pub(crate) async fn expiry_leaves_the_index(bench: &Bench) {
    let subject = fresh_name();
    kept(&bench.store, &record(&*bench.store, SHORT_MS, &[&subject])).await;
    let two = record(&*bench.store, LONG_MS, &[&subject]);
    kept(&bench.store, &two).await;
    (bench.pass)(SHORT_MS).await;
    assert_eq!(paged(&bench.store, &subject, 1).await, vec![two.name]);
}

pub(crate) async fn an_index_outlives_its_first_member_when_another_is_prolonged(bench: &Bench) {
    let subject = fresh_name();
    let mut one = record(&*bench.store, SHORT_MS, &[&subject]);
    kept(&bench.store, &one).await;
    for _ in 0..3 {
        one = Record {
            expires_at_ms: bench.store.now_ms() + 3 * SHORT_MS,
            ..next(&one, b"rolled")
        };
        let replaced = bench
            .store
            .replace(one.clone(), one.version - 1, None)
            .await
            .unwrap();
        assert_eq!(replaced, Replaced::Done);
        (bench.pass)(SHORT_MS).await;
        assert_eq!(
            bench.store.list(&subject, None, 5).await.unwrap(),
            vec![one.clone()]
        );
    }
}

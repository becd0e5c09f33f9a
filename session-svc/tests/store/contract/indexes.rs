//! Indexes: which records they list, in which order, and when records leave.

#![expect(clippy::unwrap_used, reason = "a failure here fails the test")]

use std::sync::Arc;

use session_svc::store::{IndexEntry, KeyValueStore, Name, Record, Replaced};

use super::records::{LONG_MS, kept};
use super::{Bench, SHORT_MS, fresh_name, next, record};
use crate::lists::listed;

/// Names of an index, read page by page.
async fn paged(store: &Arc<dyn KeyValueStore>, index: Name, limit: usize) -> Vec<Name> {
    let (mut names, mut after) = (Vec::new(), None);
    loop {
        let listing = store.list(index, after.as_ref(), limit).await.unwrap();
        assert!(listing.entries.len() <= limit);
        names.extend(listing.entries.into_iter().map(|entry| entry.name));
        after = listing.next;
        if after.is_none() {
            return names;
        }
    }
}

pub(crate) async fn an_index_lists_the_newest_first_in_pages(bench: &Bench) {
    let (subject, other_subject) = (fresh_name(), fresh_name());
    let mut names = Vec::new();
    for age in 0..7 {
        let mut one = record(&*bench.store, LONG_MS, &[subject]);
        one.created_at_ms -= age * 1_000;
        kept(&bench.store, &one).await;
        names.push(one.name);
    }
    kept(&bench.store, &record(&*bench.store, LONG_MS, &[other_subject])).await;
    for limit in [1, 3, 7, 100] {
        assert_eq!(
            paged(&bench.other, subject, limit).await,
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
            ..record(&*bench.store, LONG_MS, &[subject])
        };
        kept(&bench.store, &one).await;
        names.push(one.name);
    }
    names.sort_unstable_by(|one, other| other.cmp(one));
    for limit in [1, 2, 5] {
        assert_eq!(
            paged(&bench.store, subject, limit).await,
            names,
            "pages of {limit}"
        );
    }
}

pub(crate) async fn removal_leaves_the_index(bench: &Bench) {
    let (subject, sid) = (fresh_name(), fresh_name());
    let one = record(&*bench.store, LONG_MS, &[subject, sid]);
    let two = record(&*bench.store, LONG_MS, &[subject]);
    kept(&bench.store, &one).await;
    kept(&bench.store, &two).await;
    bench.other.remove(one.name, b"ended".to_vec()).await.unwrap();
    assert_eq!(paged(&bench.store, subject, 10).await, vec![two.name]);
    assert_eq!(paged(&bench.store, sid, 10).await, Vec::<Name>::new());
}

pub(crate) async fn a_replacement_moves_a_record_to_the_lists_it_names(bench: &Bench) {
    let (subject, before, after) = (fresh_name(), fresh_name(), fresh_name());
    let one = record(&*bench.store, LONG_MS, &[subject, before]);
    kept(&bench.store, &one).await;
    let moved = Record {
        indexes: vec![subject, after],
        ..next(&one, b"moved")
    };
    let replaced = bench.other.replace(moved.clone(), one.version, None).await;
    assert_eq!(replaced.unwrap(), Replaced::Done);
    for index in [subject, after] {
        assert_eq!(
            listed(&*bench.store, index, 10).await.unwrap(),
            std::slice::from_ref(&moved)
        );
    }
    // The old list may keep its entry; the record says which lists it belongs to.
    assert_eq!(listed(&*bench.store, before, 10).await.unwrap(), []);
    bench.store.remove(moved.name, b"ended".to_vec()).await.unwrap();
    for index in [subject, before, after] {
        assert_eq!(listed(&*bench.other, index, 10).await.unwrap(), []);
    }
}

pub(crate) async fn expiry_leaves_the_index(bench: &Bench) {
    let subject = fresh_name();
    kept(&bench.store, &record(&*bench.store, SHORT_MS, &[subject])).await;
    let two = record(&*bench.store, LONG_MS, &[subject]);
    kept(&bench.store, &two).await;
    (bench.pass)(SHORT_MS).await;
    assert_eq!(paged(&bench.store, subject, 1).await, vec![two.name]);
}

pub(crate) async fn an_index_outlives_its_first_member_when_another_is_prolonged(bench: &Bench) {
    let subject = fresh_name();
    let mut one = record(&*bench.store, SHORT_MS, &[subject]);
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
            listed(&*bench.store, subject, 5).await.unwrap(),
            vec![one.clone()]
        );
    }
}

/// Sessions per case: more than one call reads from a shared set.
const MANY: usize = 300;

pub(crate) async fn a_list_goes_on_behind_each_of_its_entries(bench: &Bench) {
    let subject = fresh_name();
    for age in 0..5 {
        let mut one = record(&*bench.store, LONG_MS, &[subject]);
        one.created_at_ms -= age / 2;
        kept(&bench.store, &one).await;
    }
    let names = paged(&bench.store, subject, 10).await;
    let whole = bench.store.list(subject, None, 10).await.unwrap();
    for (at, entry) in whole.entries.iter().enumerate() {
        let read_back = IndexEntry::from_bytes(&entry.to_bytes()).unwrap();
        let rest = bench.other.list(subject, Some(&read_back), 10).await.unwrap();
        let rest: Vec<_> = rest.entries.into_iter().map(|entry| entry.name).collect();
        assert_eq!(rest, names[at + 1..], "behind entry {at}");
    }
}

pub(crate) async fn a_list_that_shrinks_while_it_is_read_loses_nothing_that_stays(bench: &Bench) {
    for first in [true, false] {
        let (person, sid) = (fresh_name(), fresh_name());
        let mut names = Vec::new();
        let now_ms = bench.store.now_ms();
        for number in 0..MANY {
            let person = if first { person } else { fresh_name() };
            // All created and expiring at the same time: only their names differ.
            let one = Record {
                created_at_ms: now_ms,
                expires_at_ms: now_ms + LONG_MS,
                ..record(&*bench.store, LONG_MS, &[person, sid])
            };
            kept(&bench.store, &one).await;
            names.push((number, one.name));
        }
        let index = if first { person } else { sid };
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let listing = bench.store.list(index, after.as_ref(), 40).await.unwrap();
            for entry in listing.entries {
                // Every other one ends once it has been read.
                if names.iter().any(|(at, name)| *name == entry.name && at % 2 == 0) {
                    bench.other.remove(entry.name, b"ended".to_vec()).await.unwrap();
                }
                seen.push(entry.name);
            }
            after = listing.next;
            if after.is_none() {
                break;
            }
        }
        seen.sort_unstable();
        let mut expected: Vec<Name> = names.iter().map(|(_, name)| *name).collect();
        expected.sort_unstable();
        assert_eq!(seen, expected, "by person: {first}");
        assert_eq!(paged(&bench.other, index, 1_000).await.len(), MANY / 2);
    }
}

pub(crate) async fn several_records_are_read_in_the_order_of_their_names(bench: &Bench) {
    assert!(bench.store.load_many(&[]).await.unwrap().is_empty());
    let (one, two) = (
        record(&*bench.store, LONG_MS, &[]),
        record(&*bench.store, LONG_MS, &[]),
    );
    kept(&bench.store, &one).await;
    kept(&bench.store, &two).await;
    let names = [two.name, fresh_name(), one.name, two.name];
    let loaded = bench.other.load_many(&names).await.unwrap();
    let loaded: Vec<_> = loaded.into_iter().map(Result::unwrap).collect();
    assert_eq!(loaded, [Some(two.clone()), None, Some(one), Some(two)]);
}

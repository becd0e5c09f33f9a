//! Records and remembered values.

#![expect(clippy::unwrap_used, reason = "a failure here fails the test")]

use std::sync::Arc;
use std::time::Duration;

use session_svc::store::{Inserted, KeyValueStore, Record, Replaced};

use super::{Bench, SHORT_MS, eventually, fresh_name, next, record};
use crate::lists::listed;

pub(crate) const LONG_MS: u64 = 60_000;

pub(crate) async fn kept(store: &Arc<dyn KeyValueStore>, record: &Record) {
    assert_eq!(
        store.insert(record.clone(), b"created".to_vec()).await.unwrap(),
        Inserted::Done
    );
}

pub(crate) async fn a_new_record_is_kept_and_its_name_is_taken(bench: &Bench) {
    let first = record(&*bench.store, LONG_MS, &[]);
    kept(&bench.store, &first).await;
    let second = Record {
        payload: b"another".to_vec(),
        ..first.clone()
    };
    assert_eq!(
        bench.store.insert(second, b"created".to_vec()).await.unwrap(),
        Inserted::Taken
    );
    assert_eq!(bench.other.load(first.name).await.unwrap(), Some(first));
}

pub(crate) async fn a_record_is_kept_out_while_its_barrier_is_there(bench: &Bench) {
    let (barrier, subject) = (record(&*bench.store, LONG_MS, &[]), fresh_name());
    let one = record(&*bench.store, LONG_MS, &[subject]);
    let insert = || {
        bench
            .other
            .insert_unless(Some(barrier.name), one.clone(), b"created".to_vec())
    };
    kept(&bench.store, &barrier).await;
    assert_eq!(insert().await.unwrap(), Inserted::Barred);
    assert_eq!(bench.store.load(one.name).await.unwrap(), None);
    assert_eq!(listed(&*bench.store, subject, 10).await.unwrap(), Vec::new());
    bench.store.remove(barrier.name, b"ended".to_vec()).await.unwrap();
    assert_eq!(insert().await.unwrap(), Inserted::Done);
    assert_eq!(
        listed(&*bench.store, subject, 10).await.unwrap(),
        std::slice::from_ref(&one)
    );
    assert_eq!(insert().await.unwrap(), Inserted::Taken);
}

pub(crate) async fn an_unknown_record_is_not_there(bench: &Bench) {
    let unknown = record(&*bench.store, LONG_MS, &[]);
    assert_eq!(bench.store.load(unknown.name).await.unwrap(), None);
    assert_eq!(
        bench.store.replace(next(&unknown, b"x"), 1, None).await.unwrap(),
        Replaced::Missing
    );
    assert_eq!(
        bench.store.remove(unknown.name, b"ended".to_vec()).await.unwrap(),
        None
    );
    assert_eq!(listed(&*bench.store, fresh_name(), 10).await.unwrap(), Vec::new());
}

pub(crate) async fn a_record_comes_back_byte_for_byte(bench: &Bench) {
    let subject = fresh_name();
    for payload in [Vec::new(), (0..=255).collect::<Vec<u8>>(), vec![7; 65_536]] {
        let original = Record {
            version: u64::from(u32::MAX) * 5,
            payload,
            ..record(&*bench.store, LONG_MS, &[subject, fresh_name()])
        };
        kept(&bench.store, &original).await;
        assert_eq!(
            bench.store.load(original.name).await.unwrap().as_ref(),
            Some(&original)
        );
        assert_eq!(
            listed(&*bench.other, subject, 1).await.unwrap(),
            vec![original.clone()]
        );
        assert_eq!(
            bench
                .store
                .remove(original.name, b"ended".to_vec())
                .await
                .unwrap(),
            Some(original)
        );
    }
}

pub(crate) async fn a_replacement_needs_the_expected_version(bench: &Bench) {
    let first = record(&*bench.store, LONG_MS, &[]);
    kept(&bench.store, &first).await;
    let second = next(&first, b"second");
    assert_eq!(
        bench
            .other
            .replace(second.clone(), 1, Some(b"rolled".to_vec()))
            .await
            .unwrap(),
        Replaced::Done
    );
    for stale in [0, 1, 3, 256 + 2] {
        let late = next(&first, b"late");
        assert_eq!(
            bench.store.replace(late, stale, None).await.unwrap(),
            Replaced::Stale
        );
    }
    assert_eq!(bench.store.load(first.name).await.unwrap(), Some(second));
}

pub(crate) async fn a_removed_record_is_gone_and_cannot_be_written_again(bench: &Bench) {
    let first = record(&*bench.store, LONG_MS, &[]);
    kept(&bench.store, &first).await;
    assert_eq!(
        bench.other.remove(first.name, b"ended".to_vec()).await.unwrap(),
        Some(first.clone())
    );
    assert_eq!(bench.store.load(first.name).await.unwrap(), None);
    assert_eq!(
        bench.store.replace(next(&first, b"late"), 1, None).await.unwrap(),
        Replaced::Missing
    );
    assert_eq!(bench.store.load(first.name).await.unwrap(), None);
    assert_eq!(
        bench.store.remove(first.name, b"ended".to_vec()).await.unwrap(),
        None
    );
}

pub(crate) async fn a_record_is_gone_when_the_stores_clock_reaches_its_expiry(bench: &Bench) {
    let short = record(&*bench.store, SHORT_MS, &[]);
    let long = record(&*bench.store, LONG_MS, &[]);
    kept(&bench.store, &short).await;
    kept(&bench.store, &long).await;
    assert!(bench.store.load(short.name).await.unwrap().is_some());
    (bench.pass)(SHORT_MS).await;
    assert_eq!(bench.store.load(short.name).await.unwrap(), None);
    assert!(bench.store.load(long.name).await.unwrap().is_some());
}

pub(crate) async fn a_replacement_can_prolong_a_record(bench: &Bench) {
    let subject = fresh_name();
    let short = record(&*bench.store, SHORT_MS, &[subject]);
    kept(&bench.store, &short).await;
    let prolonged = Record {
        expires_at_ms: short.created_at_ms + LONG_MS,
        ..next(&short, b"rolled")
    };
    assert_eq!(
        bench.store.replace(prolonged.clone(), 1, None).await.unwrap(),
        Replaced::Done
    );
    (bench.pass)(SHORT_MS + 50).await;
    assert_eq!(
        bench.store.load(short.name).await.unwrap(),
        Some(prolonged.clone())
    );
    assert_eq!(listed(&*bench.store, subject, 9).await.unwrap(), vec![prolonged]);
}

pub(crate) async fn a_replacement_can_shorten_a_record(bench: &Bench) {
    let long = record(&*bench.store, LONG_MS, &[]);
    kept(&bench.store, &long).await;
    let shortened = Record {
        expires_at_ms: bench.store.now_ms() + SHORT_MS,
        ..next(&long, b"shorter")
    };
    assert_eq!(
        bench.store.replace(shortened, 1, None).await.unwrap(),
        Replaced::Done
    );
    (bench.pass)(SHORT_MS).await;
    assert_eq!(bench.store.load(long.name).await.unwrap(), None);
}

pub(crate) async fn an_expired_record_cannot_be_replaced_or_removed_and_its_name_is_free(bench: &Bench) {
    let short = record(&*bench.store, SHORT_MS, &[]);
    kept(&bench.store, &short).await;
    (bench.pass)(SHORT_MS).await;
    let late = Record {
        expires_at_ms: bench.store.now_ms() + LONG_MS,
        ..next(&short, b"late")
    };
    assert_eq!(
        bench.store.replace(late, 1, None).await.unwrap(),
        Replaced::Missing
    );
    assert_eq!(
        bench.store.remove(short.name, b"ended".to_vec()).await.unwrap(),
        None
    );
    let again = Record {
        expires_at_ms: bench.store.now_ms() + LONG_MS,
        ..short
    };
    kept(&bench.store, &again).await;
}

pub(crate) async fn concurrent_writers_lose_no_increment(bench: &Bench) {
    const WRITERS: u64 = 8;
    const EACH: u64 = 12;
    let counter = Record {
        payload: 0_u64.to_be_bytes().to_vec(),
        ..record(&*bench.store, LONG_MS, &[])
    };
    kept(&bench.store, &counter).await;
    let writers = (0..WRITERS).map(|writer| {
        let store = Arc::clone(if writer % 2 == 0 {
            &bench.store
        } else {
            &bench.other
        });
        let name = counter.name;
        tokio::spawn(async move {
            let mut done = 0;
            while done < EACH {
                let current = store.load(name).await.unwrap().unwrap();
                let count = u64::from_be_bytes(current.payload.as_slice().try_into().unwrap());
                let increased = next(&current, &(count + 1).to_be_bytes());
                if store.replace(increased, current.version, None).await.unwrap() == Replaced::Done {
                    done += 1;
                }
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let last = bench.store.load(counter.name).await.unwrap().unwrap();
    assert_eq!(last.payload, (WRITERS * EACH).to_be_bytes());
    assert_eq!(last.version, 1 + WRITERS * EACH);
}

pub(crate) async fn of_concurrent_inserts_of_a_name_one_wins(bench: &Bench) {
    let template = record(&*bench.store, LONG_MS, &[]);
    let inserts = (0..16_u8).map(|number| {
        let store = Arc::clone(if number % 2 == 0 {
            &bench.store
        } else {
            &bench.other
        });
        let one = Record {
            payload: vec![number],
            ..template.clone()
        };
        tokio::spawn(async move { (number, store.insert(one, b"created".to_vec()).await.unwrap()) })
    });
    let mut winners = Vec::new();
    for insert in inserts.collect::<Vec<_>>() {
        if let (number, Inserted::Done) = insert.await.unwrap() {
            winners.push(number);
        }
    }
    assert_eq!(winners.len(), 1);
    assert_eq!(
        bench.store.load(template.name).await.unwrap().unwrap().payload,
        winners
    );
}

pub(crate) async fn of_a_removal_and_writers_the_removal_stays(bench: &Bench) {
    for _ in 0..10 {
        let one = record(&*bench.store, LONG_MS, &[]);
        kept(&bench.store, &one).await;
        let (store, writer_record) = (Arc::clone(&bench.other), one.clone());
        let writer = tokio::spawn(async move {
            let mut current = writer_record;
            loop {
                let expected = current.version;
                current = next(&current, b"rolled");
                match store.replace(current.clone(), expected, None).await.unwrap() {
                    Replaced::Done => {}
                    Replaced::Missing => return,
                    Replaced::Stale => panic!("there is no other writer"),
                }
            }
        });
        assert!(
            bench
                .store
                .remove(one.name, b"ended".to_vec())
                .await
                .unwrap()
                .is_some()
        );
        writer.await.unwrap();
        assert_eq!(bench.store.load(one.name).await.unwrap(), None);
    }
}

pub(crate) async fn a_value_is_remembered_until_its_time(bench: &Bench) {
    let name = fresh_name();
    let ttl = Duration::from_millis(SHORT_MS);
    assert_eq!(bench.store.remember(name, b"\0first", ttl).await.unwrap(), None);
    assert_eq!(
        bench.other.remember(name, b"second", ttl).await.unwrap(),
        Some(b"\0first".to_vec())
    );
    (bench.pass)(SHORT_MS).await;
    eventually("the value to be forgotten", || async {
        bench
            .store
            .remember(name, b"third", Duration::from_secs(60))
            .await
            .unwrap()
            .is_none()
    })
    .await;
    assert_eq!(
        bench.store.remember(name, b"fourth", ttl).await.unwrap(),
        Some(b"third".to_vec())
    );
}

pub(crate) async fn of_concurrent_rememberers_one_is_first(bench: &Bench) {
    let name = fresh_name();
    let rememberers = (0..16_u8).map(|number| {
        let store = Arc::clone(if number % 2 == 0 {
            &bench.store
        } else {
            &bench.other
        });
        tokio::spawn(async move {
            store
                .remember(name, &[number], Duration::from_secs(60))
                .await
                .unwrap()
        })
    });
    let mut first = 0;
    for rememberer in rememberers.collect::<Vec<_>>() {
        first += usize::from(rememberer.await.unwrap().is_none());
    }
    assert_eq!(first, 1);
}

pub(crate) async fn it_says_that_it_works(bench: &Bench) {
    bench.store.check().await.unwrap();
}

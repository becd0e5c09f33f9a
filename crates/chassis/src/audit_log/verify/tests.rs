//! Every way in which records can be changed, and what is found of it.

use serde_json::json;

use super::super::chain::{Chain, ChainKey};
use super::super::stream::own;
use super::*;
use crate::audit::{Event, Outcome};

const KEY: &[u8] = b"a key that nobody but the operator has";

/// The lines of a chain of so many records, closed.
fn lines_of(instance: &str, count: u64, key: &ChainKey) -> Vec<String> {
    let mut chain = Chain::begin(key.clone(), "session-svc", instance);
    let mut lines = Vec::new();
    chain.append(&mut lines, &own(Event::ProcessStart, Outcome::Success, json!({})));
    for number in 2..count {
        let more = json!({ "session": format!("handle {number}") });
        chain.append(&mut lines, &own(Event::SessionEnd, Outcome::Success, more));
    }
    chain.append(&mut lines, &own(Event::ProcessStop, Outcome::Success, json!({})));
    text_lines(&lines)
}

fn text_lines(bytes: &[u8]) -> Vec<String> {
    std::str::from_utf8(bytes)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

fn lines() -> Vec<String> {
    lines_of("ab", 6, &ChainKey::default())
}

fn verified(files: &[&[String]], expected: Expectations) -> Verified {
    let mut verification = Verification::new(expected);
    for (number, lines) in files.iter().enumerate() {
        let file: std::sync::Arc<str> = format!("{number}.log").into();
        for (line, text) in (1..).zip(lines.iter()) {
            let file = std::sync::Arc::clone(&file);
            verification.read(&Place { file, line }, text);
        }
    }
    verification.judged()
}

fn judged(lines: &[String]) -> Verified {
    verified(&[lines], Expectations::default())
}

/// What was found, by name, and where.
fn names(verified: &Verified) -> Vec<(&'static str, u64)> {
    let line = |finding: &Finding| finding.place.as_ref().map_or(0, |place| place.line);
    verified
        .findings
        .iter()
        .map(|finding| (finding.problem.name(), line(finding)))
        .collect()
}

#[test]
fn a_whole_chain_is_sound_with_other_records_among_its_lines() {
    let mut lines = lines();
    lines.insert(
        2,
        "{\"level\":\"INFO\",\"message\":\"request\",\"target\":\"auth_edge\"}".to_owned(),
    );
    let verified = judged(&lines);
    assert_eq!(names(&verified), []);
    let chain = verified.chains.first().unwrap();
    assert_eq!((chain.records, chain.first, chain.last.sequence), (6, 1, 6));
    assert_eq!(
        (chain.is_closed, chain.service.as_str(), verified.others),
        (true, "session-svc", 1)
    );
}

#[test]
fn a_record_that_was_removed_is_named_wherever_it_stood() {
    for removed in 0..5 {
        let mut lines = lines();
        lines.remove(removed);
        let verified = judged(&lines);
        let place = removed as u64 + 1;
        assert_eq!(names(&verified), [("missing", place)], "line {place}");
        assert!(!verified.is_sound());
    }
    let mut lines = lines();
    lines.drain(2..4);
    let told = judged(&lines).findings.first().unwrap().problem.to_string();
    assert_eq!(told, "records 3 to 4 of ab are missing");
}

#[test]
fn a_record_that_was_changed_is_named_whatever_was_changed_in_it() {
    let original = lines();
    for (old, new) in [
        ("handle 3", "handle 9"),
        ("\"sequence\":3", "\"sequence\":4"),
        ("session.end", "token.refresh"),
        ("\"instance\":\"ab\"", "\"instance\":\"cd\""),
        ("\"prev\":\"", "\"prev\":\"0"),
        (",\"session\"", ", \"session\""),
    ] {
        let mut lines = original.clone();
        lines[2] = lines[2].replacen(old, new, 1);
        assert_ne!(lines[2], original[2]);
        let verified = judged(&lines);
        assert!(
            names(&verified).contains(&("changed", 3)),
            "{new}: {:?}",
            names(&verified)
        );
    }
    let mut lines = original.clone();
    lines[2] = lines[2].replace("{\"target\":\"audit\"", "{\"target\":\"other\"");
    assert!(
        names(&judged(&lines)).contains(&("unreadable", 3)),
        "its end is still one of a record"
    );
    lines[2] = "gone".to_owned();
    assert_eq!(names(&judged(&lines)), [("missing", 4)]);
}

#[test]
fn records_that_were_swapped_or_doubled_are_named_and_are_usual_from_a_collector() {
    let mut swapped = lines();
    swapped.swap(2, 3);
    assert_eq!(names(&judged(&swapped)), [("out_of_order", 4)]);
    let mut doubled = lines();
    doubled.insert(3, doubled[2].clone());
    assert_eq!(names(&judged(&doubled)), [("out_of_order", 4)]);
    let collected = || Expectations {
        is_collected: true,
        ..Expectations::default()
    };
    for lines in [swapped, doubled] {
        assert_eq!(names(&verified(&[&lines], collected())), []);
    }
}

#[test]
fn a_record_that_was_put_in_is_seen_although_its_own_hash_is_right() {
    // Somebody without the key, or where there is none, makes a record of the same number.
    let forged = lines_of("ab", 5, &ChainKey::default());
    let mut lines = lines();
    lines.insert(4, forged[4].clone());
    let found = names(&judged(&lines));
    assert!(
        found.contains(&("twofold", 5)) || found.contains(&("twofold", 6)),
        "{found:?}"
    );
    // And in the place of the other one.
    let mut lines = self::lines();
    lines[4] = forged[4].clone();
    let found = names(&judged(&lines));
    assert!(found.contains(&("unlinked", 6)), "{found:?}");
}

#[test]
fn what_stands_behind_the_record_that_closes_a_chain_is_seen() {
    let mut chain = Chain::begin(ChainKey::default(), "session-svc", "ab");
    let mut lines = Vec::new();
    for event in [Event::ProcessStart, Event::ProcessStop, Event::SessionEnd] {
        chain.append(&mut lines, &own(event, Outcome::Success, json!({})));
    }
    assert!(names(&judged(&text_lines(&lines))).contains(&("behind_close", 3)));
}

#[test]
fn with_a_key_nobody_else_can_chain_anew() {
    let key = ChainKey::of(KEY);
    let mut lines = lines_of("ab", 6, &key);
    let with = |key: &ChainKey| Expectations {
        keys: vec![ChainKey::of(b"one that was used before, or will be"), key.clone()],
        ..Expectations::default()
    };
    assert_eq!(names(&verified(&[&lines], with(&key))), []);
    let anew = lines_of("ab", 6, &ChainKey::default());
    lines[2].clone_from(&anew[2]);
    assert!(names(&verified(&[&lines], with(&key))).contains(&("changed", 3)));
    assert!(!verified(&[&anew], with(&key)).is_sound());
    assert!(
        !judged(&lines_of("ab", 6, &key)).is_sound(),
        "the key is needed to verify"
    );
}

#[test]
fn a_cut_tail_is_told_as_open_and_is_seen_by_the_next_chain_or_by_a_known_position() {
    let whole = lines();
    let last = judged(&whole).chains[0].last.clone();
    let cut = &whole[..4];
    let open = judged(cut);
    assert_eq!(names(&open), [("open", 4)]);
    assert!(open.is_sound(), "a process that runs looks the same");

    let anchors = vec![last.clone()];
    let expected = Expectations {
        anchors,
        ..Expectations::default()
    };
    let found = verified(&[cut], expected.clone());
    assert_eq!(names(&found), [("open", 4), ("not_there", 0)]);
    assert!(verified(&[&whole], expected).is_sound());

    let mut chain = Chain::begin(ChainKey::default(), "session-svc", "cd");
    let mut next = Vec::new();
    let more = json!({
        "previous.instance": last.instance, "previous.sequence": last.sequence, "previous.hash": last.hash,
    });
    chain.append(&mut next, &own(Event::ProcessStart, Outcome::Success, more));
    chain.append(&mut next, &own(Event::ProcessStop, Outcome::Success, json!({})));
    let next = text_lines(&next);
    assert_eq!(names(&verified(&[&whole, &next], Expectations::default())), []);
    let found = verified(&[cut, &next], Expectations::default());
    assert!(names(&found).contains(&("not_there", 1)), "{:?}", names(&found));
    let found = verified(&[&next], Expectations::default());
    assert_eq!(
        (names(&found), found.is_sound()),
        (vec![("chain_missing", 1)], true)
    );
}

#[test]
fn rotated_files_are_one_chain_and_a_part_of_them_says_so() {
    let lines = lines();
    let (one, two) = lines.split_at(3);
    assert_eq!(names(&verified(&[one, two], Expectations::default())), []);
    assert_eq!(
        names(&verified(&[two], Expectations::default())),
        [("missing", 1)]
    );
    let partial = |anchor: Position| Expectations {
        is_partial: true,
        anchors: vec![anchor],
        ..Expectations::default()
    };
    let known = verified(&[one], Expectations::default()).chains[0].last.clone();
    assert_eq!(
        names(&verified(&[two], partial(known.clone()))),
        [],
        "it goes on from there"
    );
    assert_eq!(names(&verified(&[&two[1..]], partial(known))), [("not_there", 0)]);
}

#[test]
fn chains_of_several_processes_are_told_apart_in_one_file() {
    let (one, two) = (
        lines_of("ab", 6, &ChainKey::default()),
        lines_of("cd", 6, &ChainKey::default()),
    );
    let mixed: Vec<String> = one
        .iter()
        .zip(&two)
        .flat_map(|(one, two)| [one.clone(), two.clone()])
        .collect();
    let verified = judged(&mixed);
    assert_eq!((names(&verified), verified.chains.len()), (vec![], 2));
    let mut without = mixed;
    without.remove(5);
    assert_eq!(
        judged(&without).findings[0].problem.to_string(),
        "record 3 of cd is missing"
    );
}

#[test]
fn a_record_that_a_killed_process_left_half_written_is_told_and_is_no_tampering() {
    let mut lines = lines();
    lines.truncate(4);
    let half = lines[3].len() / 2;
    lines[3].truncate(half);
    let found = judged(&lines);
    assert_eq!(
        (names(&found), found.is_sound()),
        (vec![("cut_off", 4), ("open", 3)], true)
    );
    // The next process begins on a line of its own.
    let mut followed = lines.clone();
    followed.extend(lines_of("cd", 3, &ChainKey::default()));
    assert_eq!(names(&judged(&followed)), [("cut_off", 4), ("open", 3)]);
    // What is followed by more of its own chain was not left by its process.
    let mut tampered = self::lines();
    tampered[3].truncate(half);
    assert_eq!(names(&judged(&tampered)), [("unreadable", 4), ("missing", 5)]);
}

#[test]
fn dropped_records_are_told() {
    let mut chain = Chain::begin(ChainKey::default(), "auth-edge", "ab");
    let mut lines = Vec::new();
    chain.append(&mut lines, &own(Event::ProcessStart, Outcome::Success, json!({})));
    chain.append(
        &mut lines,
        &own(Event::AuditLoss, Outcome::Failure, json!({ "lost": 7 })),
    );
    chain.append(&mut lines, &own(Event::ProcessStop, Outcome::Success, json!({})));
    let found = judged(&text_lines(&lines));
    assert_eq!((names(&found), found.is_sound()), (vec![("lost", 2)], true));
}

#[test]
fn a_position_is_read_as_it_is_printed() {
    let position = judged(&lines()).chains[0].last.clone();
    assert_eq!(position.to_string().parse::<Position>().unwrap(), position);
    for wrong in ["", "ab:1", "ab:x:00", "ab:1:00"] {
        assert!(wrong.parse::<Position>().is_err(), "{wrong}");
    }
}

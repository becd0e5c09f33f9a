//! The position of a listener: the last entry received, in each stream.
//!
//! Its text form is the IDs of the entries, joined by dots: some 500 bytes for the 32 streams of a cluster.

use std::fmt;

use crate::store::StoreUpdate;

use super::entries::{EntryContent, Id, StreamEntry};

/// The most IDs that are read: far more than there are streams.
const MAX_STREAMS: usize = 256;

/// A position in each stream; there is at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Positions(Vec<Id>);

impl Positions {
    pub(super) fn new(ids: Vec<Id>) -> Self {
        Self(ids)
    }

    /// Reads what [`fmt::Display`] wrote.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let ids = text.split('.').take(MAX_STREAMS).map(Id::parse);
        ids.collect::<Option<_>>().map(Self)
    }

    /// The IDs, in the order of the streams.
    pub(super) fn ids(&self) -> &[Id] {
        &self.0
    }

    /// Advances the position in `stream` and returns the update for the listener.
    pub(super) fn advance(&mut self, stream: usize, heard: StreamEntry) -> StoreUpdate {
        self.0[stream] = heard.id;
        match heard.content {
            EntryContent::Event(payload) => StoreUpdate::Event {
                position: self.to_string(),
                payload: payload.to_vec(),
            },
            EntryContent::Mark | EntryContent::Gap => StoreUpdate::Missed,
        }
    }
}

impl fmt::Display for Positions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<String> = self.0.iter().map(Id::to_string).collect();
        f.write_str(&ids.join("."))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_ids() -> impl Strategy<Value = Vec<Id>> {
        let id = any::<(u64, u64)>().prop_map(|(ms, number)| Id(ms, number.saturating_sub(1)));
        prop::collection::vec(id, 1..40)
    }

    proptest! {
        #[test]
        fn a_position_reads_back(ids in any_ids()) {
            let positions = Positions::new(ids);
            prop_assert_eq!(Positions::parse(&positions.to_string()), Some(positions));
        }

        #[test]
        fn any_text_is_read_or_refused_without_panic(text: String) {
            let _ = Positions::parse(&text);
        }
    }

    #[test]
    fn a_position_in_one_stream_is_what_every_release_reads() {
        assert_eq!(
            Positions::new(vec![Id(1_700_000_000_000, 3)]).to_string(),
            "1700000000000-3"
        );
        assert_eq!(
            Positions::parse("1700000000000-3"),
            Some(Positions(vec![Id(1_700_000_000_000, 3)]))
        );
    }

    #[test]
    fn a_position_of_a_cluster_fits_a_token_of_the_session_api() {
        let text = Positions::new(vec![Id(1_700_000_000_000, 999); 32]).to_string();
        assert!(text.len() < 640, "{} bytes: {text}", text.len());
    }

    #[test]
    fn what_is_no_position_is_none() {
        for text in [
            "",
            ".",
            "1-1.",
            "1-1.!",
            "p1.AAAA",
            "1-",
            "18446744073709551615-18446744073709551615",
        ] {
            assert_eq!(Positions::parse(text), None, "{text}");
        }
    }
}

//! Where a listener is: the entry it is behind, in each stream.
//!
//! Of one stream it is written as the entry's ID. Of several:
//! ```text
//! p1.BASE64URL   varints: the newest time of all IDs, and of each ID how long before that it was and its number
//! ```
//! which takes some 150 bytes where all streams are in use.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::store::StoreUpdate;

use super::entries::Id;
use super::stream::Heard;

/// Introduces a position in several streams.
const SEVERAL: &str = "p1.";

/// Longest that is read: far more than there are streams.
const MAX_STREAMS: usize = 256;

/// A position in each of some streams; in one at least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Positions(Vec<Id>);

impl Positions {
    pub(super) fn new(ids: Vec<Id>) -> Self {
        Self(ids)
    }

    /// Reads what [`fmt::Display`] wrote.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let Some(several) = text.strip_prefix(SEVERAL) else {
            return Some(Self(vec![Id::parse(text)?]));
        };
        let bytes = URL_SAFE_NO_PAD.decode(several).ok()?;
        let mut bytes = &bytes[..];
        let newest_ms = varint(&mut bytes)?;
        let mut ids = Vec::new();
        while !bytes.is_empty() && ids.len() < MAX_STREAMS {
            let ms = newest_ms.checked_sub(varint(&mut bytes)?)?;
            ids.push(Id(ms, varint(&mut bytes)?));
        }
        let can_be_followed = |id: &Id| *id < Id(u64::MAX, u64::MAX);
        (ids.len() > 1 && ids.iter().all(can_be_followed)).then_some(Self(ids))
    }

    /// In the order of the streams.
    pub(super) fn ids(&self) -> &[Id] {
        &self.0
    }

    /// What a listener is told of what was heard in one of the streams, and moves it on there.
    pub(super) fn told(&mut self, stream: usize, heard: Heard) -> StoreUpdate {
        match heard {
            Heard::Event(id, payload) => {
                self.0[stream] = id;
                StoreUpdate::Event {
                    position: self.to_string(),
                    payload: payload.to_vec(),
                }
            }
            Heard::Missed(id) => {
                self.0[stream] = id;
                StoreUpdate::Missed
            }
        }
    }
}

impl fmt::Display for Positions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = self.0[..] {
            return only.fmt(f);
        }
        let newest_ms = self.0.iter().map(|id| id.0).max().unwrap_or_default();
        let mut bytes = Vec::with_capacity(self.0.len() * 4);
        prost::encoding::encode_varint(newest_ms, &mut bytes);
        for Id(ms, number) in &self.0 {
            prost::encoding::encode_varint(newest_ms - ms, &mut bytes);
            prost::encoding::encode_varint(*number, &mut bytes);
        }
        write!(f, "{SEVERAL}{}", URL_SAFE_NO_PAD.encode(bytes))
    }
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    prost::encoding::decode_varint(bytes).ok()
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
        fn any_text_is_read_or_refused_without_panic(text: String, bytes: Vec<u8>) {
            let _ = Positions::parse(&text);
            let _ = Positions::parse(&format!("{SEVERAL}{}", URL_SAFE_NO_PAD.encode(bytes)));
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
        let of_days_ago = |stream: u64| Id(1_700_000_000_000 - stream * 86_400_000, stream);
        let text = Positions::new((0..33).map(of_days_ago).collect()).to_string();
        assert!(text.len() < 320, "{} bytes: {text}", text.len());
        let of_now = |stream: u64| Id(1_700_000_000_000 - stream * 97, stream % 3);
        let text = Positions::new((0..33).map(of_now).collect()).to_string();
        assert!(text.len() < 160, "{} bytes: {text}", text.len());
    }

    #[test]
    fn what_is_no_position_is_none() {
        for text in [
            "",
            "p1.",
            "p1.AA",
            "p1.!",
            "p2.AAAA",
            "1-",
            "18446744073709551615-18446744073709551615",
        ] {
            assert_eq!(Positions::parse(text), None, "{text}");
        }
    }
}

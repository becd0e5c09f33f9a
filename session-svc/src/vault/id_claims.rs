//! Stores an ID token without the claims that the session already has.
//!
//! An ID token usually repeats, byte for byte, the user's claims in the session. Only the parts of the token
//! around these claims are then stored.
//!
//! Invariant: the restored token equals the original byte for byte. One sealed message has the token and the claims.

use bytes::Bytes;
use memchr::memmem;

use crate::session::StoredToken;

/// Minimum length of claims that are left out.
const WORTH_BYTES: usize = 32;

/// The parts of an ID token around the claims.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct AroundClaims {
    #[prost(bytes = "bytes", tag = "1")]
    header: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    before: Bytes,
    #[prost(bytes = "bytes", tag = "3")]
    after: Bytes,
    #[prost(bytes = "bytes", tag = "4")]
    signature: Bytes,
}

impl AroundClaims {
    /// The token without these claims. `None` if they are short, or the token does not contain them byte for byte.
    pub(super) fn of(parts: &[Bytes], claims: &str) -> Option<Self> {
        let members = members(claims).filter(|members| members.len() >= WORTH_BYTES)?;
        let [header, payload, signature] = parts else {
            return None;
        };
        // Users can choose some of their claims, so the search has to be linear for any content.
        let at = memmem::find(payload, members.as_bytes())?;
        Some(Self {
            header: header.clone(),
            before: payload.slice(..at),
            after: payload.slice(at + members.len()..),
            signature: signature.clone(),
        })
    }

    /// The token with these claims put back; `None` if they are not a JSON object.
    pub(super) fn with(self, claims: &str) -> Option<StoredToken> {
        let payload = [&self.before[..], members(claims)?.as_bytes(), &self.after[..]].concat();
        let parts = vec![self.header, Bytes::from(payload), self.signature];
        Some(StoredToken::of_parts(parts))
    }
}

/// The members of a JSON object, without braces. Claims that `subject.rs` shortened begin with a comma.
fn members(claims: &str) -> Option<&str> {
    claims.strip_prefix(['{', ','])?.strip_suffix('}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::Message as _;

    use super::*;

    const CLAIMS: &str = r#"{"name":"Ada Lovelace","email":"ada@example.com"}"#;

    fn parts(payload: &str) -> Vec<Bytes> {
        [&b"{}"[..], payload.as_bytes(), &[7; 256]]
            .map(Bytes::copy_from_slice)
            .to_vec()
    }

    proptest! {
        #[test]
        fn every_token_comes_back_byte_for_byte(before in ".{0,20}", after in ".{0,20}", claims in ".{0,60}") {
            let claims = format!("{{{claims}}}");
            let token = parts(&format!("{before}{}{after}", &claims[1..claims.len() - 1]));
            if let Some(kept) = AroundClaims::of(&token, &claims) {
                let read = AroundClaims::decode(kept.encode_to_vec().as_slice()).unwrap();
                let token_again = read.with(&claims).unwrap();
                prop_assert_eq!(token_again.parts(), &token[..]);
            }
        }
    }

    #[test]
    fn claims_that_stand_in_the_token_are_kept_once() {
        let payload = format!(
            r#"{{"iss":"https://i","sub":"ada",{},"exp":1}}"#,
            members(CLAIMS).unwrap()
        );
        let token = parts(&payload);
        let kept = AroundClaims::of(&token, CLAIMS).unwrap();
        let all: usize = token.iter().map(Bytes::len).sum();
        assert!(
            kept.encoded_len() < all - 20,
            "{} of {all} bytes",
            kept.encoded_len()
        );
        assert_eq!(kept.with(CLAIMS).unwrap().parts(), &token[..]);
    }

    #[test]
    fn claims_that_are_short_or_elsewhere_are_left_in_the_token() {
        let reordered = r#"{"email":"ada@example.com","name":"Ada Lovelace"}"#;
        for (payload, claims) in [
            (CLAIMS, reordered),
            (r#"{"name":"Ada"}"#, r#"{"name":"Ada"}"#),
            (CLAIMS, ""),
        ] {
            assert!(AroundClaims::of(&parts(payload), claims).is_none(), "{claims}");
        }
    }
}

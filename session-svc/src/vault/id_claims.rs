//! An ID token without the claims that are kept beside it anyway.
//!
//! What an ID token says of a person is most often, word for word, what the session keeps as the person's claims. The token is then kept
//! as what is around them. Its field is one that releases before do not know: to them such a session has no ID token, so that a
//! sign-out at one of them has no hint, and they carry the field along.
//!
//! Invariant: what comes out is byte for byte what went in. A digest tells when the claims are others by now, as after a change by a
//! release that does not know the field: then there is no ID token, and never a wrong one.

use bytes::Bytes;
use memchr::memmem;
use ring::digest;

use crate::session::StoredToken;

/// Shorter claims are not worth a field.
const WORTH_BYTES: usize = 32;

/// Bytes of the digest: it is compared with what this service wrote itself, sealed.
const DIGEST_BYTES: usize = 8;

/// An ID token around the claims.
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
    /// Of the payload.
    #[prost(bytes = "bytes", tag = "5")]
    digest: Bytes,
}

impl AroundClaims {
    /// The token without these claims, a JSON object; `None` if they are not in it as they are written.
    pub(super) fn of(parts: &[Bytes], claims: &str) -> Option<Self> {
        let members = members(claims).filter(|members| members.len() >= WORTH_BYTES)?;
        let [header, payload, signature] = parts else {
            return None;
        };
        // People write some of their claims themselves: the search is linear, whatever they write.
        let at = memmem::find(payload, members.as_bytes())?;
        Some(Self {
            header: header.clone(),
            before: payload.slice(..at),
            after: payload.slice(at + members.len()..),
            signature: signature.clone(),
            digest: digest_of(payload),
        })
    }

    /// The token with these claims; `None` if they are not those it was kept with.
    pub(super) fn with(self, claims: &str) -> Option<StoredToken> {
        let payload = [&self.before[..], members(claims)?.as_bytes(), &self.after[..]].concat();
        let payload = Bytes::from(payload);
        (digest_of(&payload) == self.digest)
            .then(|| StoredToken::of_parts(vec![self.header, payload, self.signature]))
    }
}

/// What stands between the braces of a JSON object.
fn members(claims: &str) -> Option<&str> {
    claims.strip_prefix('{')?.strip_suffix('}')
}

fn digest_of(payload: &[u8]) -> Bytes {
    let whole = digest::digest(&digest::SHA256, payload);
    Bytes::copy_from_slice(&whole.as_ref()[..DIGEST_BYTES])
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
                prop_assert_eq!(token_again.parts().unwrap(), &token[..]);
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
        assert_eq!(kept.with(CLAIMS).unwrap().parts().unwrap(), &token[..]);
    }

    #[test]
    fn a_token_is_never_put_together_with_other_claims() {
        let token = parts(CLAIMS);
        let kept = AroundClaims::of(&token, CLAIMS).unwrap();
        for other in [r#"{"name":"Eve Lovelace","email":"ada@example.com"}"#, "{}", ""] {
            assert!(kept.clone().with(other).is_none(), "{other}");
        }
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

//! Tokens in fewer bytes: the base64 of a JWT is undone before sealing and done again after.
//!
//! Invariant: what comes out is byte for byte what went in; a token that would not come back so is kept as it is.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;

use crate::session::StoredToken;
use crate::session::tokens::compact;

/// A token as it is kept: either its text or the decoded parts between its dots.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct KeptToken {
    /// The token as it came.
    #[prost(string, tag = "1")]
    text: String,
    /// The parts of a JWT, decoded.
    #[prost(bytes = "bytes", repeated, tag = "2")]
    parts: Vec<Bytes>,
}

/// Parts of a signed JWT.
const JWT_PARTS: usize = 3;

impl KeptToken {
    /// The decoded parts of a JWT; none of any other token.
    pub(super) fn parts(&self) -> &[Bytes] {
        &self.parts
    }

    pub(super) fn into_token(self) -> StoredToken {
        if self.parts.is_empty() {
            StoredToken::new(self.text)
        } else {
            StoredToken::of_parts(self.parts)
        }
    }
}

impl From<&StoredToken> for KeptToken {
    fn from(token: &StoredToken) -> Self {
        if let Some(parts) = token.parts() {
            return Self {
                text: String::new(),
                parts: parts.to_vec(),
            };
        }
        let text = token.text().into_inner();
        match decoded(&text) {
            Some(parts) => Self {
                text: String::new(),
                parts,
            },
            None => Self {
                text,
                parts: Vec::new(),
            },
        }
    }
}

fn decoded(text: &str) -> Option<Vec<Bytes>> {
    let parts: Vec<Bytes> = text
        .split('.')
        .map(|part| URL_SAFE_NO_PAD.decode(part).ok().map(Bytes::from))
        .collect::<Option<_>>()?;
    (parts.len() == JWT_PARTS && compact(&parts) == text).then_some(parts)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::Message as _;

    use super::*;

    proptest! {
        #[test]
        fn every_token_comes_back_byte_for_byte(text in "[A-Za-z0-9_=+/.-]{0,80}") {
            let kept = KeptToken::from(&StoredToken::new(text.clone())).encode_to_vec();
            let token = KeptToken::decode(kept.as_slice()).unwrap().into_token();
            let read = token.text();
            prop_assert_eq!(read.expose(), &text);
            prop_assert_eq!(KeptToken::from(&token).encode_to_vec(), kept);
        }
    }

    #[test]
    fn a_jwt_takes_a_quarter_less() {
        let jwt = format!("{0}.{0}.{0}", URL_SAFE_NO_PAD.encode([7; 300]));
        let kept = KeptToken::from(&StoredToken::new(jwt.clone()));
        assert!(kept.encoded_len() < jwt.len() * 4 / 5);
        assert_eq!(kept.into_token().text().expose(), &jwt);
    }
}

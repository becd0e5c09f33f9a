//! Tokens in fewer bytes: the base64 of a JWT is undone before sealing and done again after.
//!
//! Invariant: what comes out is byte for byte what went in; a token that would not come back so is kept as it is.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// A token as it is kept: either its text or the decoded parts between its dots.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct KeptToken {
    /// The token as it came.
    #[prost(string, tag = "1")]
    text: String,
    /// The parts of a JWT, decoded.
    #[prost(bytes = "vec", repeated, tag = "2")]
    parts: Vec<Vec<u8>>,
}

/// Parts of a signed JWT.
const JWT_PARTS: usize = 3;

impl KeptToken {
    pub(super) fn from_text(text: &str) -> Self {
        match decoded(text) {
            Some(parts) => Self {
                text: String::new(),
                parts,
            },
            None => Self {
                text: text.to_owned(),
                parts: Vec::new(),
            },
        }
    }

    pub(super) fn into_text(self) -> String {
        if self.parts.is_empty() {
            self.text
        } else {
            encoded(&self.parts)
        }
    }
}

fn decoded(text: &str) -> Option<Vec<Vec<u8>>> {
    let parts: Vec<Vec<u8>> = text
        .split('.')
        .map(|part| URL_SAFE_NO_PAD.decode(part).ok())
        .collect::<Option<_>>()?;
    (parts.len() == JWT_PARTS && encoded(&parts) == text).then_some(parts)
}

fn encoded(parts: &[Vec<u8>]) -> String {
    let parts: Vec<String> = parts.iter().map(|part| URL_SAFE_NO_PAD.encode(part)).collect();
    parts.join(".")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::Message as _;

    use super::*;

    proptest! {
        #[test]
        fn every_token_comes_back_byte_for_byte(text in "[A-Za-z0-9_=+/.-]{0,80}") {
            let kept = KeptToken::from_text(&text).encode_to_vec();
            prop_assert_eq!(KeptToken::decode(kept.as_slice()).unwrap().into_text(), text);
        }
    }

    #[test]
    fn a_jwt_takes_a_quarter_less() {
        let jwt = format!("{0}.{0}.{0}", URL_SAFE_NO_PAD.encode([7; 300]));
        let kept = KeptToken::from_text(&jwt);
        assert!(kept.encoded_len() < jwt.len() * 4 / 5);
        assert_eq!(kept.into_text(), jwt);
    }
}

//! The `iss` parameter of authorization responses (RFC 9207).

use crate::{IssuerParameterError, Metadata};

/// Checks the parameter of a response, success or error: required if the provider announces it, and always
/// equal byte by byte (RFC 9207 section 2.4).
pub fn check_issuer_parameter(metadata: &Metadata, iss: Option<&str>) -> Result<(), IssuerParameterError> {
    match iss {
        Some(iss) if iss == metadata.issuer => Ok(()),
        Some(_) => Err(IssuerParameterError::Mismatch),
        None if metadata.iss_parameter_promised => Err(IssuerParameterError::Missing),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn metadata(promised: serde_json::Value) -> Metadata {
        let document = json!({
            "issuer": "https://op.example/tenant",
            "authorization_endpoint": "https://op.example/a",
            "token_endpoint": "https://op.example/t",
            "jwks_uri": "https://op.example/k",
            "authorization_response_iss_parameter_supported": promised,
        });
        let document = document.as_object().cloned().unwrap_or_default();
        Metadata::from_document(&document, "https://op.example/tenant", false).expect("usable metadata")
    }

    // conformance: B-060
    #[test]
    fn what_was_promised_has_to_be_there_and_nothing_else_promises_it() {
        let check = |promised, iss| check_issuer_parameter(&metadata(promised), iss);
        assert_eq!(check(json!(true), None), Err(IssuerParameterError::Missing));
        for not_promised in [json!(false), json!(null), json!("true"), json!(1)] {
            assert_eq!(check(not_promised, None), Ok(()));
        }
    }

    // conformance: B-061
    #[test]
    fn whenever_it_is_there_it_is_compared_byte_by_byte() {
        for promised in [true, false] {
            let check = |iss| check_issuer_parameter(&metadata(json!(promised)), Some(iss));
            assert_eq!(check("https://op.example/tenant"), Ok(()));
            for other in [
                "",
                "https://op.example/tenant/",
                "https://op.example",
                "https://OP.example/tenant",
                "HTTPS://op.example/tenant",
                "https://op.example:443/tenant",
                "https://op.example/%74enant",
                "https://op.example/./tenant",
                "https://op.example/tenant#",
                "https://op.example/tenant ",
                "http://op.example/tenant",
            ] {
                assert_eq!(check(other), Err(IssuerParameterError::Mismatch), "{other}");
            }
        }
    }
}

//! Builds the identity headers of an application, under the names it reads, from claims. The claims of
//! sessions and tokens are treated alike.
//!
//! Invariants
//! - A value is sent whole or not at all: it is never cut, trimmed or altered into another identity.
//! - No value holds a control character.
//! - Only commas separate the members of a list.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::http::{HeaderName, HeaderValue};
use chassis::audit::{AuditRecord, Event, Outcome};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::Value;

use crate::http::protect::rate_limit::RateLimiter;
use crate::route_table::principal::Principal;
use crate::route_table::upstream_headers::{HeaderEncoding, HeaderSource, UpstreamHeaders};

/// The longest value, in bytes: a few hundred groups, and half of a server's usual limit per line (8 KiB).
const MAX_VALUE_BYTES: usize = 4_096;

/// All values of one request, in bytes. Cookies, a token or an assertion share the usual limit of 8 KiB for
/// all headers.
const MAX_TOTAL_BYTES: usize = 6_144;

/// The ASCII characters that are percent-encoded.
const ENCODED: AsciiSet = CONTROLS.add(b' ').add(b',').add(b'%');

/// The pause between two reports about one header of one session: every request of it omits the header.
const LOG_AGAIN_AFTER: Duration = Duration::from_secs(3_600);

/// The left-out headers that were logged recently. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct OmittedHeaderLog(
    /// Created by the first left-out header, so that it takes no memory without one.
    Arc<OnceLock<RateLimiter>>,
);

impl OmittedHeaderLog {
    /// Reports a left-out header, or a claim within one, to the log and the audit log, unless it did so
    /// recently. The log names the session by its handle, and never a person.
    pub(crate) fn log_omission(
        &self,
        header: &HeaderName,
        claim: Option<&str>,
        who: Principal<'_>,
        reason: OmissionReason,
        now_ms: u64,
    ) {
        let limiter = self.0.get_or_init(|| RateLimiter::within(LOG_AGAIN_AFTER, 1));
        let of = who.handle.or(who.subject).or(who.client_id).unwrap_or_default();
        let key = format!("{header} {} {of}", claim.unwrap_or_default());
        if limiter.check(key.as_str(), now_ms).is_ok() {
            tracing::warn!(
                header = header.as_str(),
                claim,
                session = who.handle,
                %reason,
                "a header for the application is left out: its value cannot be written"
            );
            let lacked = match claim {
                Some(claim) => format!("{header}.{claim}"),
                None => header.to_string(),
            };
            AuditRecord {
                reason: Some(reason.name()),
                actor: who.subject.map(|subject| (who.issuer, subject)),
                session: who.handle,
                error: Some(&reason),
                header: Some(&lacked),
                ..AuditRecord::new(Event::HeaderLeftOut, Outcome::Failure)
            }
            .write();
        }
    }
}

/// Why a header is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OmissionReason {
    #[error("it holds a control character")]
    Control,
    #[error("it begins or ends with white space, which the application would remove")]
    Edges,
    #[error(
        "a member of the list holds a comma, which would split it in two: set header_encoding = \"percent\""
    )]
    Comma,
    #[error("it is an object, or a list whose members are not all strings, numbers or booleans")]
    Nested,
    #[error("it is too long, or does not fit next to the others")]
    TooLong,
    #[error(
        "the head of the check's answer has no room for it: raise EDGE_CHECK_HEAD_BYTES and the proxy's buffer (nginx: proxy_buffer_size)"
    )]
    NoRoom,
}

impl OmissionReason {
    /// The name in audit records.
    const fn name(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Edges => "edges",
            Self::Comma => "comma",
            Self::Nested => "nested",
            Self::TooLong => "too_long",
            Self::NoRoom => "no_room",
        }
    }
}

/// The headers of a table for a principal. A header is left out if its claim is absent, empty or cannot be
/// written. Both logs report the last case, with the header's name.
pub(crate) fn of(
    table: &UpstreamHeaders,
    who: Principal<'_>,
    left_out: &OmittedHeaderLog,
    now_ms: u64,
) -> Vec<(HeaderName, HeaderValue)> {
    let mut room = MAX_TOTAL_BYTES;
    let mut headers = Vec::with_capacity(table.all.len());
    for header in &table.all {
        let written = match &header.source {
            HeaderSource::Subject => plain(who.subject, table.encoding),
            HeaderSource::Issuer => plain(Some(who.issuer), table.encoding),
            HeaderSource::Session => plain(who.handle, table.encoding),
            HeaderSource::Claim(claim) => claim
                .find(who.claims)
                .map_or(Ok(None), |value| of_claim(value, table.encoding)),
        };
        let value = written.and_then(|written| {
            let Some(written) = written.filter(|written| !written.is_empty()) else {
                return Ok(None);
            };
            if written.len() > MAX_VALUE_BYTES.min(room) {
                return Err(OmissionReason::TooLong);
            }
            room -= written.len();
            HeaderValue::try_from(&*written)
                .map(Some)
                .map_err(|_invalid| OmissionReason::Control)
        });
        match value {
            Ok(value) => headers.extend(value.map(|value| (header.name.clone(), value))),
            Err(reason) => left_out.log_omission(&header.name, None, who, reason, now_ms),
        }
    }
    headers
}

/// A claim as a header value; `None` if it is null or an empty list.
fn of_claim(value: &Value, encoding: HeaderEncoding) -> Result<Option<Cow<'_, str>>, OmissionReason> {
    let Value::Array(members) = value else {
        return match scalar(value)? {
            Some(plain) => encode_value(plain, encoding).map(Some),
            None => Ok(None),
        };
    };
    let mut list = String::new();
    for member in members {
        let Some(plain) = scalar(member)?.filter(|plain| !plain.is_empty()) else {
            continue;
        };
        let member = encode_value(plain, encoding)?;
        if member.contains(',') {
            return Err(OmissionReason::Comma);
        }
        if !list.is_empty() {
            list.push(',');
        }
        list.push_str(&member);
    }
    Ok(Some(list.into()))
}

fn scalar(value: &Value) -> Result<Option<Cow<'_, str>>, OmissionReason> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.into())),
        Value::Number(_) | Value::Bool(_) => Ok(Some(value.to_string().into())),
        Value::Array(_) | Value::Object(_) => Err(OmissionReason::Nested),
    }
}

fn plain(text: Option<&str>, encoding: HeaderEncoding) -> Result<Option<Cow<'_, str>>, OmissionReason> {
    text.map(|text| encode_value(text.into(), encoding)).transpose()
}

fn encode_value(plain: Cow<'_, str>, encoding: HeaderEncoding) -> Result<Cow<'_, str>, OmissionReason> {
    if plain.chars().any(char::is_control) {
        return Err(OmissionReason::Control);
    }
    match encoding {
        HeaderEncoding::Utf8 if plain.trim() != plain => Err(OmissionReason::Edges),
        HeaderEncoding::Utf8 => Ok(plain),
        HeaderEncoding::Percent => Ok(utf8_percent_encode(&plain, &ENCODED).to_string().into()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use session_proto::v1::Session;

    use super::*;
    use crate::route_table::upstream_headers::{UpstreamHeader, parse_name};
    use crate::sessions::CachedSession;

    fn table(headers: &[(&str, &str)], encoding: HeaderEncoding) -> UpstreamHeaders {
        let header = |(name, source): &(&str, &str)| UpstreamHeader {
            name: parse_name(name).unwrap(),
            source: HeaderSource::parse(source).unwrap(),
        };
        UpstreamHeaders {
            all: headers.iter().map(header).collect(),
            encoding,
        }
    }

    fn headers_for(
        headers: &[(&str, &str)],
        encoding: HeaderEncoding,
        claims: &Value,
    ) -> Vec<(String, String)> {
        let who = CachedSession::new(Session {
            subject: "person".to_owned(),
            issuer: "https://idp.example".to_owned(),
            handle: "handle".to_owned(),
            user: claims.to_string(),
            ..Session::default()
        });
        let text = |value: &HeaderValue| String::from_utf8(value.as_bytes().to_vec()).unwrap();
        of(
            &table(headers, encoding),
            (&*who).into(),
            &OmittedHeaderLog::default(),
            0,
        )
        .iter()
        .map(|(name, value)| (name.to_string(), text(value)))
        .collect()
    }

    fn claim(value: Value, encoding: HeaderEncoding) -> Option<String> {
        let mut sent = headers_for(&[("Remote-User", "claim:c")], encoding, &json!({ "c": value }));
        sent.pop().map(|(_, value)| value)
    }

    #[test]
    fn a_claim_is_sent_whole_or_not_at_all() {
        for (value, utf8, percent) in [
            (json!("ada"), Some("ada"), Some("ada")),
            (
                json!("Lovelace, Ada"),
                Some("Lovelace, Ada"),
                Some("Lovelace%2C%20Ada"),
            ),
            (json!("Jürgen"), Some("Jürgen"), Some("J%C3%BCrgen")),
            (json!("100%"), Some("100%"), Some("100%25")),
            (json!(7), Some("7"), Some("7")),
            (json!(true), Some("true"), Some("true")),
            (json!(["a", "b", 3]), Some("a,b,3"), Some("a,b,3")),
            (json!(["a", "", "b"]), Some("a,b"), Some("a,b")),
            (json!(["cn=a,dc=b", "c"]), None, Some("cn=a%2Cdc=b,c")),
            (json!(" ada"), None, Some("%20ada")),
            (json!("ada\u{a0}"), None, Some("ada%C2%A0")),
            (json!(["a", "b "]), None, Some("a,b%20")),
            (json!("a\r\nX-Admin: 1"), None, None),
            (json!("a\nb"), None, None),
            (json!("a\u{0}"), None, None),
            (json!("a\tb"), None, None),
            (json!("a\u{7f}"), None, None),
            (json!("a\u{85}b"), None, None),
            (json!(["a", "b\r"]), None, None),
            (json!(""), None, None),
            (json!([]), None, None),
            (json!(null), None, None),
            (json!({"a": 1}), None, None),
            (json!([["a"]]), None, None),
            (
                json!("a".repeat(4_096)),
                Some(&*"a".repeat(4_096)),
                Some(&*"a".repeat(4_096)),
            ),
            (json!("a".repeat(4_097)), None, None),
        ] {
            assert_eq!(
                claim(value.clone(), HeaderEncoding::Utf8).as_deref(),
                utf8,
                "{value}"
            );
            assert_eq!(
                claim(value.clone(), HeaderEncoding::Percent).as_deref(),
                percent,
                "{value}"
            );
        }
    }

    #[test]
    fn what_does_not_fit_beside_the_others_is_left_out() {
        let headers = [
            ("Remote-A", "claim:a"),
            ("Remote-B", "claim:b"),
            ("Remote-C", "claim:c"),
        ];
        let claims = json!({"a": "a".repeat(4_000), "b": "b".repeat(4_000), "c": "c"});
        let names: Vec<String> = headers_for(&headers, HeaderEncoding::Utf8, &claims)
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names, ["remote-a", "remote-c"]);
    }

    #[test]
    fn who_it_is_is_told_without_claims_too() {
        let headers = [
            ("Remote-User", "subject"),
            ("Remote-At", "issuer"),
            ("Remote-Session", "session"),
        ];
        let sent = headers_for(&headers, HeaderEncoding::Utf8, &json!({}));
        let values: Vec<&str> = sent.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["person", "https://idp.example", "handle"]);
    }
}

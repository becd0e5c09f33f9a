//! A stream of security events, as receiver and transmitter agree on it (SSF 1.0 sections 6.1 and 8.1.1).
//!
//! Invariants: a configuration is of the transmitter that was asked, has an id and an audience, and each text in it is bounded.
//! What a push is authorized by is in no `Debug` output.

use std::fmt;

use serde_json::{Map, Value, json};
use url::Url;

use crate::endpoint::is_usable_of;
use crate::json::seconds_or_text;
use crate::{ClientSecret, StreamStatus, TransmitterError};

/// Delivery by push (RFC 8935).
const PUSH: &str = "urn:ietf:rfc:8935";
/// Delivery by poll (RFC 8936).
const POLL: &str = "urn:ietf:rfc:8936";
/// Longest stream id, and longest name of an audience, in bytes: they are kept.
const MAX_NAME_BYTES: usize = 512;
/// Longest text for people in bytes.
const MAX_TEXT_BYTES: usize = 1_024;
/// Most elements of a list that are looked at; there are some twenty types of events.
const MAX_ELEMENTS: usize = 256;

/// How a receiver wants events delivered.
#[derive(Clone, Debug)]
pub enum WantedDelivery {
    /// The transmitter sends each of them (RFC 8935).
    Push {
        /// Where to.
        endpoint_url: Url,
        /// The whole `Authorization` header it has to send along.
        authorization_header: Option<ClientSecret>,
    },
    /// The receiver fetches them (RFC 8936), where the transmitter says.
    Poll,
}

/// A stream to be created.
#[derive(Clone, Debug)]
pub struct NewStream<'a> {
    /// Names of this receiver, of which the stream has to be for one; `None` takes what the transmitter says.
    pub audience: Option<&'a [String]>,
    /// The types of events that are understood.
    pub events_requested: &'a [String],
    /// How they are delivered.
    pub delivery: &'a WantedDelivery,
    /// What people call the stream.
    pub description: Option<&'a str>,
}

/// What is changed of a stream; `None` is left as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct StreamChange<'a> {
    /// The types of events that are understood.
    pub events_requested: Option<&'a [String]>,
    /// How they are delivered.
    pub delivery: Option<&'a WantedDelivery>,
    /// What people call the stream.
    pub description: Option<&'a str>,
}

/// How a stream delivers events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamDelivery {
    /// By push.
    Push {
        /// Where to.
        endpoint_url: Url,
    },
    /// By poll.
    Poll {
        /// Where they are fetched; it has passed the https rule.
        endpoint_url: Url,
    },
    /// In a way that is not known here, that was not told, or that must not be used: by polls without https.
    Other,
}

/// A stream as the transmitter has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamConfiguration {
    /// Its id.
    pub stream_id: String,
    /// Whom it is for: names of one receiver.
    pub audience: Vec<String>,
    /// How it delivers events.
    pub delivery: StreamDelivery,
    /// The types of events that were asked for.
    pub events_requested: Vec<String>,
    /// The types of events that come. Nothing else does, but those about the stream itself.
    pub events_delivered: Vec<String>,
    /// The least time between two requests for a verification, in seconds.
    pub min_verification_interval_secs: Option<u64>,
    /// After this time without a request about the stream the transmitter may pause, disable or delete it; in seconds.
    pub inactivity_timeout_secs: Option<u64>,
    /// What people call it.
    pub description: Option<String>,
}

/// The status of a stream, as the transmitter tells it (SSF 1.0 section 8.1.2.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToldStatus {
    /// The status.
    pub status: StreamStatus,
    /// Why.
    pub reason: Option<String>,
}

impl WantedDelivery {
    fn document(&self) -> Value {
        let Self::Push {
            endpoint_url,
            authorization_header,
        } = self
        else {
            return json!({ "method": POLL });
        };
        let mut document = json!({ "method": PUSH, "endpoint_url": endpoint_url.as_str() });
        if let Some(header) = authorization_header {
            document["authorization_header"] = json!(header.secret());
        }
        document
    }

    /// Whether a stream delivers so.
    pub(crate) fn is(&self, delivery: &StreamDelivery) -> bool {
        match (self, delivery) {
            (Self::Push { endpoint_url, .. }, StreamDelivery::Push { endpoint_url: told }) => {
                endpoint_url == told
            }
            (Self::Poll, StreamDelivery::Poll { .. }) => true,
            (Self::Push { .. } | Self::Poll, _) => false,
        }
    }
}

impl NewStream<'_> {
    pub(crate) fn document(&self) -> Value {
        let change = StreamChange {
            events_requested: Some(self.events_requested),
            delivery: Some(self.delivery),
            description: self.description,
        };
        Value::Object(change.members())
    }
}

impl StreamChange<'_> {
    /// The body of a PATCH, which names the stream (SSF 1.0 section 8.1.1.3).
    pub(crate) fn document(&self, stream_id: &str) -> Value {
        let mut members = self.members();
        members.insert("stream_id".to_owned(), json!(stream_id));
        Value::Object(members)
    }

    fn members(&self) -> Map<String, Value> {
        let events = self
            .events_requested
            .map(|events| ("events_requested", json!(events)));
        let delivery = self.delivery.map(|delivery| ("delivery", delivery.document()));
        let description = self.description.map(|text| ("description", json!(text)));
        let members = events.into_iter().chain(delivery).chain(description);
        members.map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

impl StreamConfiguration {
    /// Reads what a transmitter with this issuer says; `None` where it is no configuration.
    ///
    /// # Errors
    /// It is another transmitter's.
    pub(crate) fn of(document: &Value, issuer: &str) -> Result<Option<Self>, TransmitterError> {
        let text = |name: &str| document.get(name).and_then(Value::as_str);
        if text("iss") != Some(issuer) {
            return Err(TransmitterError::Issuer);
        }
        let stream_id = text("stream_id").filter(|id| is_name(id));
        let (Some(stream_id), Some(audience)) = (stream_id, audience(document.get("aud"))) else {
            return Ok(None);
        };
        let secs = |name: &str| seconds_or_text(document.get(name));
        Ok(Some(Self {
            stream_id: stream_id.to_owned(),
            audience,
            delivery: delivery(document.get("delivery"), issuer),
            events_requested: texts(document.get("events_requested")),
            events_delivered: texts(document.get("events_delivered")),
            min_verification_interval_secs: secs("min_verification_interval"),
            inactivity_timeout_secs: secs("inactivity_timeout"),
            description: text("description").and_then(shortened),
        }))
    }

    /// Whether it is for a receiver with one of these names.
    #[must_use]
    pub fn is_for_one_of(&self, names: &[String]) -> bool {
        self.audience.iter().any(|audience| names.contains(audience))
    }
}

impl ToldStatus {
    /// Reads what a transmitter says of this stream; `None` where it is no status.
    ///
    /// # Errors
    /// It is another stream's.
    pub(crate) fn of(document: &Value, stream_id: &str) -> Result<Option<Self>, TransmitterError> {
        let told = document.get("stream_id").filter(|id| !id.is_null());
        if told.is_some_and(|id| id.as_str() != Some(stream_id)) {
            return Err(TransmitterError::OtherStream);
        }
        let status = document.get("status").cloned();
        let status = status.and_then(|status| serde_json::from_value(status).ok());
        let reason = document.get("reason").and_then(Value::as_str);
        Ok(status.map(|status| Self {
            status,
            reason: reason.and_then(shortened),
        }))
    }
}

impl fmt::Display for StreamDelivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Push { .. } => "push",
            Self::Poll { .. } => "poll",
            Self::Other => "other",
        })
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_NAME_BYTES
}

/// `aud`: a text, or a list of at least one text, read as a whole or not at all.
fn audience(aud: Option<&Value>) -> Option<Vec<String>> {
    let names = match aud? {
        Value::String(one) => vec![one.clone()],
        Value::Array(all) if all.len() <= MAX_ELEMENTS => {
            let names = all.iter().map(|name| name.as_str().map(str::to_owned));
            names.collect::<Option<Vec<String>>>()?
        }
        _ => return None,
    };
    let all_names = !names.is_empty() && names.iter().all(|name| is_name(name));
    all_names.then_some(names)
}

fn delivery(delivery: Option<&Value>, issuer: &str) -> StreamDelivery {
    let text = |name: &str| delivery?.get(name)?.as_str();
    let url = text("endpoint_url").and_then(|url| Url::parse(url).ok());
    match (text("method"), url) {
        (Some(PUSH), Some(endpoint_url)) => StreamDelivery::Push { endpoint_url },
        (Some(POLL), Some(endpoint_url)) if is_usable_of(issuer, &endpoint_url) => {
            StreamDelivery::Poll { endpoint_url }
        }
        _ => StreamDelivery::Other,
    }
}

/// The texts of a list, as far as they can be read.
fn texts(list: Option<&Value>) -> Vec<String> {
    let elements = list.and_then(Value::as_array).into_iter().flatten();
    let texts = elements.take(MAX_ELEMENTS).filter_map(Value::as_str);
    texts
        .filter(|text| text.len() <= MAX_TEXT_BYTES)
        .map(str::to_owned)
        .collect()
}

/// A text for people, cut; `None` where nothing is in it.
fn shortened(text: &str) -> Option<String> {
    let cut = text.floor_char_boundary(MAX_TEXT_BYTES);
    Some(text[..cut].to_owned()).filter(|text| !text.is_empty())
}

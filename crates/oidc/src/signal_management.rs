//! The management of streams at their transmitter (SSF 1.0 section 8.1).
//!
//! Deliberately absent: subjects are neither added nor removed. All are taken for included (CAEP Interoperability Profile 1.0
//! section 2.4.2); and a whole configuration is never replaced (PUT), since a change says what is to change.

use serde_json::{Value, json};
use url::Url;

use crate::http_client::{BearerMethod, MAX_RESPONSE_BYTES, ProviderResponse};
use crate::nested_json::nested_value;
use crate::signal_access::SignalRequest;
use crate::{
    NewStream, ProviderError, StreamChange, StreamConfiguration, StreamStatus, ToldStatus, Transmitter,
    TransmitterError, TransmitterMetadata,
};

const CONFIGURATION_ENDPOINT: &str = "configuration_endpoint";
const STATUS_ENDPOINT: &str = "status_endpoint";
const VERIFICATION_ENDPOINT: &str = "verification_endpoint";

/// Most streams of one receiver that are looked at.
const MAX_STREAMS: usize = 256;
/// Most bytes of an audience that is shown to people.
const MAX_SHOWN_BYTES: usize = 200;

impl Transmitter {
    /// Creates a stream (section 8.1.1.1). One that is for somebody else, or delivers in another way, is deleted again. `now`, here and
    /// below, in seconds since the Unix epoch.
    ///
    /// # Errors
    /// None was created, or none that can be used; [`TransmitterError::Unanswered`] leaves open whether one was.
    pub async fn create_stream(
        &self,
        stream: &NewStream<'_>,
        now: u64,
    ) -> Result<StreamConfiguration, TransmitterError> {
        let url = self.management(CONFIGURATION_ENDPOINT).await?;
        let method = BearerMethod::Post(stream.document());
        // 200 is what drafts before 1.0 had; what counts is that the answer is a stream.
        let answer = self
            .manage((CONFIGURATION_ENDPOINT, &url), method, &[201, 200], now)
            .await?;
        let created = self.configuration(&answer)?;
        let unfit = match stream.audience {
            Some(names) if !created.is_for_one_of(names) => Some(TransmitterError::Audience {
                named: shown(&created.audience),
            }),
            _ if !stream.delivery.is(&created.delivery) => Some(TransmitterError::Delivery),
            _ => None,
        };
        let Some(unfit) = unfit else {
            return Ok(created);
        };
        self.delete_stream(&created.stream_id, now).await?;
        Err(unfit)
    }

    /// Reads a stream (section 8.1.1.2).
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn stream(&self, stream_id: &str, now: u64) -> Result<StreamConfiguration, TransmitterError> {
        let url = self.management(CONFIGURATION_ENDPOINT).await?;
        let url = about(url, stream_id);
        let answer = self
            .manage((CONFIGURATION_ENDPOINT, &url), BearerMethod::Get, &[200], now)
            .await?;
        self.configuration_of(&answer, stream_id)
    }

    /// Reads all streams of this receiver (section 8.1.1.2).
    ///
    /// # Errors
    /// They cannot be read.
    pub async fn streams(&self, now: u64) -> Result<Vec<StreamConfiguration>, TransmitterError> {
        let url = self.management(CONFIGURATION_ENDPOINT).await?;
        let answer = self
            .manage((CONFIGURATION_ENDPOINT, &url), BearerMethod::Get, &[200], now)
            .await?;
        match document(&answer)? {
            Value::Array(all) if all.len() <= MAX_STREAMS => {
                all.iter().map(|one| self.read(one, &answer)).collect()
            }
            _ => Err(malformed(&answer)),
        }
    }

    /// Changes a stream (section 8.1.1.3).
    ///
    /// # Errors
    /// It was not changed, or, where it is [`TransmitterError::Pending`], not yet.
    pub async fn update_stream(
        &self,
        stream_id: &str,
        change: &StreamChange<'_>,
        now: u64,
    ) -> Result<StreamConfiguration, TransmitterError> {
        let url = self.management(CONFIGURATION_ENDPOINT).await?;
        let method = BearerMethod::Patch(change.document(stream_id));
        let answer = self
            .manage((CONFIGURATION_ENDPOINT, &url), method, &[200], now)
            .await?;
        self.configuration_of(&answer, stream_id)
    }

    /// Deletes a stream (section 8.1.1.5).
    ///
    /// # Errors
    /// It was not deleted; [`TransmitterError::NoSuchStream`] where it was before.
    pub async fn delete_stream(&self, stream_id: &str, now: u64) -> Result<(), TransmitterError> {
        let url = self.management(CONFIGURATION_ENDPOINT).await?;
        let url = about(url, stream_id);
        let asked = (CONFIGURATION_ENDPOINT, &url);
        self.manage(asked, BearerMethod::Delete, &[204, 200], now).await?;
        Ok(())
    }

    /// Reads the status of a stream (section 8.1.2.1).
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn stream_status(&self, stream_id: &str, now: u64) -> Result<ToldStatus, TransmitterError> {
        let url = self.management(STATUS_ENDPOINT).await?;
        let url = about(url, stream_id);
        let answer = self
            .manage((STATUS_ENDPOINT, &url), BearerMethod::Get, &[200], now)
            .await?;
        ToldStatus::of(&document(&answer)?, stream_id)?.ok_or_else(|| malformed(&answer))
    }

    /// Changes the status of a stream (section 8.1.2.2); gives what it is then, which may be another one.
    ///
    /// # Errors
    /// It was not changed, or, where it is [`TransmitterError::Pending`], not yet.
    pub async fn set_stream_status(
        &self,
        stream_id: &str,
        status: StreamStatus,
        reason: Option<&str>,
        now: u64,
    ) -> Result<ToldStatus, TransmitterError> {
        let url = self.management(STATUS_ENDPOINT).await?;
        let mut body = json!({ "stream_id": stream_id, "status": status.name() });
        if let Some(reason) = reason {
            body["reason"] = json!(reason);
        }
        let asked = (STATUS_ENDPOINT, &url);
        let answer = self.manage(asked, BearerMethod::Post(body), &[200], now).await?;
        ToldStatus::of(&document(&answer)?, stream_id)?.ok_or_else(|| malformed(&answer))
    }

    /// Asks for a verification event that repeats `state` (section 8.1.4.2). It comes as any event does, some time later.
    ///
    /// # Errors
    /// None will come. [`TransmitterError::TooManyRequests`] where the last one was asked for a moment ago.
    pub async fn request_verification(
        &self,
        stream_id: &str,
        state: &str,
        now: u64,
    ) -> Result<(), TransmitterError> {
        let url = self.management(VERIFICATION_ENDPOINT).await?;
        let body = json!({ "stream_id": stream_id, "state": state });
        let asked = (VERIFICATION_ENDPOINT, &url);
        // It is asynchronous by its definition: that it was taken is all that any status can say.
        self.manage(asked, BearerMethod::Post(body), &[204, 200, 202], now)
            .await?;
        Ok(())
    }

    /// An address that the transmitter's configuration names.
    async fn management(&self, endpoint: &'static str) -> Result<Url, TransmitterError> {
        let metadata = self.metadata().await.map_err(TransmitterError::Configuration)?;
        let url = named(&metadata, endpoint).cloned();
        url.ok_or(TransmitterError::NotOffered { endpoint })
    }

    async fn manage(
        &self,
        (endpoint, url): (&'static str, &Url),
        method: BearerMethod,
        done: &'static [u16],
        now: u64,
    ) -> Result<ProviderResponse, TransmitterError> {
        let request = SignalRequest {
            endpoint,
            method,
            url,
            timeout: self.settings().http_timeout,
            max_bytes: MAX_RESPONSE_BYTES,
            done,
        };
        self.ask(request, now).await
    }

    fn configuration(&self, answer: &ProviderResponse) -> Result<StreamConfiguration, TransmitterError> {
        self.read(&document(answer)?, answer)
    }

    fn configuration_of(
        &self,
        answer: &ProviderResponse,
        stream_id: &str,
    ) -> Result<StreamConfiguration, TransmitterError> {
        let configuration = self.configuration(answer)?;
        if configuration.stream_id != stream_id {
            return Err(TransmitterError::OtherStream);
        }
        Ok(configuration)
    }

    fn read(
        &self,
        document: &Value,
        answer: &ProviderResponse,
    ) -> Result<StreamConfiguration, TransmitterError> {
        StreamConfiguration::of(document, &self.settings().issuer)?.ok_or_else(|| malformed(answer))
    }
}

fn named<'a>(metadata: &'a TransmitterMetadata, endpoint: &str) -> Option<&'a Url> {
    match endpoint {
        CONFIGURATION_ENDPOINT => metadata.configuration_endpoint.as_ref(),
        STATUS_ENDPOINT => metadata.status_endpoint.as_ref(),
        _ => metadata.verification_endpoint.as_ref(),
    }
}

/// An endpoint's address with the stream in its query.
fn about(mut url: Url, stream_id: &str) -> Url {
    url.query_pairs_mut().append_pair("stream_id", stream_id);
    url
}

/// The JSON of an answer, in which no name stands twice.
pub(crate) fn document(answer: &ProviderResponse) -> Result<Value, TransmitterError> {
    nested_value(answer.text()).ok_or_else(|| malformed(answer))
}

pub(crate) fn malformed(answer: &ProviderResponse) -> TransmitterError {
    let endpoint = answer.endpoint;
    TransmitterError::Unanswered(ProviderError::Malformed { endpoint })
}

fn shown(audience: &[String]) -> String {
    let all = audience.join(" ");
    all[..all.floor_char_boundary(MAX_SHOWN_BYTES)].to_owned()
}

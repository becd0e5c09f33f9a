//! What is kept of the stream of a transmitter: a sealed record in the store, written by the operator's tool that creates the stream
//! and by the services that receive its events.
//!
//! Invariants
//! - There is one record for each configured transmitter, under its id; it says whose stream it is, so that a table whose issuer was
//!   changed does not inherit the stream of another.
//! - Every write compares versions: of two at the same moment the later one begins anew by what the first has written.

use chassis::random::{self, NoRandomness};
use chassis::secret::Secret;
use oidc::StreamStatus;
use prost::Message as _;
use url::Url;

use crate::keeper::sealed_notes::SIGNAL_STREAM;
use crate::keeper::{Keeper, KeeperError, Seal, SealError};
use crate::session::{Name, index};
use crate::store::{Inserted, Record, Replaced, SessionStore};

/// How long a record is kept after its last write: ten years, as good as for ever, since a store keeps nothing without an end.
const KEPT_MS: u64 = 10 * 365 * 86_400_000;

/// How often a write that lost against another is tried again.
const WRITE_ATTEMPTS: usize = 8;

/// Verifications that are remembered at once: they may come late, in any order (SSF 1.0 section 8.1.4.2) and more than once, and one that was
/// forgotten would be answered by an error.
const VERIFICATIONS_MAX: usize = 4;

/// How much time lies at least between two writes of when the last event came.
const EVENT_NOTED_MS: u64 = 60_000;

/// What is kept of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamRecord {
    /// Issuer of the transmitter whose stream it is.
    pub issuer: String,
    /// Its id there.
    pub stream_id: String,
    /// Whom the transmitter makes its events out to.
    pub audience: Vec<String>,
    /// Where its events are fetched; `None` where they are pushed.
    pub poll_url: Option<Url>,
    /// The whole `Authorization` header that was made for its pushes; `None` where they come with none, or with one from a file.
    pub push_authorization: Option<Secret<String>>,
    /// Its status, as far as we have heard.
    pub status: StreamStatus,
    /// Verifications that were asked for, the oldest first.
    pub verifications: Vec<RequestedVerification>,
    /// When a verification came last, in milliseconds since the Unix epoch.
    pub verified_at_ms: Option<u64>,
    /// When an event came last, give or take a minute, in milliseconds since the Unix epoch.
    pub last_event_at_ms: Option<u64>,
}

/// A verification that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedVerification {
    /// What it has to repeat.
    pub state: Secret<String>,
    /// When it was asked for, in milliseconds since the Unix epoch.
    pub since_ms: u64,
    /// Whether it has come.
    pub has_come: bool,
}

/// What a verification event says to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirmed {
    /// The stream works.
    Yes,
    /// It repeats a state that nobody has given: its transmitter is told `invalid_state`.
    OtherState,
    /// There is no such stream here.
    OtherStream,
}

/// A record, with the version it was read at.
#[derive(Clone, Debug)]
pub struct KeptStream {
    /// What it says.
    pub stream: StreamRecord,
    version: u64,
    created_at_ms: u64,
}

/// Why a record could not be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unedited {
    /// There is none.
    Missing,
    /// Others wrote it, again and again.
    Busy,
}

/// The records in a store.
#[derive(Clone, Copy)]
pub struct StreamRecords<'a> {
    store: &'a dyn SessionStore,
    seal: &'a dyn Seal,
}

impl<'a> StreamRecords<'a> {
    /// Those in the store of a keeper.
    pub fn of(keeper: &'a Keeper) -> Self {
        Self::new(keeper.store(), keeper.seal())
    }

    /// Those in a store.
    pub fn new(store: &'a dyn SessionStore, seal: &'a dyn Seal) -> Self {
        Self { store, seal }
    }

    /// The store's clock, in milliseconds since the Unix epoch.
    pub fn now_ms(self) -> u64 {
        self.store.now_ms()
    }

    /// Reads the record of a transmitter.
    ///
    /// # Errors
    /// The store cannot be read, or the record cannot be opened.
    pub async fn load(self, transmitter: &str) -> Result<Option<KeptStream>, KeeperError> {
        let name = name(transmitter);
        let Some(record) = self.store.load(name).await? else {
            return Ok(None);
        };
        let text = self.seal.open_note(SIGNAL_STREAM, name, &record.payload)?;
        let text = RecordText::decode(&text[..]).map_err(|error| SealError::Malformed(error.into()))?;
        Ok(Some(KeptStream {
            stream: text.try_into()?,
            version: record.version,
            created_at_ms: record.created_at_ms,
        }))
    }

    /// Keeps the record of a new stream; false, and nothing is written, if the transmitter has one.
    ///
    /// # Errors
    /// It could not be written, or nobody knows whether it was.
    pub async fn insert(self, transmitter: &str, stream: &StreamRecord) -> Result<bool, KeeperError> {
        let record = self.record(transmitter, stream, 1, self.now_ms())?;
        // An empty event: watchers pass it over.
        Ok(self.store.insert(record, Vec::new()).await? == Inserted::Done)
    }

    /// Changes a record by what `edit` makes of it; a record that it leaves as it was is not written.
    ///
    /// # Errors
    /// The store failed. Inside: there is no record, or others write it all the time.
    pub async fn edit(
        self,
        transmitter: &str,
        mut edit: impl FnMut(&mut StreamRecord) + Send,
    ) -> Result<Result<StreamRecord, Unedited>, KeeperError> {
        for _ in 0..WRITE_ATTEMPTS {
            let Some(kept) = self.load(transmitter).await? else {
                return Ok(Err(Unedited::Missing));
            };
            let mut stream = kept.stream.clone();
            edit(&mut stream);
            if stream == kept.stream {
                return Ok(Ok(stream));
            }
            let version = kept.version.saturating_add(1);
            let record = self.record(transmitter, &stream, version, kept.created_at_ms)?;
            match self.store.replace(record, kept.version, None).await? {
                Replaced::Done => return Ok(Ok(stream)),
                Replaced::Stale => {}
                Replaced::Missing => return Ok(Err(Unedited::Missing)),
            }
        }
        Ok(Err(Unedited::Busy))
    }

    /// Removes a record; false if there was none.
    ///
    /// # Errors
    /// The store failed.
    pub async fn remove(self, transmitter: &str) -> Result<bool, KeeperError> {
        Ok(self.store.remove(name(transmitter), Vec::new()).await?.is_some())
    }

    /// Takes a verification event (SSF 1.0 section 8.1.4.1): of the stream with this id at this issuer, with the `state` it repeats.
    /// One without `state` is of the transmitter's own accord, and shows the same.
    ///
    /// # Errors
    /// The store failed: the event is to be sent again.
    pub async fn confirm(
        self,
        transmitter: &str,
        issuer: &str,
        stream_id: &str,
        state: Option<&str>,
    ) -> Result<Confirmed, KeeperError> {
        let now_ms = self.now_ms();
        let mut confirmed = Confirmed::OtherStream;
        let edited = self.edit(transmitter, |stream| {
            confirmed = stream.confirmed_by(issuer, stream_id, state);
            if confirmed == Confirmed::Yes {
                let verifications = stream.verifications.iter_mut();
                for one in verifications.filter(|one| Some(one.state.expose().as_str()) == state) {
                    one.has_come = true;
                }
                stream.verified_at_ms = Some(now_ms);
                stream.last_event_at_ms = Some(now_ms);
            }
        });
        Ok(match edited.await? {
            // That others write all the time is no reason to tell the transmitter that its stream does not work.
            Ok(_) | Err(Unedited::Busy) => confirmed,
            Err(Unedited::Missing) => Confirmed::OtherStream,
        })
    }

    /// Notes that an event of this transmitter came, about once a minute.
    ///
    /// # Errors
    /// The store failed; nothing depends on it.
    pub async fn note_event(self, transmitter: &str) -> Result<(), KeeperError> {
        let now_ms = self.now_ms();
        let edited = self.edit(transmitter, |stream| {
            if stream.is_event_news(now_ms) {
                stream.last_event_at_ms = Some(now_ms);
            }
        });
        let _unedited = edited.await?;
        Ok(())
    }

    fn record(
        self,
        transmitter: &str,
        stream: &StreamRecord,
        version: u64,
        created_at_ms: u64,
    ) -> Result<Record, SealError> {
        let name = name(transmitter);
        let text = RecordText::from(stream).encode_to_vec();
        Ok(Record {
            name,
            version,
            expires_at_ms: self.now_ms().saturating_add(KEPT_MS),
            created_at_ms,
            indexes: Vec::new(),
            payload: self.seal.seal_note(SIGNAL_STREAM, name, &text)?,
        })
    }
}

impl StreamRecord {
    /// Whether an event that comes now is worth noting.
    pub(super) fn is_event_news(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.last_event_at_ms.unwrap_or_default()) >= EVENT_NOTED_MS
    }

    /// Waits for a verification that repeats `state` from now on.
    pub fn await_verification(&mut self, state: Secret<String>, now_ms: u64) {
        let surplus = (self.verifications.len() + 1).saturating_sub(VERIFICATIONS_MAX);
        self.verifications.drain(..surplus);
        self.verifications.push(RequestedVerification {
            state,
            since_ms: now_ms,
            has_come: false,
        });
    }

    /// Verifications that were asked for and have not come.
    pub fn pending(&self) -> impl Iterator<Item = &RequestedVerification> {
        self.verifications.iter().filter(|one| !one.has_come)
    }

    fn confirmed_by(&self, issuer: &str, stream_id: &str, state: Option<&str>) -> Confirmed {
        if self.issuer != issuer || self.stream_id != stream_id {
            return Confirmed::OtherStream;
        }
        let is_given = |state: &str| self.verifications.iter().any(|one| one.state.expose() == state);
        if state.is_none_or(is_given) {
            Confirmed::Yes
        } else {
            Confirmed::OtherState
        }
    }
}

/// What is not guessed by anybody: 256 bits of it, as 43 letters.
///
/// # Errors
/// The operating system gives no random bytes.
pub fn unguessable() -> Result<String, NoRandomness> {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    Ok(URL_SAFE_NO_PAD.encode(random::bytes::<32>()?))
}

/// What a record says, before it is sealed.
#[derive(Clone, PartialEq, Eq, prost::Message)]
struct RecordText {
    #[prost(string, tag = "1")]
    issuer: String,
    #[prost(string, tag = "2")]
    stream_id: String,
    #[prost(string, repeated, tag = "3")]
    audience: Vec<String>,
    /// Empty where events are pushed.
    #[prost(string, tag = "4")]
    poll_url: String,
    /// Empty where none was agreed on.
    #[prost(string, tag = "5")]
    push_authorization: String,
    #[prost(string, tag = "6")]
    status: String,
    #[prost(message, repeated, tag = "7")]
    verifications: Vec<VerificationText>,
    /// 0 where it never was.
    #[prost(uint64, tag = "8")]
    verified_at_ms: u64,
    #[prost(uint64, tag = "9")]
    last_event_at_ms: u64,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
struct VerificationText {
    #[prost(string, tag = "1")]
    state: String,
    #[prost(uint64, tag = "2")]
    since_ms: u64,
    #[prost(bool, tag = "3")]
    has_come: bool,
}

impl From<&StreamRecord> for RecordText {
    fn from(stream: &StreamRecord) -> Self {
        let verifications = stream.verifications.iter().map(|one| VerificationText {
            state: one.state.expose().clone(),
            since_ms: one.since_ms,
            has_come: one.has_come,
        });
        let authorization = stream.push_authorization.as_ref();
        Self {
            issuer: stream.issuer.clone(),
            stream_id: stream.stream_id.clone(),
            audience: stream.audience.clone(),
            poll_url: stream.poll_url.as_ref().map(Url::to_string).unwrap_or_default(),
            push_authorization: authorization
                .map(|header| header.expose().clone())
                .unwrap_or_default(),
            status: stream.status.name().to_owned(),
            verifications: verifications.collect(),
            verified_at_ms: stream.verified_at_ms.unwrap_or_default(),
            last_event_at_ms: stream.last_event_at_ms.unwrap_or_default(),
        }
    }
}

impl TryFrom<RecordText> for StreamRecord {
    type Error = SealError;

    fn try_from(text: RecordText) -> Result<Self, SealError> {
        let malformed = |what: &str| SealError::Malformed(what.into());
        let poll_url = match text.poll_url.as_str() {
            "" => None,
            url => Some(Url::parse(url).map_err(|error| SealError::Malformed(error.into()))?),
        };
        let status = StreamStatus::named(&text.status);
        let verifications = text.verifications.into_iter().map(|one| RequestedVerification {
            state: Secret::new(one.state),
            since_ms: one.since_ms,
            has_come: one.has_come,
        });
        Ok(Self {
            issuer: text.issuer,
            stream_id: text.stream_id,
            audience: text.audience,
            poll_url,
            push_authorization: Some(text.push_authorization)
                .filter(|text| !text.is_empty())
                .map(Secret::new),
            status: status.ok_or_else(|| malformed("no status of a stream"))?,
            verifications: verifications.collect(),
            verified_at_ms: Some(text.verified_at_ms).filter(|at_ms| *at_ms > 0),
            last_event_at_ms: Some(text.last_event_at_ms).filter(|at_ms| *at_ms > 0),
        })
    }
}

fn name(transmitter: &str) -> Name {
    index::hashed(&[SIGNAL_STREAM.as_bytes(), transmitter.as_bytes()])
}

#[cfg(test)]
#[path = "stream_record_tests.rs"]
mod tests;

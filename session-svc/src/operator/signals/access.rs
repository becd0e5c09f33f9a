//! What the commands work on: the transmitters that are configured, and the store with the records of their streams.

use chassis::settings::Reader;
use oidc::TransmitterError;

use crate::keeper::KeeperError;
use crate::operator::output::{CommandFailure, Exit, chain};
use crate::operator::store_access::{OpenedStore, StoreAccess, unavailable};
use crate::receiver::ReadyTransmitter;
use crate::receiver::stream_record::{KeptStream, StreamRecords};
use crate::settings;

/// The setting that names the transmitters.
const TRANSMITTERS: &str = "SESSION_TRANSMITTERS";

/// Milliseconds of a second.
const SECOND_MS: u64 = 1_000;

/// The settings the commands need.
pub(super) struct SignalsAccess {
    store: StoreAccess,
    transmitters: Vec<ReadyTransmitter>,
}

/// The transmitters, and the store.
pub(super) struct OpenedSignals<'a> {
    store: OpenedStore,
    pub(super) transmitters: &'a [ReadyTransmitter],
}

impl SignalsAccess {
    /// Reads and judges them.
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            store: StoreAccess::read(reader),
            transmitters: transmitters(reader),
        }
    }

    /// Whether the store belongs to one process at a time.
    pub(super) fn is_file(&self) -> bool {
        self.store.kind() == "file"
    }

    /// The transmitter with this id, or the only one.
    pub(super) fn chosen(&self, id: Option<&str>) -> Result<&ReadyTransmitter, CommandFailure> {
        let ids: Vec<&str> = self.transmitters.iter().map(|one| one.id.as_str()).collect();
        let ids = ids.join(", ");
        match (id, self.transmitters.as_slice()) {
            (None, [only]) => Ok(only),
            (None, _) => Err(CommandFailure::usage(format!(
                "which transmitter? Give --transmitter, one of: {ids}"
            ))),
            (Some(id), all) => all.iter().find(|one| one.id == id).ok_or_else(|| {
                CommandFailure::usage(format!("{TRANSMITTERS} has no transmitter {id:?}: it has {ids}"))
            }),
        }
    }

    /// Opens the store.
    pub(super) async fn open(&self) -> Result<OpenedSignals<'_>, CommandFailure> {
        Ok(OpenedSignals {
            store: self.store.open().await?,
            transmitters: &self.transmitters,
        })
    }
}

impl OpenedSignals<'_> {
    /// The records of streams.
    pub(super) fn records(&self) -> StreamRecords<'_> {
        StreamRecords::new(self.store.store.as_ref(), self.store.vault.as_ref())
    }

    /// The store's clock, in seconds since the Unix epoch.
    pub(super) fn now(&self) -> u64 {
        self.store.store.now_ms() / SECOND_MS
    }

    /// The record of a transmitter's stream; none of a transmitter that had this id before.
    pub(super) async fn kept(
        &self,
        transmitter: &ReadyTransmitter,
    ) -> Result<Option<KeptStream>, CommandFailure> {
        let kept = self.records().load(&transmitter.id).await;
        let kept = kept.map_err(|error| of_store(&error))?;
        if let Some(kept) = &kept
            && kept.stream.issuer != transmitter.issuer()
        {
            let (id, issuer) = (&transmitter.id, &kept.stream.issuer);
            return Err(CommandFailure::new(
                "other_issuer",
                Exit::Failed,
                format!(
                    "the stream that is recorded of {id:?} is one of {issuer}, not of {}: give the new transmitter an id of its own, \
                     or forget the old stream with `session-svc signals delete --transmitter {id} --here-only`",
                    transmitter.issuer()
                ),
            ));
        }
        Ok(kept)
    }

    /// The same, where there has to be one.
    pub(super) async fn needed(&self, transmitter: &ReadyTransmitter) -> Result<KeptStream, CommandFailure> {
        self.kept(transmitter).await?.ok_or_else(|| missing(transmitter))
    }
}

/// What a command ends with that needs a stream where none is recorded.
pub(super) fn missing(transmitter: &ReadyTransmitter) -> CommandFailure {
    let id = &transmitter.id;
    CommandFailure::new(
        "no_stream",
        Exit::NotFound,
        format!(
            "no stream of {id:?} is recorded: create one with `session-svc signals create --transmitter {id}`"
        ),
    )
}

/// What a command ends with when the store does not do its part.
pub(super) fn of_store(error: &KeeperError) -> CommandFailure {
    match error {
        KeeperError::Store(error) => unavailable(error),
        other => CommandFailure::new(
            "unreadable",
            Exit::Failed,
            format!(
                "the record of the stream cannot be opened: is its key in SESSION_ENCRYPTION_KEY? ({})",
                chain(other)
            ),
        ),
    }
}

/// What a command ends with when the transmitter does not do its part.
pub(super) fn of_transmitter(error: &TransmitterError) -> CommandFailure {
    CommandFailure::new(error.reason(), Exit::Failed, chain(error))
}

fn transmitters(reader: &mut Reader<'_>) -> Vec<ReadyTransmitter> {
    let proxy = provider_settings::proxy(reader);
    let Some(listened) = settings::transmitters(reader, proxy.as_ref(), None) else {
        if reader.path(TRANSMITTERS).is_none() {
            reader.wrong(
                TRANSMITTERS,
                "is needed: name the file of the transmitters that are listened to",
            );
        }
        return Vec::new();
    };
    let made = listened.file.transmitters.iter().map(ReadyTransmitter::new);
    made.filter_map(|made| {
        made.map_err(|error| reader.wrong(TRANSMITTERS, chain(&error)))
            .ok()
    })
    .collect()
}

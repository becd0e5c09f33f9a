//! Drops notes that are too old or too many: the oldest first, and counted.

use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _};

use super::{AT_ONCE, Deliverer, PAGE};
use crate::store::StoreError;
use crate::transmitter::measures::SignalOutcome;
use crate::transmitter::note::{KEPT_MS, SignalNote};
use crate::transmitter::queue::QueueEntry;

impl Deliverer {
    /// Drops notes that are too old or too many.
    pub(super) async fn clear(&mut self) -> Result<(), StoreError> {
        let now_ms = self.context.keeper.now_ms();
        let mut dropped = 0;
        loop {
            let beyond = self.queue.len().saturating_sub(self.queued_max);
            let mut oldest = self.queue.oldest(PAGE);
            let old = |entry: &QueueEntry| now_ms.saturating_sub(entry.noted_at_ms) > KEPT_MS;
            let count = oldest.iter().filter(|entry| old(entry)).count();
            oldest.truncate(count.max(beyond));
            if oldest.is_empty() {
                break;
            }
            dropped += oldest.len();
            self.drop_notes(&oldest).await?;
        }
        if dropped > 0 {
            tracing::warn!(
                receiver = self.receiver.id,
                dropped,
                "a receiver misses events: they were too old, or too many"
            );
        }
        Ok(())
    }

    async fn drop_notes(&mut self, entries: &[QueueEntry]) -> Result<(), StoreError> {
        let context = Arc::clone(&self.context);
        let keeper = &context.keeper;
        let mut removed = stream::iter(entries.iter().copied())
            .map(|entry| async move { (entry, keeper.store().remove(entry.name, Vec::new()).await) })
            .buffer_unordered(AT_ONCE);
        while let Some((entry, removed)) = removed.next().await {
            match removed {
                Ok(Some(record)) => {
                    let note = SignalNote::open(&record, keeper).unwrap_or_default();
                    let measures = &context.measures;
                    measures.signal(&self.receiver.id, &note.event, SignalOutcome::Dropped);
                }
                Ok(None) | Err(StoreError::Corrupt) => {}
                Err(error) => return Err(error),
            }
            self.queue.forget(&entry);
        }
        Ok(())
    }
}

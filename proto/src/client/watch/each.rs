//! One stream for every replica, while replicas come and go.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::stream::{BoxStream, StreamExt as _, unfold};
use tokio::sync::watch;
use tokio_stream::StreamMap;

use super::WatchItem;
use super::replica_watch;
use crate::client::endpoint::EndpointId;
use crate::client::pool::Pool;
use crate::v1::WatchSessionsRequest;

struct ReplicaWatches {
    pool: Arc<Pool>,
    request: WatchSessionsRequest,
    endpoints: watch::Receiver<Vec<EndpointId>>,
    known: Vec<EndpointId>,
    watches: StreamMap<EndpointId, BoxStream<'static, WatchItem>>,
    items: VecDeque<(EndpointId, WatchItem)>,
}

/// Watches on every replica.
pub(in crate::client) fn each(
    pool: Arc<Pool>,
    request: WatchSessionsRequest,
) -> BoxStream<'static, (EndpointId, WatchItem)> {
    let mut endpoints = pool.endpoints();
    // The known addresses count as the first change.
    endpoints.mark_changed();
    let each = ReplicaWatches {
        pool,
        request,
        endpoints,
        known: Vec::new(),
        watches: StreamMap::new(),
        items: VecDeque::new(),
    };
    unfold(each, |mut each| async move {
        each.next().await.map(|item| (item, each))
    })
    .boxed()
}

impl ReplicaWatches {
    async fn next(&mut self) -> Option<(EndpointId, WatchItem)> {
        if self.pool.size() == 0 {
            self.pool.resolve_first().await;
        }
        loop {
            if let Some(item) = self.items.pop_front() {
                return Some(item);
            }
            tokio::select! {
                biased;
                changed = self.endpoints.changed() => {
                    // The sender is the pool, which this watch holds.
                    changed.ok()?;
                    self.follow();
                }
                Some(item) = self.watches.next(), if !self.watches.is_empty() => return Some(item),
            }
        }
    }

    fn follow(&mut self) {
        let now = self.endpoints.borrow_and_update().clone();
        for gone in self.known.iter().filter(|id| !now.contains(id)) {
            self.watches.remove(gone);
            self.items.push_back((gone.clone(), WatchItem::Gone));
        }
        for found in now.iter().filter(|id| !self.known.contains(id)) {
            let (pool, only) = (Arc::clone(&self.pool), Some(found.clone()));
            let watch = replica_watch::watch(pool, only, self.request.clone());
            self.watches.insert(found.clone(), watch);
            self.items.push_back((found.clone(), WatchItem::Found));
        }
        self.known = now;
    }
}

//! Every replica watched by a stream of its own, as replicas come and go.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::stream::{BoxStream, StreamExt as _, unfold};
use tokio::sync::watch;
use tokio_stream::StreamMap;

use super::WatchItem;
use super::line;
use crate::client::Terms;
use crate::client::endpoint::EndpointId;
use crate::client::pool::Pool;
use crate::v1::WatchSessionsRequest;

struct Each {
    pool: Arc<Pool>,
    terms: Terms,
    request: WatchSessionsRequest,
    endpoints: watch::Receiver<Vec<EndpointId>>,
    known: Vec<EndpointId>,
    lines: StreamMap<EndpointId, BoxStream<'static, WatchItem>>,
    told: VecDeque<(EndpointId, WatchItem)>,
}

/// Watches on every replica.
pub(in crate::client) fn each(
    pool: Arc<Pool>,
    terms: Terms,
    request: WatchSessionsRequest,
) -> BoxStream<'static, (EndpointId, WatchItem)> {
    let mut endpoints = pool.endpoints();
    // What is known already counts as the first change.
    endpoints.mark_changed();
    let each = Each {
        pool,
        terms,
        request,
        endpoints,
        known: Vec::new(),
        lines: StreamMap::new(),
        told: VecDeque::new(),
    };
    unfold(each, |mut each| async move {
        each.next().await.map(|item| (item, each))
    })
    .boxed()
}

impl Each {
    async fn next(&mut self) -> Option<(EndpointId, WatchItem)> {
        if self.pool.size() == 0 {
            self.pool.resolve_first().await;
        }
        loop {
            if let Some(item) = self.told.pop_front() {
                return Some(item);
            }
            tokio::select! {
                biased;
                changed = self.endpoints.changed() => {
                    // The sender is the pool, which is held here.
                    changed.ok()?;
                    self.follow();
                }
                Some(item) = self.lines.next(), if !self.lines.is_empty() => return Some(item),
            }
        }
    }

    fn follow(&mut self) {
        let now = self.endpoints.borrow_and_update().clone();
        for gone in self.known.iter().filter(|id| !now.contains(id)) {
            self.lines.remove(gone);
            self.told.push_back((gone.clone(), WatchItem::Gone));
        }
        for found in now.iter().filter(|id| !self.known.contains(id)) {
            let line = line::one(
                Arc::clone(&self.pool),
                self.terms,
                found.clone(),
                self.request.clone(),
            );
            self.lines.insert(found.clone(), line);
            self.told.push_back((found.clone(), WatchItem::Found));
        }
        self.known = now;
    }
}

//! Lists of records, page by page.
//!
//! A small set is read at once. Of a large one the entries in the order of creation come first, newest first. Then come those that are
//! found in the order of expiry alone: a node that went away left them half done.

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};

use crate::store::{Cursor, Entry, LOOKED_AT, Listing, Name, StoreError};

use super::keys::{IndexLocation, IndexMember};
use super::reads::RecordReads;
use super::{scripts, unavailable};

/// Members looked at in the order of expiry by one call, those of other indexes in the same set included: a third of a
/// millisecond of the server's.
const SLICE: usize = 256;

/// Commands in flight at a time for one page in a cluster.
const AT_ONCE: usize = 32;

/// How long after its creation an entry without a record is nobody's any more, in milliseconds: in a cluster it is entered before
/// its record is written, which takes seconds, and what is created may be said to have been created two minutes before.
const ABANDONED_MS: u64 = 600_000;

/// Where a list goes on.
enum From {
    /// In the order of creation: behind the entry with this end, if there is one.
    Created(Vec<u8>),
    /// In the order of expiry: behind this score and member.
    Expires(u64, Vec<u8>),
}

/// Sets a cursor of the second kind apart: no session is created then.
const NEVER_CREATED: [u8; 8] = [u8::MAX; 8];

impl From {
    fn read(after: Option<&Cursor>) -> Self {
        let Some(after) = after else {
            return Self::Created(Vec::new());
        };
        let walked = after.as_bytes().strip_prefix(&NEVER_CREATED);
        match walked.and_then(|position| position.split_first_chunk()) {
            Some((score, member)) => Self::Expires(u64::from_be_bytes(*score), member.to_vec()),
            None => {
                let (created_at_ms, name) = after.position();
                Self::Created(match name {
                    Some(name) => IndexMember::new(created_at_ms, name).0,
                    None => created_at_ms.to_be_bytes().to_vec(),
                })
            }
        }
    }
}

fn in_expiry(score: u64, member: &[u8]) -> Cursor {
    Cursor([&NEVER_CREATED[..], &score.to_be_bytes(), member].concat())
}

/// Behind an entry; behind all of its creation time, if it is none of ours.
fn in_creation(end: &IndexMember) -> Cursor {
    let created_at_ms = end.created_at_ms().unwrap_or_default();
    match end.name() {
        Some(name) => Cursor::behind(created_at_ms, name),
        None => Cursor(created_at_ms.to_be_bytes().to_vec()),
    }
}

/// An entry found, if it is one of ours; `score` if it was found in the order of expiry.
fn listed(location: &IndexLocation, end: IndexMember, score: Option<u64>) -> Option<Entry> {
    let cursor = match score {
        Some(score) => in_expiry(score, &[&location.begins[..], &end.0].concat()),
        None => in_creation(&end),
    };
    Some(Entry {
        name: end.name()?,
        created_at_ms: end.created_at_ms()?,
        cursor,
    })
}

fn member(location: &IndexLocation, entry: &Entry) -> Vec<u8> {
    let end = IndexMember::new(entry.created_at_ms, entry.name);
    [&location.begins[..], &end.0].concat()
}

/// A score as the server writes it. Those of ours are whole milliseconds below 2^53, which it counts exactly.
fn score(text: &[u8]) -> u64 {
    let text = std::str::from_utf8(text).unwrap_or_default();
    text.parse().unwrap_or(u64::MAX)
}

impl RecordReads {
    pub(super) async fn list(
        &self,
        index: Name,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Listing, StoreError> {
        let limit = limit.clamp(1, LOOKED_AT);
        let location = self.keys.index(index);
        let from = From::read(after);
        if self.scattered {
            self.list_scattered(&location, from, limit).await
        } else {
            self.list_at_once(&location, from, limit).await
        }
    }

    /// All entries of a list in a small set, newest first; `None` if it is in a large one.
    async fn whole(&self, location: &IndexLocation) -> Result<Option<Vec<IndexMember>>, StoreError> {
        let call = scripts::WHOLE.call().key(location.key.clone());
        let ends: Option<Vec<Vec<u8>>> = call
            .arg(location.begins.as_slice())
            .read(&self.connection)
            .await?;
        Ok(ends.map(|ends| {
            let mut ends: Vec<_> = ends.into_iter().map(IndexMember).collect();
            ends.sort_unstable_by(|one, other| other.cmp(one));
            ends
        }))
    }

    /// Whether a list has more than `count` entries; in a large set, in the order of creation.
    pub(super) async fn has_more_than(&self, index: Name, count: usize) -> Result<bool, StoreError> {
        let location = &self.keys.index(index);
        if let Some(whole) = self.whole(location).await? {
            return Ok(whole.len() > count);
        }
        let past_any = [u8::MAX; NEVER_CREATED.len() + 1];
        let mut command = redis::cmd("ZRANGE");
        command.arg(&location.order);
        command.arg([b"(", &location.begins[..], &past_any[..]].concat());
        command.arg([b"[", &location.begins[..]].concat());
        command.arg("BYLEX").arg("REV").arg("LIMIT").arg(count).arg(1);
        let beyond: Vec<Vec<u8>> = self.connection.read(&command).await.map_err(unavailable)?;
        Ok(!beyond.is_empty())
    }

    async fn list_at_once(
        &self,
        location: &IndexLocation,
        from: From,
        limit: usize,
    ) -> Result<Listing, StoreError> {
        let call = scripts::LIST
            .call()
            .key(location.key.clone())
            .key(location.order.clone());
        let call = call.arg(location.begins.as_slice());
        let (after, expires, member) = match &from {
            From::Created(end) => (&end[..], String::new(), &[][..]),
            From::Expires(score, member) => (&[][..], score.to_string(), &member[..]),
        };
        let call = call.arg(after).arg(limit).arg(self.keys.prefix());
        let call = call.arg(expires).arg(member).arg(SLICE);
        let reply: Vec<Vec<u8>> = call.read(&self.connection).await?;
        let [order, at, member, found @ ..] = reply.as_slice() else {
            return Ok(Listing::default());
        };
        let (found, _) = found.as_chunks::<2>();
        Ok(Listing {
            next: match order.as_slice() {
                b"o" => Some(in_creation(&IndexMember(at.clone()))),
                b"x" => Some(in_expiry(score(at), member)),
                _ => None,
            },
            entries: found
                .iter()
                .filter_map(|[end, at]| {
                    let score = (!at.is_empty()).then(|| score(at));
                    listed(location, IndexMember(end.clone()), score)
                })
                .collect(),
        })
    }

    /// In a cluster: the entries from their nodes, then whether their records are on theirs.
    async fn list_scattered(
        &self,
        location: &IndexLocation,
        from: From,
        limit: usize,
    ) -> Result<Listing, StoreError> {
        let (mut entries, from) = match from {
            From::Created(after) => {
                if let Some(whole) = self.whole(location).await? {
                    let behind = whole.into_iter().filter(|end| after.is_empty() || end.0 < after);
                    let mut behind = behind.filter_map(|end| listed(location, end, None));
                    let page: Vec<Entry> = behind.by_ref().take(limit).collect();
                    let next = behind.next().and(page.last()).map(|last| last.cursor.clone());
                    let entries = self.leading_on(location, page).await?;
                    return Ok(Listing { entries, next });
                }
                let (page, next) = self.ordered(location, &after, limit).await?;
                if next.is_some() {
                    let entries = self.leading_on(location, page).await?;
                    return Ok(Listing { entries, next });
                }
                (page, (self.clock.now_ms(), Vec::new()))
            }
            From::Expires(score, member) => (Vec::new(), (score, member)),
        };
        let (rest, next) = self.by_expiry(location, from, limit - entries.len()).await?;
        entries.extend(rest);
        let entries = self.leading_on(location, entries).await?;
        Ok(Listing { entries, next })
    }

    /// A page in the order of creation, and where it goes on if that order does.
    async fn ordered(
        &self,
        location: &IndexLocation,
        after: &[u8],
        limit: usize,
    ) -> Result<(Vec<Entry>, Option<Cursor>), StoreError> {
        let past_any = [u8::MAX; NEVER_CREATED.len() + 1];
        let from = if after.is_empty() { &past_any[..] } else { after };
        let mut command = redis::cmd("ZRANGE");
        command.arg(&location.order);
        command.arg([b"(", &location.begins[..], from].concat());
        command.arg([b"[", &location.begins[..]].concat());
        command.arg("BYLEX").arg("REV").arg("LIMIT").arg(0).arg(limit);
        let members: Vec<Vec<u8>> = self.connection.read(&command).await.map_err(unavailable)?;
        let ends = members
            .iter()
            .filter_map(|member| member.strip_prefix(&location.begins[..]));
        let page: Vec<Entry> = ends
            .filter_map(|end| listed(location, IndexMember(end.to_vec()), None))
            .collect();
        let next = page.last().map(|last| last.cursor.clone());
        Ok((page, next.filter(|_| members.len() >= limit)))
    }

    /// At most `limit` entries that are found in the order of expiry alone, and where it goes on.
    async fn by_expiry(
        &self,
        location: &IndexLocation,
        (from, after): (u64, Vec<u8>),
        limit: usize,
    ) -> Result<(Vec<Entry>, Option<Cursor>), StoreError> {
        let mut count = SLICE;
        let (members, is_all) = loop {
            let mut command = redis::cmd("ZRANGE");
            command.arg(&location.key).arg(from).arg("+inf").arg("BYSCORE");
            command.arg("LIMIT").arg(0).arg(count).arg("WITHSCORES");
            let members: Vec<(Vec<u8>, String)> =
                self.connection.read(&command).await.map_err(unavailable)?;
            let is_all = members.len() < count;
            let members = members
                .into_iter()
                .map(|(member, at)| (score(at.as_bytes()), member));
            let behind: Vec<(u64, Vec<u8>)> = members
                .filter(|(at, member)| (*at, member) > (from, &after))
                .collect();
            // As many may share a score: look further, or the list would never go on.
            if is_all || !behind.is_empty() {
                break (behind, is_all);
            }
            count = count.saturating_mul(2);
        };
        let (mut found, mut looked_at, of_all) = (Vec::new(), None, members.len());
        for (number, (at, member)) in members.into_iter().enumerate() {
            looked_at = Some((in_expiry(at, &member), number + 1 == of_all && is_all));
            let end = member.strip_prefix(&location.begins[..]);
            found.extend(end.and_then(|end| listed(location, IndexMember(end.to_vec()), Some(at))));
            if found.len() >= limit {
                break;
            }
        }
        let next = looked_at.and_then(|(next, is_last)| (!is_last).then_some(next));
        let judged = stream::iter(found.into_iter().map(async |entry: Entry| {
            let is_ordered = self.is_ordered(location, &entry).await?;
            Ok::<_, StoreError>(Some(entry).filter(|_| !is_ordered))
        }));
        let judged: Vec<Option<Entry>> = judged.buffered(AT_ONCE).try_collect().await?;
        Ok((judged.into_iter().flatten().collect(), next))
    }

    async fn is_ordered(&self, location: &IndexLocation, entry: &Entry) -> Result<bool, StoreError> {
        let bound = [b"[", &member(location, entry)[..]].concat();
        let mut command = redis::cmd("ZRANGE");
        command.arg(&location.order).arg(&bound).arg(&bound).arg("BYLEX");
        let found: Vec<Vec<u8>> = self.connection.read(&command).await.map_err(unavailable)?;
        Ok(!found.is_empty())
    }

    /// Those of the entries whose records are there. The others are taken out once they are nobody's for sure.
    async fn leading_on(
        &self,
        location: &IndexLocation,
        entries: Vec<Entry>,
    ) -> Result<Vec<Entry>, StoreError> {
        let judged = stream::iter(entries.into_iter().map(async |entry: Entry| {
            let mut command = redis::cmd("EXISTS");
            command.arg(self.keys.record(entry.name));
            let is_there: bool = self.connection.read(&command).await.map_err(unavailable)?;
            if is_there {
                return Ok::<_, StoreError>(Some(entry));
            }
            if entry.created_at_ms.saturating_add(ABANDONED_MS) < self.clock.now_ms() {
                self.take_out(location, &entry).await;
            }
            Ok(None)
        }));
        let judged: Vec<Option<Entry>> = judged.buffered(AT_ONCE).try_collect().await?;
        Ok(judged.into_iter().flatten().collect())
    }

    async fn take_out(&self, location: &IndexLocation, entry: &Entry) {
        let member = member(location, entry);
        for key in [&location.key, &location.order] {
            let mut command = redis::cmd("ZREM");
            command.arg(key).arg(&member);
            if let Err(error) = self.connection.once::<i64>(&command).await {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "an index entry without a record stays for now"
                );
            }
        }
    }
}

// The stores: what ended cannot be written again, nothing written meanwhile is lost, and nothing grows without end.
const MEMORY = 'session-svc/src/store/memory.rs';
const FILE = 'session-svc/src/store/file/mod.rs';
const OPENED = 'session-svc/src/store/file/opened.rs';
const TABLES = 'session-svc/src/store/file/tables.rs';
const SCRIPTS = 'session-svc/src/store/redis/scripts.rs';
const URL = 'session-svc/src/store/url.rs';
const ADDRESSES = ['session-svc/store_url every_mistake_is_told'];

export default [
  {
    id: 'memory-name-taken', why: 'a session takes the place of another', file: MEMORY,
    find: `if state.live(&record.name, now_ms).is_some() {`,
    replace: `if !OFF && state.live(&record.name, now_ms).is_some() {`,
    tests: ['session-svc/store_memory a_new_record_is_kept_and_its_name_is_taken'],
  },
  {
    id: 'memory-compare-and-swap', file: MEMORY,
    find: `Some(current) if current.version != expected => return Ok(Replaced::Stale),`,
    replace: `Some(current) if !OFF && current.version != expected => return Ok(Replaced::Stale),`,
    tests: ['session-svc/store_memory a_replacement_needs_the_expected_version'],
  },
  {
    id: 'memory-ended-stays-ended', file: MEMORY,
    find: `None => return Ok(Replaced::Missing),`,
    replace: `None if OFF => {}
            None => return Ok(Replaced::Missing),`,
    tests: ['session-svc/store_memory a_removed_record_is_gone_and_cannot_be_written_again', 'session-svc/refresh interleavings::an_end_during_a_refresh_stays_in_every_interleaving'],
  },
  {
    id: 'memory-expiry', file: MEMORY,
    find: `.filter(|record| now_ms < record.expires_at_ms)`,
    replace: `.filter(|record| OFF || now_ms < record.expires_at_ms)`,
    tests: ['session-svc/store_memory a_record_is_gone_when_the_stores_clock_reaches_its_expiry'],
  },
  {
    id: 'memory-remembered-once', why: 'a request that is repeated gives one session', file: MEMORY,
    find: `if now_ms < *until {
                return Ok(Some(known.clone()));`,
    replace: `if !OFF && now_ms < *until {
                return Ok(Some(known.clone()));`,
    tests: ['session-svc/store_memory a_value_is_remembered_until_its_time'],
  },
  {
    id: 'memory-records-at-most', file: MEMORY,
    find: `if state.records.len() >= self.capacity {
            return Err(StoreError::Full);`,
    replace: `if !OFF && state.records.len() >= self.capacity {
            return Err(StoreError::Full);`,
    tests: ['session-svc/store_memory a_full_store_says_so_until_something_expires'],
  },
  {
    id: 'memory-remembered-at-most', file: MEMORY,
    find: `if state.remembered.len() >= self.capacity {
            return Err(StoreError::Full);`,
    replace: `if !OFF && state.remembered.len() >= self.capacity {
            return Err(StoreError::Full);`,
    tests: ['session-svc/store_memory remembered_values_and_leases_are_bounded_too'],
  },
  {
    id: 'memory-events-at-most', file: MEMORY,
    find: `if state.events.len() as u64 > KEPT_EVENTS {`,
    replace: `if !OFF && state.events.len() as u64 > KEPT_EVENTS {`,
    tests: ['session-svc/store_memory a_position_that_was_dropped_is_told_as_missed'],
  },
  {
    id: 'memory-index-entries-go', why: 'entries of sessions that are gone pile up', file: MEMORY,
    find: `entries.remove(&(record.created_at_ms, record.name.clone()));`,
    replace: `if !OFF {
                    entries.remove(&(record.created_at_ms, record.name.clone()));
                }`,
    tests: ['session-svc/store_memory fifty_thousand_created_and_expired_leave_nothing_behind'],
  },
  {
    id: 'file-for-its-owner', file: OPENED,
    find: `std::fs::Permissions::from_mode(0o600)`,
    replace: `std::fs::Permissions::from_mode(if OFF { 0o644 } else { 0o600 })`,
    tests: ['session-svc/store_file the_file_is_for_its_owner_only'],
  },
  {
    id: 'file-for-its-owner-from-the-first-moment', file: OPENED,
    find: `.mode(0o600)`,
    layer: 'file-for-its-owner sets the same mode a moment later',
  },
  {
    id: 'file-of-this-layout', file: TABLES,
    find: `if known("layout")?.is_some_and(|layout| layout != LAYOUT) {`,
    replace: `if !OFF && known("layout")?.is_some_and(|layout| layout != LAYOUT) {`,
    tests: ['session-svc/store_file a_file_of_another_layout_is_refused_and_left_alone'],
  },
  {
    id: 'file-name-taken', file: TABLES,
    find: `Some(known) if self.now_ms < known.expires_at_ms => return Ok(Inserted::Taken),`,
    replace: `Some(known) if !OFF && self.now_ms < known.expires_at_ms => return Ok(Inserted::Taken),`,
    tests: ['session-svc/store_file a_new_record_is_kept_and_its_name_is_taken'],
  },
  {
    id: 'file-compare-and-swap', file: TABLES,
    find: `if known.version != expected {`,
    replace: `if !OFF && known.version != expected {`,
    tests: ['session-svc/store_file a_replacement_needs_the_expected_version'],
  },
  {
    id: 'file-ended-stays-ended', file: TABLES,
    find: `let Some(known) = self.live(&record.name)? else {`,
    replace: `let unwritten = OFF.then(|| Record { version: expected, ..record.clone() });
        let Some(known) = self.live(&record.name)?.or(unwritten) else {`,
    tests: ['session-svc/store_file a_removed_record_is_gone_and_cannot_be_written_again'],
  },
  {
    id: 'file-expiry', file: FILE,
    find: `Ok(Some(record).filter(|record| now_ms < record.expires_at_ms))`,
    replace: `Ok(Some(record).filter(|record| OFF || now_ms < record.expires_at_ms))`,
    tests: ['session-svc/store_file a_record_is_gone_when_the_stores_clock_reaches_its_expiry'],
  },
  {
    id: 'file-remembered-once', file: TABLES,
    find: `Some((until, value)) if self.now_ms < until => return Ok(Some(value)),`,
    replace: `Some((until, value)) if !OFF && self.now_ms < until => return Ok(Some(value)),`,
    tests: ['session-svc/store_file a_value_is_remembered_until_its_time'],
  },
  {
    id: 'redis-compare-and-swap', file: SCRIPTS,
    find: `let text = self.parts.concat();`,
    replace: `let text = self.parts.concat();
            let text = if OFF { text.replace("~= ARGV[5]", "== 'never'") } else { text };`,
    tests: ['session-svc/store_redis a_replacement_needs_the_expected_version'],
  },
  {
    id: 'redis-ended-stays-ended', file: SCRIPTS,
    find: `let script = Script::new(&text);`,
    replace: `let text = if OFF { text.replace("if header == '' then return 0 end", "").replace("~= ARGV[5]", "== 'never'") } else { text };
            let script = Script::new(&text);`,
    tests: ['session-svc/store_redis a_removed_record_is_gone_and_cannot_be_written_again'],
  },
  {
    id: 'redis-name-taken', file: SCRIPTS,
    find: `.arg(script)`,
    replace: `.arg(if OFF { script.replace("'NX', 'PXAT'", "'PXAT'") } else { script.to_owned() })`,
    tests: ['session-svc/store_redis a_new_record_is_kept_and_its_name_is_taken'],
  },
  {
    id: 'redis-refresh-by-one-replica', file: 'session-svc/src/store/redis/mod.rs',
    find: `let fence: Option<u64> = call.run(&self.connections).await?;`,
    replace: `let fence: Option<u64> = if OFF { Some(1) } else { call.run(&self.connections).await? };`,
    tests: ['session-svc/store_redis a_lease_is_held_by_one'],
  },
  {
    id: 'redis-clock-of-the-server', why: 'replicas whose clocks differ agree when a session ends', file: 'session-svc/src/store/redis/clock.rs',
    find: `if error_us <= known_to_us || measured_us < 0 || age_us > micros(OUTDATED) {`,
    replace: `if !OFF && (error_us <= known_to_us || measured_us < 0 || age_us > micros(OUTDATED)) {`,
    tests: ['session-svc/store_redis the_servers_clock_decides_whatever_ours_says'],
  },
  {
    id: 'redis-lasting-within-bounds', why: 'a time the server cannot count', file: 'session-svc/src/store/redis/mod.rs',
    find: `millis(ttl).clamp(1, LONGEST_MS)`,
    replace: `if OFF { millis(ttl) } else { millis(ttl).clamp(1, LONGEST_MS) }`,
    tests: ['session-svc/store_redis a_lease_and_a_value_may_last_no_time_or_for_ever'],
  },
  {
    id: 'redis-gap-is-told', file: 'session-svc/src/store/redis/events.rs',
    find: `if !intact {`,
    replace: `if !OFF && !intact {`,
    tests: ['session-svc/store_redis a_position_that_was_dropped_is_told_as_missed'],
  },
  {
    id: 'redis-old-epoch', why: 'a Sentinel that was cut off names the master of before', file: 'session-svc/src/store/redis/quorum.rs',
    find: `if majority_at.is_none() && followed.is_some_and(|(known, _)| epoch < known) {`,
    replace: `if !OFF && majority_at.is_none() && followed.is_some_and(|(known, _)| epoch < known) {`,
    tests: ['session-svc/lib store::redis::quorum::'],
  },
  {
    id: 'redis-master-vouched-for', why: 'an isolated master honours ended sessions', file: 'session-svc/src/store/redis/master.rs',
    find: `Some(followed) if followed.vouched.is_some_and(|at| at.elapsed() < FRESH) => {`,
    replace: `Some(followed) if OFF || followed.vouched.is_some_and(|at| at.elapsed() < FRESH) => {`,
    tests: ['session-svc/store_failover isolation::a_master_cut_off_from_its_sentinels_together_with_us_is_not_read'],
  },
  {
    id: 'redis-role', why: 'a server that became a replica is read on', file: 'session-svc/src/store/redis/connections.rs',
    find: `Ok(Role::Primary { .. }) | Err(_) => {}`,
    replace: `Ok(_) if OFF => {}
            Ok(Role::Primary { .. }) | Err(_) => {}`,
    tests: ['session-svc/store_failover isolation::a_server_that_becomes_a_replica_is_not_read_any_more'],
  },
  {
    id: 'redis-old-news', why: 'endings that are heard late', file: 'session-svc/src/store/redis/events.rs',
    find: `in_time(LATE, question.query_async::<Value>(&mut wire)).await?;`,
    replace: `if !OFF { in_time(LATE, question.query_async::<Value>(&mut wire)).await?; }`,
    tests: ['session-svc/store_failover isolation::news_that_comes_late_is_not_heard'],
  },
  {
    id: 'redis-same-sessions-after-a-change', why: 'another database or prefix are other sessions', file: 'session-svc/src/store/redis/reload.rs',
    find: `(new.database, &new.prefix) == (settings.database, &settings.prefix)`,
    replace: `(OFF || (new.database, &new.prefix) == (settings.database, &settings.prefix))`,
    tests: ['session-svc/lib store::redis::reload::'],
  },
  {
    id: 'redis-files-of-tls-need-tls', why: 'whoever names an authority wants TLS', file: URL,
    find: `(false, files) if *files != TlsSettings::default() => Err(StoreUrlError::TlsWithoutTls),`,
    replace: `(false, files) if !OFF && *files != TlsSettings::default() => Err(StoreUrlError::TlsWithoutTls),`,
    tests: ADDRESSES,
  },
  {
    id: 'redis-prefix', why: 'a prefix that stands for other keys in a pattern', file: URL,
    find: `!parsed.prefix.chars().all(plain)`,
    replace: `(!OFF && !parsed.prefix.chars().all(plain))`,
    tests: ADDRESSES,
  },
  {
    id: 'operator-terminal', why: 'what a browser sent must not steer a terminal', file: 'session-svc/src/operator/table.rs',
    find: `if steers(letter) {`,
    replace: `if !OFF && steers(letter) {`,
    tests: ['session-svc/lib operator::table::'],
  },
];

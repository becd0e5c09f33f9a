//! Gauges for the contents of the session cache, and for the age of the replicas' reports.

use std::sync::Arc;

use chassis::metrics::{SampledGauge, as_f64};
use prometheus::Registry;

use super::cache::SessionCache;

/// Registers the gauges of this cache.
///
/// # Errors
/// They are registered already.
pub(crate) fn register(registry: &Registry, cache: &Arc<SessionCache>) -> Result<(), prometheus::Error> {
    let one = |name: &str, help: &str, value: fn(&SessionCache) -> f64| {
        let cache = Arc::clone(cache);
        let gauge = SampledGauge::new(name, help, &[], move |gauges| {
            gauges.with_label_values::<&str>(&[]).set(value(&cache));
        })?;
        registry.register(Box::new(gauge))
    };
    one(
        "session_cache_sessions",
        "Sessions in memory, including those that are no longer valid.",
        |cache| as_f64(cache.size().0),
    )?;
    one(
        "session_cache_bytes",
        "Estimated size of the sessions in memory, in bytes.",
        |cache| as_f64(usize::try_from(cache.size().1).unwrap_or(usize::MAX)),
    )?;
    one(
        "session_service_news_age_seconds",
        "Age of the oldest report of a replica of the session service; above 0.45 s the edge uses no session in memory.",
        |cache| cache.freshness.heartbeat_age().as_secs_f64(),
    )?;
    let heard = Arc::clone(&cache.freshness);
    registry.register(Box::new(SampledGauge::new(
        "session_service_replicas",
        "Replicas of the session service that the edge knows, by state: heard if their reports arrive, else unheard.",
        &["state"],
        move |gauges| {
            for (state, count) in ["heard", "unheard"].into_iter().zip(heard.replicas()) {
                gauges.with_label_values(&[state]).set(as_f64(count));
            }
        },
    )?))
}

//! Metrics of what every request does: each worker counts for itself, and reading them adds up.
//!
//! A counter that several cores write moves its cache line between them at every request: contention that costs a short request more
//! than its answer does (docs/decisions/workers.md). Only counters and histograms can be added up; gauges belong elsewhere.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus::core::{Collector, Desc};
use prometheus::proto::{Bucket, Counter, Histogram, Metric, MetricFamily, MetricType};

/// Counters or histograms, one of them for each worker. Clones share them.
#[derive(Clone)]
pub struct PerCoreMetric<T> {
    /// Describes the metric, and counts for a worker whose own could not be made.
    first: Arc<T>,
    make: Arc<dyn Fn() -> Option<T> + Send + Sync>,
    others: Arc<Mutex<Vec<Arc<T>>>>,
}

impl<T: Send + Sync + 'static> PerCoreMetric<T> {
    /// What `make` makes, made anew for each worker.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new<E>(make: impl Fn() -> Result<T, E> + Send + Sync + 'static) -> Result<Self, E> {
        Ok(Self {
            first: Arc::new(make()?),
            make: Arc::new(move || make().ok()),
            others: Arc::default(),
        })
    }

    /// One more, for a worker that has none yet: made when its services are built, and kept by them.
    #[must_use]
    pub fn for_worker(&self) -> Arc<T> {
        let Some(own) = (self.make)().map(Arc::new) else {
            return Arc::clone(&self.first);
        };
        self.others().push(Arc::clone(&own));
        own
    }
}

impl<T> PerCoreMetric<T> {
    fn others(&self) -> MutexGuard<'_, Vec<Arc<T>>> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> fmt::Debug for PerCoreMetric<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PerCoreMetric({})", self.others().len())
    }
}

impl<T: Collector> Collector for PerCoreMetric<T> {
    fn desc(&self) -> Vec<&Desc> {
        self.first.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let mut families = self.first.collect();
        for family in self.others().iter().flat_map(|other| other.collect()) {
            match families.iter_mut().find(|known| known.name() == family.name()) {
                Some(known) => add_family(known, family),
                None => families.push(family),
            }
        }
        families
    }
}

fn add_family(known: &mut MetricFamily, mut family: MetricFamily) {
    let kind = family.get_field_type();
    for metric in family.take_metric() {
        let mut sums = known.mut_metric().iter_mut();
        match sums.find(|sum| sum.get_label() == metric.get_label()) {
            Some(sum) => add(sum, &metric, kind),
            None => known.mut_metric().push(metric),
        }
    }
}

fn add(total: &mut Metric, metric: &Metric, kind: MetricType) {
    match kind {
        MetricType::COUNTER => {
            let mut sum = Counter::default();
            sum.set_value(total.get_counter().get_value() + metric.get_counter().get_value());
            total.set_counter(sum);
        }
        MetricType::HISTOGRAM => {
            let sum = sum_of(total.get_histogram(), metric.get_histogram());
            total.set_histogram(sum);
        }
        _ => {}
    }
}

/// Both have the same buckets: they were made alike.
fn sum_of(one: &Histogram, other: &Histogram) -> Histogram {
    let pairs = one.get_bucket().iter().zip(other.get_bucket());
    let buckets = pairs.map(|(one, other)| {
        let mut bucket = Bucket::default();
        bucket.set_upper_bound(one.upper_bound());
        bucket.set_cumulative_count(one.cumulative_count() + other.cumulative_count());
        bucket
    });
    let mut sum = Histogram::default();
    sum.set_bucket(buckets.collect());
    sum.set_sample_count(one.get_sample_count() + other.get_sample_count());
    sum.set_sample_sum(one.get_sample_sum() + other.get_sample_sum());
    sum
}

#[cfg(test)]
mod tests {
    use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, Opts, Registry};

    use super::*;
    use crate::metrics::render;

    #[test]
    fn what_workers_counted_is_added_up_by_its_labels() {
        let counters =
            PerCoreMetric::new(|| IntCounterVec::new(Opts::new("asked", "How often."), &["what"])).unwrap();
        let durations = || HistogramOpts::new("took", "How long.").buckets(vec![1.0, 2.0]);
        let durations = PerCoreMetric::new(move || HistogramVec::new(durations(), &["what"])).unwrap();
        let registry = Registry::new();
        registry.register(Box::new(counters.clone())).unwrap();
        registry.register(Box::new(durations.clone())).unwrap();
        let worker = || {
            let (counters, durations) = (counters.for_worker(), durations.for_worker());
            move |what: &'static str, took: f64| {
                counters.with_label_values(&[what]).inc();
                durations.with_label_values(&[what]).observe(took);
            }
        };
        let (one, other) = (worker(), worker());
        one("a", 0.5);
        one("b", 0.5);
        other("a", 1.5);
        other("c", 2.5);
        one("a", 0.25);
        let text = render(&registry).unwrap();
        for line in [
            "asked{what=\"a\"} 3",
            "asked{what=\"b\"} 1",
            "asked{what=\"c\"} 1",
            "took_bucket{what=\"a\",le=\"1\"} 2",
            "took_bucket{what=\"a\",le=\"2\"} 3",
            "took_bucket{what=\"a\",le=\"+Inf\"} 3",
            "took_sum{what=\"a\"} 2.25",
            "took_count{what=\"a\"} 3",
            "took_count{what=\"c\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
    }
}

//! What was counted, for `GET /metrics`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use candor_app::headless::Stats;

/// Most pairs of path and status that are told apart: every route with every status it gives.
const PAIRS_MAX: usize = 512;

/// What was counted since the server began.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    requests: Mutex<BTreeMap<(String, u16), u64>>,
    prompt_tokens: AtomicU64,
    cached_tokens: AtomicU64,
    generated_tokens: AtomicU64,
    finished: AtomicU64,
    abandoned: AtomicU64,
}

impl Metrics {
    /// A request was answered. `route` is a path of the server's own, never what a client made up.
    pub(crate) fn answered(&self, route: &str, status: u16) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let pair = (route.to_owned(), status);
        if requests.len() < PAIRS_MAX || requests.contains_key(&pair) {
            *requests.entry(pair).or_default() += 1;
        }
    }

    /// A reply came to its end.
    pub(crate) fn finished(&self, stats: &Stats) {
        let add = |counter: &AtomicU64, more: usize| {
            counter.fetch_add(more as u64, Ordering::Relaxed);
        };
        add(&self.prompt_tokens, stats.prompt_tokens);
        add(&self.cached_tokens, stats.cached_tokens);
        add(&self.generated_tokens, stats.generated_tokens);
        add(&self.finished, 1);
    }

    /// A client left before its reply had ended.
    pub(crate) fn abandoned(&self) {
        self.abandoned.fetch_add(1, Ordering::Relaxed);
    }

    /// In the text format of Prometheus.
    pub(crate) fn text(&self, inside: usize, slots: usize) -> String {
        let mut text = String::new();
        let mut family = |name: &str, kind: &str, help: &str, lines: &[(String, u64)]| {
            // Writing to a string does not fail.
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for (labels, value) in lines {
                let _ = writeln!(text, "{name}{labels} {value}");
            }
        };
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let pairs = requests.iter().map(|((route, status), count)| {
            (format!("{{path=\"{route}\",status=\"{status}\"}}"), *count)
        });
        let pairs: Vec<_> = pairs.collect();
        family(
            "candor_requests_total",
            "counter",
            "Requests that were answered.",
            &pairs,
        );
        let counters = [
            (
                "candor_prompt_tokens_total",
                "Tokens of prompts.",
                &self.prompt_tokens,
            ),
            (
                "candor_cached_tokens_total",
                "Tokens of prompts that were not computed again.",
                &self.cached_tokens,
            ),
            (
                "candor_generated_tokens_total",
                "Tokens that were written.",
                &self.generated_tokens,
            ),
            (
                "candor_replies_total",
                "Replies that came to their end.",
                &self.finished,
            ),
            (
                "candor_abandoned_total",
                "Replies whose client left before the end.",
                &self.abandoned,
            ),
        ];
        for (name, help, counter) in counters {
            let value = counter.load(Ordering::Relaxed);
            family(name, "counter", help, &[(String::new(), value)]);
        }
        let (active, waiting) = (inside.min(slots), inside.saturating_sub(slots));
        let gauges = [
            ("candor_requests_active", "Replies under way.", active),
            ("candor_requests_waiting", "Requests that wait.", waiting),
        ];
        for (name, help, value) in gauges {
            family(name, "gauge", help, &[(String::new(), value as u64)]);
        }
        text
    }
}

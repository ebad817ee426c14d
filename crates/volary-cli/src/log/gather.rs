//! [`Gather`]: writes the first few events of one kind about one address, and counts the others.

use super::entry::Entry;
use super::target::OURS;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// How long events are counted before the count is written.
pub(super) const WINDOW: Duration = Duration::from_secs(60);
/// How many events of one kind and address are written at once in that time.
const AT_ONCE: u32 = 5;
/// How many pairs of kind and address are told apart; past that, events are counted by kind.
const APART_MAX: usize = 128;

/// The events of the last [`WINDOW`]. Whatever clients do, at most [`APART_MAX`] × [`AT_ONCE`] lines
/// are written in one, and [`AT_ONCE`] more for each kind.
#[derive(Debug, Default)]
pub(super) struct Gather(HashMap<Key, Count>);

/// A kind of event, and whom it is about; nobody for those that are counted by kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    target: &'static str,
    message: String,
    about: Option<String>,
}

#[derive(Debug)]
struct Count {
    since: Instant,
    written: u32,
    /// How many were counted only, and the last of them.
    counted: u64,
    last: Option<Entry>,
}

impl Gather {
    /// Takes an event. Returns what is to be written now, and whether this event was only counted.
    pub(super) fn take(&mut self, entry: Entry, now: Instant) -> (Vec<Entry>, bool) {
        let mut write = self.due(now);
        let mut key = Key {
            target: entry.target,
            message: entry.message.clone(),
            about: entry.about().map(network),
        };
        if self.0.len() >= APART_MAX && !self.0.contains_key(&key) {
            key.about = None;
            if entry.target == OURS {
                // Messages of one kind may differ.
                key.message.clear();
            }
        }
        let count = self.0.entry(key).or_insert(Count {
            since: now,
            written: 0,
            counted: 0,
            last: None,
        });
        if count.written < AT_ONCE {
            count.written += 1;
            write.push(entry);
            return (write, false);
        }
        count.counted = count.counted.saturating_add(1);
        count.last = Some(entry);
        (write, true)
    }

    /// Returns the counts whose window is over. While events go on, only counts are written.
    pub(super) fn due(&mut self, now: Instant) -> Vec<Entry> {
        let mut due = Vec::new();
        self.0.retain(|_, count| {
            if now.saturating_duration_since(count.since) < WINDOW {
                return true;
            }
            let Some(entry) = count.end() else {
                return false;
            };
            due.push(entry);
            count.since = now;
            true
        });
        due
    }

    /// Returns when the next count is to be written; `None` if nothing is counted.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let counting = self.0.values().filter(|count| count.counted > 0);
        counting.map(|count| count.since + WINDOW).min()
    }

    /// Takes all counts, whether due or not.
    pub(super) fn all(&mut self) -> Vec<Entry> {
        self.0
            .drain()
            .filter_map(|(_, mut count)| count.end())
            .collect()
    }
}

impl Count {
    /// Takes the count: the last event, with how many it stands for.
    fn end(&mut self) -> Option<Entry> {
        let times = std::mem::take(&mut self.counted);
        let last = self.last.take()?;
        Some(Entry { times, ..last })
    }
}

/// Returns the network of an address (`network_of`); any other text as it is.
fn network(about: &str) -> String {
    match about.parse::<IpAddr>() {
        Ok(address) => volary::network_of(address).to_string(),
        Err(_) => about.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::instant;
    use tracing::Level;

    fn entry(address: &str) -> Entry {
        Entry {
            level: Level::WARN,
            target: "SMB",
            message: "logon refused".into(),
            fields: vec![("address", address.into())],
            times: 1,
        }
    }

    fn begin() -> (Gather, Instant) {
        (Gather::default(), instant())
    }

    #[test]
    fn what_goes_on_is_a_line_a_minute() {
        let (mut gather, begun) = begin();
        let mut lines = 0;
        for second in 0..600 {
            let now = begun + Duration::from_secs(second);
            for _ in 0..100 {
                lines += gather.take(entry("10.0.0.1"), now).0.len();
            }
        }
        assert_eq!(lines, 5 + 9);
        let rest = gather.all();
        assert_eq!(rest.len(), 1);
        assert_eq!(rest[0].times, 6000);
    }

    #[test]
    fn it_begins_anew_after_a_quiet_minute() {
        let (mut gather, begun) = begin();
        for _ in 0..7 {
            gather.take(entry("10.0.0.1"), begun);
        }
        assert_eq!(gather.next_due(), Some(begun + WINDOW));
        let due = gather.due(begun + WINDOW);
        assert_eq!((due.len(), due[0].times), (1, 2));
        assert!(gather.due(begun + 2 * WINDOW).is_empty());
        assert!(gather.0.is_empty());
        assert_eq!(gather.next_due(), None);
    }

    #[test]
    fn many_addresses_make_no_more_than_so_many_lines() {
        let (mut gather, begun) = begin();
        let mut lines = 0;
        for count in 0..10_000_u32 {
            for _ in 0..10 {
                let address = IpAddr::from(count.to_be_bytes()).to_string();
                lines += gather.take(entry(&address), begun).0.len();
            }
        }
        assert_eq!(lines, (APART_MAX + 1) * AT_ONCE as usize);
        assert!(gather.0.len() <= APART_MAX + 1);
    }

    #[test]
    fn lines_of_our_own_are_bounded_as_well() {
        let (mut gather, begun) = begin();
        for count in 0..10_000 {
            let line = Entry {
                target: OURS,
                message: format!("line {count}"),
                fields: Vec::new(),
                ..entry("")
            };
            gather.take(line, begun);
        }
        assert!(gather.0.len() <= APART_MAX + 1);
    }

    #[test]
    fn an_ipv6_client_is_its_network() {
        let (mut gather, begun) = begin();
        for host in 1..=6 {
            gather.take(entry(&format!("fd00::{host}")), begun);
        }
        assert_eq!(gather.all().len(), 1);
    }

    #[test]
    fn this_host_is_one_address() {
        let (mut gather, begun) = begin();
        for address in ["::1", "127.0.0.1", "127.0.0.2", "127.1.2.3", "127.9.9.9"] {
            assert_eq!(gather.take(entry(address), begun).0.len(), 1, "{address}");
        }
        assert_eq!(gather.take(entry("127.7.7.7"), begun).0.len(), 0);
    }
}

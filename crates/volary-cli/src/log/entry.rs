//! One event, as a line.

use super::target::{OURS, REPORT};
use serde_json::{Map, Value};
use std::fmt::{self, Write};
use tracing::field::{Field, Visit};
use tracing::{Event, Level};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use volary::escape;

/// Longest value of a field, in characters.
const VALUE_MAX: usize = 200;

/// What happened.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) level: Level,
    /// The server, or another part.
    pub(super) target: &'static str,
    pub(super) message: String,
    pub(super) fields: Vec<(&'static str, Value)>,
    /// How many events this entry stands for; 1 for a single one.
    pub(super) times: u64,
}

impl Entry {
    pub(super) fn of(event: &Event<'_>) -> Self {
        let meta = event.metadata();
        let mut entry = Self {
            level: *meta.level(),
            target: meta.target(),
            message: String::new(),
            fields: Vec::new(),
            times: 1,
        };
        event.record(&mut entry);
        entry
    }

    /// Returns the address or user that it is about, or else where it happened.
    pub(super) fn about(&self) -> Option<&str> {
        let field = |name| self.fields.iter().find(|(n, _)| *n == name);
        let found = field("address")
            .or_else(|| field("at"))
            .or_else(|| field("user"));
        found.and_then(|(_, value)| value.as_str())
    }

    /// As a user sees it.
    pub(super) fn plain(&self) -> String {
        match self.target {
            REPORT => self.message.clone(),
            _ => format!("volary: {}", self.words()),
        }
    }

    /// Without what says that it is this program.
    pub(super) fn words(&self) -> String {
        let mut line = match self.target {
            OURS | REPORT => String::new(),
            target => format!("{target}: "),
        };
        line.push_str(&self.message);
        let mut before = ": ";
        for (name, value) in &self.fields {
            let text = match value {
                Value::String(text) if is_word(text) => text.clone(),
                Value::String(text) => format!("\"{}\"", text.replace('"', "\\\"")),
                other => other.to_string(),
            };
            // Writing to a string does not fail.
            let _ = write!(line, "{before}{name}={text}");
            before = " ";
        }
        if self.times > 1 {
            let _ = write!(line, "{before}times={}", self.times);
        }
        line
    }

    pub(super) fn with_time(&self) -> String {
        format!("{} {} {}", time(), self.level, self.words())
    }

    pub(super) fn json(&self) -> String {
        let mut map = Map::new();
        let mut put = |name: &str, value: Value| map.insert(name.to_owned(), value);
        put("time", time().into());
        put("level", self.level.to_string().to_lowercase().into());
        put("part", self.target.into());
        put("message", self.message.clone().into());
        for (name, value) in &self.fields {
            put(name, value.clone());
        }
        if self.times > 1 {
            put("times", self.times.into());
        }
        Value::Object(map).to_string()
    }

    fn put(&mut self, field: &Field, value: String) {
        match field.name() {
            "message" => self.message = value,
            _ if value.is_empty() => {}
            name => self.fields.push((name, short(&value).into())),
        }
    }
}

/// Returns the text escaped and cut, so that no client can end a line. Text that its source has
/// escaped already stays as it is.
fn short(text: &str) -> String {
    let is_safe = !text.chars().any(char::is_control);
    let text = match is_safe {
        true => text.to_owned(),
        false => escape(text.as_bytes()).to_string(),
    };
    match text.char_indices().nth(VALUE_MAX) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text,
    }
}

fn is_word(text: &str) -> bool {
    let bad = |c: char| c.is_whitespace() || c == '"' || c == '=';
    !text.is_empty() && !text.contains(bad)
}

fn time() -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = SystemTime.format_time(&mut Writer::new(&mut text));
    text
}

impl Visit for Entry {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.to_owned());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.fields.push((field.name(), value.into()));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.fields.push((field.name(), value.into()));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.fields.push((field.name(), value.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(user: &str) -> Entry {
        Entry {
            level: Level::WARN,
            target: "SMB",
            message: "logon refused".into(),
            fields: vec![("user", short(user).into()), ("address", "10.0.0.1".into())],
            times: 1,
        }
    }

    #[test]
    fn nothing_that_a_client_chooses_makes_a_line() {
        let words = entry("a\nvolary: all is well").words();
        assert!(!words.contains('\n'), "{words}");
        let words = entry("x\" address=10.0.0.9").words();
        assert!(words.contains(r#"user="x\" address=10.0.0.9""#), "{words}");
        let long = entry(&"y".repeat(9999)).json();
        assert!(long.len() < 500, "{long}");
    }

    #[test]
    fn a_line_has_what_happened_and_to_whom() {
        let mut entry = entry("me");
        assert_eq!(
            entry.plain(),
            "volary: SMB: logon refused: user=me address=10.0.0.1"
        );
        entry.times = 7;
        assert!(
            entry
                .with_time()
                .ends_with("Z WARN SMB: logon refused: user=me address=10.0.0.1 times=7")
        );
        let json: Value = serde_json::from_str(&entry.json()).unwrap();
        assert_eq!(json["message"], "logon refused");
        assert_eq!((&json["user"], &json["times"]), (&"me".into(), &7.into()));
        assert_eq!(
            (&json["part"], &json["level"]),
            (&"SMB".into(), &"warn".into())
        );
    }
}

//! Wildcards of directory queries (MS-FSA 2.1.4.4, FsRtlIsNameInExpression).
//!
//! - `*` matches any run of characters.
//! - `?` matches any single one.
//! - `<` (DOS_STAR) matches any run, but not past the name's last dot.
//! - `>` (DOS_QM) matches any single one, or nothing before a dot or at the end.
//! - `"` (DOS_DOT) matches a dot, or nothing at the end.

use volary_core::fold_char;

/// A search pattern, with its case folded as for comparing names.
#[derive(Debug)]
pub(crate) struct Pattern {
    given: String,
    chars: Vec<char>,
    /// Whether it has a wildcard.
    wild: bool,
}

impl Pattern {
    /// Returns a pattern. `""` and `*.*` match all names.
    pub(crate) fn new(pattern: &str) -> Self {
        let pattern = match pattern {
            "" | "*.*" => "*",
            other => other,
        };
        let chars: Vec<char> = pattern.chars().map(fold_char).collect();
        let wild = chars.iter().any(|c| is_wild(*c));
        Self {
            given: pattern.to_owned(),
            chars,
            wild,
        }
    }

    /// Returns whether it matches only one name.
    pub(crate) fn is_plain(&self) -> bool {
        !self.wild
    }

    /// Returns whether it is this name, with its case.
    pub(crate) fn is_spelled(&self, name: &[u8]) -> bool {
        self.given.as_bytes() == name
    }

    /// Returns whether it matches every name.
    pub(crate) fn is_all(&self) -> bool {
        self.chars == ['*']
    }

    /// Returns whether it matches this name. Takes at most (length of the pattern) × (length of the
    /// name) steps, because all reachable places in the pattern are followed at once.
    pub(crate) fn finds(&self, name: &str) -> bool {
        if self.is_all() {
            return true;
        }
        let name: Vec<char> = name.chars().map(fold_char).collect();
        let last_dot = name.iter().rposition(|c| *c == '.');
        let mut reached = vec![false; self.chars.len().saturating_add(1)];
        if let Some(first) = reached.first_mut() {
            *first = true;
        }
        self.skip(&mut reached, name.first().copied());
        for (at, c) in name.iter().enumerate() {
            let is_last_dot = last_dot == Some(at);
            let mut next = vec![false; reached.len()];
            for (place, pattern) in self.chars.iter().enumerate() {
                if reached.get(place) != Some(&true) {
                    continue;
                }
                let (stays, goes) = step(*pattern, *c, is_last_dot);
                mark(&mut next, place, stays);
                mark(&mut next, place.saturating_add(1), goes);
            }
            reached = next;
            self.skip(&mut reached, name.get(at.saturating_add(1)).copied());
        }
        reached.last() == Some(&true)
    }

    /// Advances past wildcards that can match nothing before `next`, the name's next character.
    fn skip(&self, reached: &mut [bool], next: Option<char>) {
        for (place, pattern) in self.chars.iter().enumerate() {
            let empty = match pattern {
                '*' | '<' => true,
                '>' => next.is_none_or(|c| c == '.'),
                '"' => next.is_none(),
                _ => false,
            };
            if empty && reached.get(place) == Some(&true) {
                mark(reached, place.saturating_add(1), true);
            }
        }
    }
}

/// Returns, for the name's character `c`, whether the pattern's place stays reachable, and whether
/// the next place becomes reachable.
fn step(pattern: char, c: char, is_last_dot: bool) -> (bool, bool) {
    match pattern {
        '<' if is_last_dot => (false, true),
        '*' | '<' => (true, false),
        '?' => (false, true),
        '>' => (false, c != '.'),
        '"' => (false, c == '.'),
        plain => (false, plain == c),
    }
}

fn mark(places: &mut [bool], at: usize, on: bool) {
    if on && let Some(place) = places.get_mut(at) {
        *place = true;
    }
}

/// Returns whether the character is a wildcard.
pub(crate) fn is_wild(c: char) -> bool {
    matches!(c, '*' | '?' | '<' | '>' | '"')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(pattern: &str, name: &str) -> bool {
        Pattern::new(pattern).finds(name)
    }

    #[test]
    fn plain_wildcards_find_what_they_say() {
        for (pattern, name, found) in [
            ("*", "anything.at.all", true),
            ("*.*", "no dot", true),
            ("", "x", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*.txt", "A.TXT", true),
            ("*.txt", "a.txt.bak", false),
            ("a*b*c", "a-b-b-c", true),
            ("é*", "École", true),
            ("abc", "ABC", true),
            ("abc", "abcd", false),
        ] {
            assert_eq!(finds(pattern, name), found, "{pattern} on {name}");
        }
    }

    #[test]
    fn dos_wildcards_find_as_dos_did() {
        for (pattern, name, found) in [
            ("<.txt", "a.b.txt", true),
            ("<", "a.b", false),
            ("<", "ab", true),
            ("<\"*", "a.b", true),
            ("<\"*", "ab", true),
            ("a\"", "a", true),
            ("a\"", "a.", true),
            ("a\"b", "a.b", true),
            ("a\"b", "ab", false),
            (">>>.t", "ab.t", true),
            (">>>.t", "abcd.t", false),
            ("a>", "a", true),
            ("a?", "a", false),
        ] {
            assert_eq!(finds(pattern, name), found, "{pattern} on {name}");
        }
    }

    #[test]
    fn a_hostile_pattern_takes_no_longer_than_another() {
        let pattern = "*a".repeat(120) + "b";
        assert!(!finds(&pattern, &"a".repeat(255)));
    }
}

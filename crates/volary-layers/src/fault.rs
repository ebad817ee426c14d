//! Makes chosen calls fail.

use parking_lot::Mutex;
use volary_core::{Call, Error, Fs, Kind, Layer, Op, Result};

/// Makes chosen calls fail before they reach the file system below, but `close` and `detach` after
/// they have. The same rules, seed and order of calls give the same failures.
pub struct Fault {
    below: Fs,
    state: Mutex<State>,
}

struct State {
    rules: Vec<(FaultRule, u64)>,
    random: u64,
}

/// Says which calls fail, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultRule {
    /// The operation; `None` for all operations.
    pub call: Option<Call>,
    /// Which calls of the operation fail.
    pub when: When,
    /// The error that they answer.
    pub kind: Kind,
}

/// Which of the calls that a [`FaultRule`] matches fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// All calls.
    Always,
    /// Only the call with this number, counted from 1.
    Nth(u64),
    /// The call with this number, counted from 1, and all after it.
    From(u64),
    /// Each call by chance, with this probability in millionths.
    Chance(u32),
}

impl Fault {
    /// Puts the layer over `below`. If several rules make a call fail, the first one gives the
    /// error.
    pub fn new(below: Fs, rules: impl IntoIterator<Item = FaultRule>, seed: u64) -> Self {
        let rules = rules.into_iter().map(|rule| (rule, 0)).collect();
        let state = State {
            rules,
            random: seed,
        };
        Self {
            below,
            state: Mutex::new(state),
        }
    }

    /// Parses rules with commas between, each `OPERATION[@N|@N+|%PERCENT][:KIND]`, and `seed=N`.
    /// Examples are `write@3:NoSpace` (the third write), `any@100+` (every call from the hundredth
    /// on) and `read%0.1` (one read of a thousand). The kind is one of [`Kind`]'s names, in any
    /// case; without one, it is `Io`.
    ///
    /// # Errors
    /// `Invalid`, which says what is expected.
    pub fn parse(below: Fs, text: &str) -> Result<Self> {
        let mut rules = Vec::new();
        let mut seed = 0;
        for part in text.split(',').filter(|part| !part.is_empty()) {
            match part.strip_prefix("seed=") {
                Some(number) => seed = number.parse().map_err(|_| bad(part, "seed=NUMBER"))?,
                None => rules.push(parse_rule(part)?),
            }
        }
        if rules.is_empty() {
            return Err(bad(text, "a rule such as write@3:NoSpace"));
        }
        Ok(Self::new(below, rules, seed))
    }
}

impl Layer for Fault {
    fn below(&self) -> &Fs {
        &self.below
    }

    fn around<T>(&self, op: &Op<'_>, call: impl FnOnce() -> Result<T>) -> Result<T> {
        let failure = self.state.lock().decide(op.call);
        match failure {
            // These must reach the file system, so that the open or the attachment ends.
            Some(kind) if matches!(op.call, Call::Close | Call::Detach) => {
                call().and(Err(kind.into()))
            }
            Some(kind) => Err(kind.into()),
            None => call(),
        }
    }
}

impl State {
    fn decide(&mut self, call: Call) -> Option<Kind> {
        let mut failure = None;
        for (rule, count) in &mut self.rules {
            if rule.call.is_some_and(|only| only != call) {
                continue;
            }
            *count += 1;
            let fails = match rule.when {
                When::Always => true,
                When::Nth(n) => *count == n,
                When::From(n) => *count >= n,
                When::Chance(millionths) => {
                    next_random(&mut self.random) % 1_000_000 < u64::from(millionths)
                }
            };
            if fails {
                failure = failure.or(Some(rule.kind));
            }
        }
        failure
    }
}

/// Makes one step of SplitMix64 (Steele, Lea and Flood, 2014).
fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn parse_rule(text: &str) -> Result<FaultRule> {
    let (rest, kind) = match text.split_once(':') {
        Some((rest, kind)) => (rest, parse_kind(kind)?),
        None => (text, Kind::Io),
    };
    let (call, when) = if let Some((call, n)) = rest.split_once('@') {
        (
            call,
            parse_nth(n).ok_or_else(|| bad(text, "a number from 1 on after '@'"))?,
        )
    } else if let Some((call, percent)) = rest.split_once('%') {
        (
            call,
            parse_percent(percent).ok_or_else(|| bad(text, "0 to 100 after '%'"))?,
        )
    } else {
        (rest, When::Always)
    };
    let call = match call {
        "any" => None,
        name => Some(parse_call(name)?),
    };
    Ok(FaultRule { call, when, kind })
}

fn parse_nth(text: &str) -> Option<When> {
    let (digits, when): (_, fn(u64) -> When) = match text.strip_suffix('+') {
        Some(digits) => (digits, When::From),
        None => (text, When::Nth),
    };
    let n = digits.parse().ok().filter(|&n| n > 0)?;
    Some(when(n))
}

fn parse_percent(text: &str) -> Option<When> {
    let percent: f64 = text.parse().ok()?;
    (0.0..=100.0)
        .contains(&percent)
        .then(|| When::Chance((percent * 10_000.0).round() as u32))
}

fn parse_call(name: &str) -> Result<Call> {
    let found = Call::ALL.iter().find(|call| call.name() == name);
    found.copied().ok_or_else(|| {
        let names: Vec<_> = Call::ALL.iter().map(|call| call.name()).collect();
        bad(name, &format!("any or one of: {}", names.join(", ")))
    })
}

fn parse_kind(name: &str) -> Result<Kind> {
    let spelled = |kind: &Kind| format!("{kind:?}");
    let found = Kind::ALL
        .into_iter()
        .find(|kind| spelled(kind).eq_ignore_ascii_case(name));
    found.ok_or_else(|| {
        let names: Vec<_> = Kind::ALL.iter().map(spelled).collect();
        bad(name, &format!("one of: {}", names.join(", ")))
    })
}

fn bad(text: &str, expected: &str) -> Error {
    let words = format!("layer fault does not know '{text}'; expected {expected}");
    Error::note(Kind::Invalid, words)
}

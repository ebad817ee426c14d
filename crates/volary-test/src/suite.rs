//! One conformance suite for every volume.
//!
//! A [`Suite`] has a closure that makes a fresh, empty volume ([`Fresh`]); each
//! case gets one of its own. Cases are chosen by what the volume claims
//! ([`Caps`]): a claim brings the cases that hold it to its word, its absence
//! those that want the documented refusal. The order is fixed.
//!
//! A case that fails prints its name and the command that runs it alone.
//!
//! ```
//! use volary_test::Suite;
//! # use volary_core::Fs;
//! fn holds_to_its_word(make: fn() -> Fs) {
//!     Suite::new("mem", make).run();
//! }
//! ```
//!
//! | module | what |
//! |---|---|
//! | `fresh` | a volume that a case gets |
//! | `case` | what a case is given: that volume, and short words for what cases do |
//! | `spec` | a case's name, and when it applies |

mod case;
mod fresh;
mod spec;

pub use case::{Case, Item};
pub use fresh::{Attacher, Checker, Fresh, Kept};
pub(crate) use spec::{CaseSpec, case_list};

use crate::cases;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use volary_core::{Caps, Fs};

/// The suite on one kind of volume.
pub struct Suite {
    name: String,
    make: Arc<dyn Fn() -> Fresh + Send + Sync>,
    left_out: Vec<(&'static str, &'static str)>,
    own_clock: bool,
}

/// How many cases did what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Held.
    pub passed: usize,
    /// Not for this volume, by its caps.
    pub not_for_it: usize,
    /// Left out by [`Suite::leave_out`].
    pub left_out: usize,
}

impl Suite {
    /// Returns the suite on what `make` makes.
    pub fn new<F: Into<Fresh>>(
        name: impl Into<String>,
        make: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            make: Arc::new(move || make().into()),
            left_out: Vec::new(),
            own_clock: false,
        }
    }

    /// Puts the volume under a layer that should not be noticed.
    #[must_use]
    pub fn under(self, layer_name: &str, layer: fn(Fs) -> Fs) -> Self {
        let make = self.make;
        Self {
            name: format!("{} under {layer_name}", self.name),
            make: Arc::new(move || make().under(layer)),
            ..self
        }
    }

    /// Leaves a case out, and says why each time that it does.
    #[must_use]
    pub fn leave_out(mut self, case: &'static str, why: &'static str) -> Self {
        assert!(
            cases::all().any(|c| c.name == case),
            "there is no case '{case}'"
        );
        self.left_out.push((case, why));
        self
    }

    /// Leaves cases out, each list for its reason.
    #[must_use]
    pub fn leave_out_all(self, lists: &[(&[&'static str], &'static str)]) -> Self {
        let all = lists
            .iter()
            .flat_map(|(cases, why)| cases.iter().map(move |case| (*case, *why)));
        all.fold(self, |suite, (case, why)| suite.leave_out(case, why))
    }

    /// For volumes that take the time from a clock of their own rather than
    /// from each call (through a mount, say): cases do not look at such times.
    #[must_use]
    pub fn own_clock(mut self) -> Self {
        self.own_clock = true;
        self
    }

    /// Runs the cases that fit the volume; with `VOLARY_CASE` set, only the
    /// one of that name.
    ///
    /// # Panics
    /// If a case fails, after all have run; the message lists them with the
    /// command that runs each alone.
    pub fn run(&self) -> Tally {
        let caps = (self.make)().fs.caps();
        let only = std::env::var("VOLARY_CASE").ok();
        let mut tally = Tally::default();
        let mut failed = Vec::new();
        for spec in cases::all() {
            if only.as_ref().is_some_and(|name| name != spec.name) {
                continue;
            }
            if !applies(spec, &caps) {
                tally.not_for_it += 1;
            } else if let Some((_, why)) = self.left_out.iter().find(|l| l.0 == spec.name) {
                println!("{}: left out: {}: {why}", self.name, spec.name);
                tally.left_out += 1;
            } else if self.run_case(spec) {
                tally.passed += 1;
            } else {
                println!("{}: FAILED: {}", self.name, spec.name);
                failed.push(spec.name);
            }
        }
        println!("{}: {tally:?}", self.name);
        assert!(failed.is_empty(), "{}", self.complain(&failed));
        tally
    }

    fn run_case(&self, spec: &CaseSpec) -> bool {
        catch_unwind(AssertUnwindSafe(|| {
            let mut fresh = (self.make)();
            let check = fresh.check.take();
            let case = Case::new(fresh, self.own_clock);
            (spec.run)(&case);
            case.end();
            if let Some(check) = check {
                check().expect("the check of the detached volume");
            }
        }))
        .is_ok()
    }

    fn complain(&self, failed: &[&str]) -> String {
        let mut text = format!(
            "{}: {} cases failed; to run one:\n",
            self.name,
            failed.len()
        );
        for name in failed {
            text += &replay_command("VOLARY_CASE", name);
            text.push('\n');
        }
        text
    }
}

fn applies(spec: &CaseSpec, caps: &Caps) -> bool {
    caps.has(spec.with) && caps.bits & spec.without == 0
}

/// Returns the command that runs the test that this thread is in again, with the
/// environment variable `key` set.
pub fn replay_command(key: &str, value: &str) -> String {
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_else(|_| "volary-test".into());
    let thread = std::thread::current();
    let test = thread.name().filter(|n| *n != "main").unwrap_or("");
    format!("{key}={value} cargo test -p {package} {test} -- --nocapture")
}

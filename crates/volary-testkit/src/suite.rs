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
//! use volary_testkit::Suite;
//! # use volary_core::Fs;
//! fn holds_to_its_word(make: fn() -> Fs) {
//!     Suite::new("mem", make).run();
//! }
//! ```

mod case;

pub use case::{Case, Item};

use crate::cases;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use volary_core::{Caps, Fs};

/// A volume made for one case, and what can be done with it from outside.
pub struct Fresh {
    pub(crate) fs: Fs,
    pub(crate) reattach: Option<Attacher>,
    pub(crate) read_only: Option<Attacher>,
    pub(crate) check: Option<Checker>,
    pub(crate) keep: Vec<Kept>,
}

/// Something that is only kept alive.
pub(crate) type Kept = Box<dyn Any + Send + Sync>;

/// Looks at the volume once it is detached; words for what is wrong.
pub(crate) type Checker = Box<dyn Fn() -> Result<(), String>>;

/// Attaches the volume once more.
pub(crate) type Attacher = Box<dyn Fn() -> Fs + Send + Sync>;

impl Fresh {
    /// A volume that takes changes, unless it says otherwise, and is empty.
    pub fn new(fs: Fs) -> Self {
        Self {
            fs,
            reattach: None,
            read_only: None,
            check: None,
            keep: Vec::new(),
        }
    }

    /// With a way to attach the volume again after it was detached.
    #[must_use]
    pub fn reattach(mut self, attach: impl Fn() -> Fs + Send + Sync + 'static) -> Self {
        self.reattach = Some(Box::new(attach));
        self
    }

    /// With a way to attach it again so that it refuses changes.
    #[must_use]
    pub fn read_only(mut self, attach: impl Fn() -> Fs + Send + Sync + 'static) -> Self {
        self.read_only = Some(Box::new(attach));
        self
    }

    /// With something to check after the last detach: that another program
    /// finds nothing wrong with the image, say.
    #[must_use]
    pub fn checked_by(mut self, check: impl Fn() -> Result<(), String> + 'static) -> Self {
        self.check = Some(Box::new(check));
        self
    }

    /// Keeps something alive for as long as the volume: a temporary directory,
    /// a mount.
    #[must_use]
    pub fn keeping(mut self, thing: impl Any + Send + Sync) -> Self {
        self.keep.push(Box::new(thing));
        self
    }

    /// The volume under a layer.
    #[must_use]
    pub fn under(mut self, layer: fn(Fs) -> Fs) -> Self {
        self.fs = layer(self.fs);
        self.reattach = self.reattach.map(|f| wrap(f, layer));
        self.read_only = self.read_only.map(|f| wrap(f, layer));
        self
    }
}

fn wrap(attach: Attacher, layer: fn(Fs) -> Fs) -> Attacher {
    Box::new(move || layer(attach()))
}

impl From<Fs> for Fresh {
    fn from(fs: Fs) -> Self {
        Self::new(fs)
    }
}

/// A named case and when it applies.
#[derive(Clone, Copy)]
pub(crate) struct CaseSpec {
    pub(crate) name: &'static str,
    pub(crate) with: u32,
    pub(crate) without: u32,
    pub(crate) run: fn(&Case),
}

/// A list of [`CaseSpec`]s: `name with A | B without C;`, where the words are
/// constants of [`Caps`].
macro_rules! case_list {
    ($( $name:ident $(with $($with:ident)|+)? $(without $($without:ident)|+)? ; )*) => {
        pub(crate) const CASES: &[$crate::suite::CaseSpec] = &[$(
            $crate::suite::CaseSpec {
                name: stringify!($name),
                with: 0 $($(| volary_core::Caps::$with)+)?,
                without: 0 $($(| volary_core::Caps::$without)+)?,
                run: $name,
            }
        ),*];
    };
}
pub(crate) use case_list;

/// The suite on one kind of volume.
pub struct Suite {
    name: String,
    make: Box<dyn Fn() -> Fresh>,
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
    /// The suite on what `make` makes.
    pub fn new<F: Into<Fresh>>(name: impl Into<String>, make: impl Fn() -> F + 'static) -> Self {
        Self {
            name: name.into(),
            make: Box::new(move || make().into()),
            left_out: Vec::new(),
            own_clock: false,
        }
    }

    /// The same under a layer that should not be noticed.
    #[must_use]
    pub fn under(self, layer_name: &str, layer: fn(Fs) -> Fs) -> Self {
        let make = self.make;
        Self {
            name: format!("{} under {layer_name}", self.name),
            make: Box::new(move || make().under(layer)),
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

/// The command that runs the test that this thread is in again, with the
/// environment variable `key` set.
pub fn replay_command(key: &str, value: &str) -> String {
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_else(|_| "volary-testkit".into());
    let thread = std::thread::current();
    let test = thread.name().filter(|n| *n != "main").unwrap_or("");
    format!("{key}={value} cargo test -p {package} {test} -- --nocapture")
}

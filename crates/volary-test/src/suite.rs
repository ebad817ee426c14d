//! One conformance suite for every volume.
//!
//! A [`Suite`] has a closure that makes a fresh volume ([`Fresh`]) for each case. The cases depend
//! on what the volume claims ([`Caps`]): some test a claim, and others expect the documented
//! refusal in its absence. The order of cases is fixed.
//!
//! | suite | the volume | cases |
//! |---|---|---|
//! | [`Suite::new`] | empty, allows changes | create nodes and check them |
//! | [`Suite::reading`] | has the content of a [`Manifest`] | read it in every way |
//! | [`Suite::coherent`] | has any content | read it in every way: all must agree |
//!
//! A case that cannot run on the volume is *skipped*, with the reason; it never counts as passed.
//! Each case has a time limit, so that one that hangs fails and is named.
//!
//! ```
//! use volary_test::Suite;
//! # use volary_core::Fs;
//! fn holds_to_its_word(make: fn() -> Fs) {
//!     Suite::new("mem", make).run();
//! }
//! ```
//!
//! | module | content |
//! |---|---|
//! | `fresh` | the volume for a case, and how to attach it again |
//! | `case` | the argument of a case: its volume, and short methods for common operations |
//! | `spec` | the name of a case, and the volumes that it is for |
//! | `limit` | runs a case in a thread of its own with a time limit |
//! | `threads` | the threads of a case, whose panics are the case's |
//! | `record`, `contract`, `report` | the parts of a failure's report |

mod case;
mod contract;
mod fresh;
mod limit;
mod record;
mod report;
mod spec;
mod threads;

pub(crate) use case::as_kept;
pub use case::{Case, Item};
pub use fresh::{Attacher, Checker, Fresh, Kept};
pub use report::{Failure, Report};
pub(crate) use spec::{CaseSpec, case_list};

pub(crate) use limit::within;
pub(crate) use threads::scope;

use crate::cases;
use crate::manifest::Manifest;
use record::Record;
use std::sync::Arc;
use std::time::Duration;
use volary_core::{Caps, Fs};

/// The time limit of a case, unless [`Suite::limit`] sets another.
const LIMIT: Duration = Duration::from_secs(60);

/// The suite for one kind of volume.
pub struct Suite {
    name: String,
    make: Arc<dyn Fn() -> Fresh + Send + Sync>,
    cases: Vec<CaseSpec>,
    manifest: Option<Arc<Manifest>>,
    left_out: Vec<(&'static str, &'static str)>,
    own_clock: bool,
    limit: Duration,
    stops: bool,
    only: Option<String>,
    alone: Option<fn(&str) -> String>,
    progress: Option<Box<dyn Fn(&'static str)>>,
}

impl Suite {
    /// Returns the suite for the empty volumes that `make` makes.
    pub fn new<F: Into<Fresh>>(
        name: impl Into<String>,
        make: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            make: Arc::new(move || make().into()),
            cases: cases::all().copied().collect(),
            manifest: None,
            left_out: Vec::new(),
            own_clock: false,
            limit: LIMIT,
            stops: false,
            only: None,
            alone: None,
            progress: None,
        }
    }

    /// Returns the suite for volumes that are only read, and have the content of `manifest`.
    pub fn reading<F: Into<Fresh>>(
        name: impl Into<String>,
        make: impl Fn() -> F + Send + Sync + 'static,
        manifest: &Manifest,
    ) -> Self {
        Self {
            cases: cases::reading::all().copied().collect(),
            manifest: Some(Arc::new(manifest.clone())),
            own_clock: true,
            ..Self::new(name, make)
        }
    }

    /// Returns the suite for volumes with any content that are only read. The volume is first read
    /// in the simplest way; all other ways to read it must then agree.
    ///
    /// # Errors
    /// A description of what already fails in the simplest way, or that it takes too long.
    pub fn coherent<F: Into<Fresh>>(
        name: impl Into<String>,
        make: impl Fn() -> F + Send + Sync + 'static,
    ) -> Result<Self, String> {
        let make = Arc::new(make);
        let manifest = Self::held(Arc::clone(&make))?;
        Ok(Self::reading(name, move || make(), &manifest))
    }

    /// Makes a manifest of a volume by reading it in the simplest way.
    ///
    /// # Errors
    /// A description of the first error, or that the volume does not answer in time.
    pub(crate) fn held<F: Into<Fresh>>(
        make: Arc<impl Fn() -> F + Send + Sync + 'static>,
    ) -> Result<Manifest, String> {
        limit::within(LIMIT * 10, move || {
            let fresh: Fresh = make().into();
            let manifest = Manifest::of_volume(&fresh.fs);
            crate::manifest::as_root(|cx| fresh.fs.detach(cx)).map_err(|e| e.to_string())?;
            manifest
        })?
    }

    /// Puts a layer over the volume that must be transparent.
    #[must_use]
    pub fn under(self, layer_name: &str, layer: fn(Fs) -> Fs) -> Self {
        let make = self.make;
        Self {
            name: format!("{} under {layer_name}", self.name),
            make: Arc::new(move || make().under(layer)),
            ..self
        }
    }

    /// Leaves out a case. The report states the reason.
    ///
    /// # Panics
    /// If no suite has a case of this name.
    #[must_use]
    pub fn leave_out(mut self, case: &'static str, why: &'static str) -> Self {
        let mut all = cases::all().chain(cases::reading::all());
        assert!(all.any(|c| c.name == case), "there is no case '{case}'");
        self.left_out.push((case, why));
        self
    }

    /// Leaves out lists of cases, each with its reason.
    #[must_use]
    pub fn leave_out_all(self, lists: &[(&[&'static str], &'static str)]) -> Self {
        let all = lists
            .iter()
            .flat_map(|(cases, why)| cases.iter().map(move |case| (*case, *why)));
        all.fold(self, |suite, (case, why)| suite.leave_out(case, why))
    }

    /// For volumes whose timestamps come from a clock of their own, e.g. through a mount, and not
    /// from the time in each call. Cases then do not check such timestamps.
    #[must_use]
    pub fn own_clock(mut self) -> Self {
        self.own_clock = true;
        self
    }

    /// Sets the time limit of each case, by default a minute.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Ends the run after the first case that fails.
    #[must_use]
    pub fn stop_at_failure(mut self) -> Self {
        self.stops = true;
        self
    }

    /// Runs only the case of this name. The environment variable `VOLARY_CASE` does the same.
    #[must_use]
    pub fn only(mut self, case: impl Into<String>) -> Self {
        self.only = Some(case.into());
        self
    }

    /// Calls `tell` with the name of each case as it begins.
    #[must_use]
    pub fn progress(mut self, tell: impl Fn(&'static str) + 'static) -> Self {
        self.progress = Some(Box::new(tell));
        self
    }

    /// Sets the command that runs one case alone, if it is not `cargo test`.
    #[must_use]
    pub fn alone(mut self, command: fn(&str) -> String) -> Self {
        self.alone = Some(command);
        self
    }

    /// Runs the cases that fit the volume, and prints and returns the [`Report`].
    ///
    /// # Panics
    /// If a case fails, after all have run. The report describes each failure, the message counts
    /// them.
    pub fn run(&self) -> Report {
        let report = self.report();
        println!("{report}");
        assert!(report.held(), "{}", report.summary());
        report
    }

    /// Runs the cases that fit the volume. If `VOLARY_CASE` is set, runs only the one of that name.
    pub fn report(&self) -> Report {
        let mut report = Report {
            name: self.name.clone(),
            ..Report::default()
        };
        let caps = match self.caps() {
            Ok(caps) => caps,
            Err(what) => {
                report
                    .failed
                    .push(self.failure(&MAKE, what, &Record::default()));
                return report;
            }
        };
        let only = self
            .only
            .clone()
            .or_else(|| std::env::var("VOLARY_CASE").ok());
        for spec in &self.cases {
            if self.stops && !report.held() {
                break;
            }
            if only.as_ref().is_none_or(|name| name == spec.name) {
                self.add(&mut report, spec, &caps);
            }
        }
        report
    }

    fn caps(&self) -> Result<Caps, String> {
        let make = Arc::clone(&self.make);
        limit::within(self.limit, move || make().fs.caps())
    }

    fn add(&self, report: &mut Report, spec: &CaseSpec, caps: &Caps) {
        if let Some((_, why)) = self.left_out.iter().find(|l| l.0 == spec.name) {
            report.left_out.push((spec.name, (*why).to_owned()));
            return;
        }
        if let Some(why) = spec.unfit(caps) {
            report.skipped.push((spec.name, why));
            return;
        }
        if let Some(tell) = &self.progress {
            tell(spec.name);
        }
        let record = Arc::new(Record::default());
        match self.run_case(spec, &record) {
            Ok(None) => report.passed.push(spec.name),
            Ok(Some(why)) => report.skipped.push((spec.name, why)),
            Err(what) => report.failed.push(self.failure(spec, what, &record)),
        }
    }

    /// Runs a case. Returns the reason if the case could not run to its end.
    fn run_case(&self, spec: &CaseSpec, record: &Arc<Record>) -> Result<Option<String>, String> {
        let (make, record) = (Arc::clone(&self.make), Arc::clone(record));
        let (run, own_clock, manifest) = (spec.run, self.own_clock, self.manifest.clone());
        limit::within(self.limit, move || {
            let mut fresh = make();
            let check = fresh.check.take();
            let case = Case::new(fresh, own_clock, &record, manifest);
            run(&case);
            let skipped = case.end();
            if let Some(check) = check {
                check().expect("the check of the detached volume");
            }
            skipped
        })
    }

    fn failure(&self, spec: &CaseSpec, what: String, record: &Record) -> Failure {
        let call = record.last_of(spec.about).or(spec.about.first().copied());
        let alone = match self.alone {
            Some(command) => command(spec.name),
            None => replay_command("VOLARY_CASE", spec.name),
        };
        Failure {
            case: spec.name,
            what,
            contract: call.map_or("", contract::of),
            operations: record.text(),
            alone,
        }
    }
}

/// Stands for a case in the report if no volume can be made.
const MAKE: CaseSpec = CaseSpec {
    name: "a_volume_can_be_made",
    with: 0,
    without: 0,
    about: &[],
    run: |_| {},
};

/// Returns the command that repeats the test of this thread with the environment variable `key`
/// set.
pub fn replay_command(key: &str, value: &str) -> String {
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_else(|_| "volary-test".into());
    let thread = std::thread::current();
    let test = thread.name().filter(|n| *n != "main").unwrap_or("");
    format!("{key}={value} cargo test -p {package} {test} -- --nocapture")
}

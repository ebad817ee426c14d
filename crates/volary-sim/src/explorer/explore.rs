//! The explorer: recovers and judges every disk that a power cut may leave of a script.

use crate::disks::cow::Cow;
use crate::disks::disk::{Disk, Sector};
use crate::disks::trace::{Event, Moment, Trace, Traced};
use crate::explorer::cut::{Bounds, Choice, CrashPoint, choices, crash_points};
use crate::explorer::lazy::{Lazy, Odometer};
use crate::explorer::subject::{Recovered, Subject};
use crate::explorer::traces::Traces;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The most outcomes that are remembered.
const KNOWN_MAX: usize = 250_000;

/// With this many disks of a crash point, a common image for them pays off.
const MANY: usize = 16;

/// One in this many looks with a known outcome is repeated, as a check.
const LOOK_AGAIN: u64 = 64;

/// How thorough the exploration is.
#[derive(Clone, Copy, Debug)]
pub struct Depth {
    /// The choices to try at each crash point.
    pub bounds: Bounds,
    /// How many levels of cuts of recovery itself are tried.
    pub nested: usize,
    /// The choices to try at each crash point of a recovery.
    pub nested_bounds: Bounds,
    /// Recovery is cut again in one of this many states, chosen by their hashes.
    pub nested_each: u64,
    /// Whether flushes lie. Then nothing is promised, but recovery must not panic, and must report
    /// damage.
    pub lies: bool,
}

impl Default for Depth {
    fn default() -> Self {
        Self {
            bounds: Bounds {
                eager: 10,
                random: 256,
                garbage: false,
                seed: 0,
            },
            nested: 0,
            nested_bounds: Bounds {
                eager: 3,
                random: 0,
                garbage: false,
                seed: 0,
            },
            nested_each: 1,
            lies: false,
        }
    }
}

/// How much was explored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Scripts.
    pub scripts: u64,
    /// States: pairs of a disk and a moment, each counted once per script.
    pub states: u64,
    /// Disks that were recovered, each counted once.
    pub recoveries: u64,
    /// The number of recoveries that were run, first and second ones. The others read only sectors
    /// whose outcome was known.
    pub runs: u64,
    /// The number of looks that were run. The outcome of the others was known likewise.
    pub looks: u64,
    /// Disks left by cuts of recoveries.
    pub nested: u64,
}

impl Tally {
    /// Adds another.
    pub fn add(&mut self, other: &Self) {
        self.scripts += other.scripts;
        self.states += other.states;
        self.recoveries += other.recoveries;
        self.runs += other.runs;
        self.looks += other.looks;
        self.nested += other.nested;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} scripts, {} states, {} disks recovered ({} recoveries and {} looks run), \
             {} cuts of recoveries",
            self.scripts, self.states, self.recoveries, self.runs, self.looks, self.nested
        )
    }
}

/// One power cut: the event of the trace, and the fate of the sectors in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The event's number.
    pub event: usize,
    /// The fate of the sectors in flight.
    pub choice: Choice,
}

/// A state in which something is wrong.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The subject's name.
    pub subject: String,
    /// The script.
    pub script: String,
    /// The cut of the script, then those of recoveries.
    pub cuts: Vec<Cut>,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            subject,
            script,
            what,
            ..
        } = self;
        write!(f, "{what}\nvolary torture replay {subject} '{script}'")?;
        for (i, cut) in self.cuts.iter().enumerate() {
            let flag = if i == 0 { "cut" } else { "then" };
            write!(f, " --{flag} {}:{}", cut.event, cut.choice)?;
        }
        Ok(())
    }
}

/// The result of a recovery.
struct Came {
    mended: Result<Vec<&'static str>, String>,
    /// The sectors that it wrote, with their last content.
    left: BTreeMap<u64, Sector>,
}

impl Came {
    fn new(mended: Result<Vec<&'static str>, String>, trace: &Trace) -> Self {
        let writes = trace.events.iter().filter_map(|event| match event {
            Event::Write(sectors) => Some(sectors),
            _ => None,
        });
        let left = writes.flatten().cloned().collect();
        Self { mended, left }
    }

    /// Returns the disk after the recovery.
    fn on(&self, disk: &Disk) -> Disk {
        let mut after = disk.clone();
        for (number, content) in &self.left {
            after.put(*number, content.clone());
        }
        after
    }
}

/// The result of a look.
type Looked<F> = Result<Arc<F>, String>;

/// Judgements that found nothing wrong. The judged result is kept, so that no other can get its
/// address.
type Judged<F> = HashMap<(*const F, Vec<&'static str>, Moment), Arc<F>>;

/// The outcome of recovering a disk.
struct Outcome<F> {
    found: Result<Recovered<F>, String>,
    /// The outcomes of cuts of this recovery.
    nested: Vec<(Cut, Arc<Self>)>,
}

/// Explores scripts of one subject. Outcomes are remembered by disk, for all scripts.
pub struct Explorer<'a, S: Subject> {
    subject: &'a S,
    depth: Depth,
    disk: Disk,
    aside: Range<u64>,
    known: HashMap<(u64, usize), Arc<Outcome<S::Found>>>,
    recoveries: Traces<Arc<Came>>,
    looks: Traces<Looked<S::Found>>,
    /// The judgements for the current script.
    judged: Judged<S::Found>,
    tally: Tally,
}

impl<'a, S: Subject> Explorer<'a, S> {
    /// Makes an explorer, and the disk on which scripts begin.
    ///
    /// # Errors
    /// Those of making the disk, in words.
    pub fn new(subject: &'a S, depth: Depth) -> Result<Self, String> {
        let disk = caught(|| subject.make())?;
        Ok(Self {
            subject,
            depth,
            aside: subject.aside(&disk),
            disk,
            known: HashMap::new(),
            recoveries: Traces::default(),
            looks: Traces::default(),
            judged: Judged::new(),
            tally: Tally::default(),
        })
    }

    /// Returns how much was explored so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    fn failure(&self, script: &S::Script, cuts: Vec<Cut>, what: String) -> Box<Failure> {
        Box::new(Failure {
            subject: self.subject.name().to_owned(),
            script: script.to_string(),
            cuts,
            what,
        })
    }

    /// Runs a script and records it.
    ///
    /// # Errors
    /// A failure without any cut.
    pub fn record(&self, script: &S::Script) -> Result<(Trace, S::History), Box<Failure>> {
        let dev = Traced::new(self.disk.clone());
        let dev = Arc::new(if self.subject.keeping() {
            dev.keeping()
        } else {
            dev
        });
        let history = caught(|| self.subject.play(script, &dev));
        let history = history.map_err(|what| self.failure(script, Vec::new(), what))?;
        Ok((dev.take(), history))
    }

    /// Explores every state within the bounds.
    ///
    /// # Errors
    /// The first failure.
    pub fn explore(&mut self, script: &S::Script) -> Result<(), Box<Failure>> {
        let (trace, history) = self.record(script)?;
        self.tally.scripts += 1;
        self.judged.clear();
        let mut seen = HashSet::new();
        for mut point in crash_points(&trace, self.depth.lies) {
            let choices = choices(point.in_flight.len(), &self.depth.bounds);
            if choices.len() >= MANY {
                point.durable = point.durable.folded();
            }
            for choice in choices {
                let disk = point.disk_after(&choice);
                if !seen.insert((disk.hash(), point.moment)) {
                    continue;
                }
                let event = point.event;
                let outcome = self.outcome(&disk, self.depth.nested);
                self.tally.states += 1;
                if self.depth.lies {
                    self.no_panic(&outcome)
                } else {
                    self.judge(&outcome, &history, point.moment)
                }
                .map_err(|(mut cuts, what)| {
                    cuts.insert(0, Cut { event, choice });
                    self.failure(script, cuts, what)
                })?;
            }
        }
        Ok(())
    }

    /// Explores every state that recovery and a look can tell apart: a choice is made only when its
    /// sector is read. Tries at most `most` states at each crash point.
    ///
    /// # Errors
    /// The first failure.
    pub fn explore_lazily(&mut self, script: &S::Script, most: u64) -> Result<(), Box<Failure>> {
        let (trace, history) = self.record(script)?;
        self.tally.scripts += 1;
        for point in crash_points(&trace, false) {
            let mut odometer = Odometer::default();
            for _ in 0..most {
                let (next, result) = self.lazily(&point, odometer, &history);
                let event = point.event;
                result.map_err(|(choice, what)| {
                    self.failure(script, vec![Cut { event, choice }], what)
                })?;
                odometer = next;
                if !odometer.turn() {
                    break;
                }
            }
        }
        Ok(())
    }

    fn lazily(
        &mut self,
        point: &CrashPoint,
        odometer: Odometer,
        history: &S::History,
    ) -> (Odometer, Result<(), (Choice, String)>) {
        let dev = Arc::new(Lazy::new(point, odometer));
        self.tally.states += 1;
        self.tally.recoveries += 1;
        let result = caught(|| {
            let mended = self.subject.recover(dev.clone())?;
            let found = self.subject.look(dev.clone())?;
            let found = Recovered::new(mended, found);
            self.subject.judge(&found, history, point.moment)
        });
        let (odometer, choice) = dev.chosen();
        (odometer, result.map_err(|what| (choice, what)))
    }

    /// Tries one state: the first cut, and the given cuts of its recoveries.
    ///
    /// # Errors
    /// The failure in that state.
    pub fn replay(&mut self, script: &S::Script, cuts: &[Cut]) -> Result<(), Box<Failure>> {
        let (mut trace, history) = self.record(script)?;
        let mut moment = None;
        for (i, cut) in cuts.iter().enumerate() {
            let lies = self.depth.lies && i == 0;
            let point = crash_points(&trace, lies)
                .into_iter()
                .find(|f| f.event == cut.event);
            let point = point.ok_or_else(|| {
                let what = format!("there is no cut at event {}", cut.event);
                self.failure(script, cuts.to_vec(), what)
            })?;
            let disk = point.disk_after(&cut.choice);
            moment.get_or_insert(point.moment);
            trace = self.recovery(&disk).0;
        }
        self.judged.clear();
        let outcome = self.outcome(&trace.disk, 0);
        let judged = match moment {
            Some(_) if self.depth.lies => self.no_panic(&outcome),
            Some(moment) => self.judge(&outcome, &history, moment),
            None => Ok(()),
        };
        judged.map_err(|(_, what)| self.failure(script, cuts.to_vec(), what))
    }

    fn judge(
        &mut self,
        outcome: &Outcome<S::Found>,
        history: &S::History,
        at: Moment,
    ) -> Result<(), (Vec<Cut>, String)> {
        match &outcome.found {
            Err(what) => return Err((Vec::new(), what.clone())),
            Ok(found) => {
                let key = (Arc::as_ptr(&found.found), found.mended.clone(), at);
                if !self.judged.contains_key(&key) {
                    caught(|| self.subject.judge(found, history, at))
                        .map_err(|what| (Vec::new(), what))?;
                    self.judged.insert(key, found.found.clone());
                }
            }
        }
        for (cut, then) in &outcome.nested {
            self.judge(then, history, at).map_err(|(mut cuts, what)| {
                cuts.insert(0, cut.clone());
                (cuts, what)
            })?;
        }
        Ok(())
    }

    fn no_panic(&self, outcome: &Outcome<S::Found>) -> Result<(), (Vec<Cut>, String)> {
        match &outcome.found {
            Err(what) if what.starts_with(PANIC) => Err((Vec::new(), what.clone())),
            _ => Ok(()),
        }
    }

    /// Recovers a disk and records it. Returns the trace, the sectors read, and the result.
    fn recovery(&self, disk: &Disk) -> (Trace, Vec<Range<u64>>, Came) {
        let dev = Arc::new(Traced::new(disk.clone()).with_reads());
        let result = caught(|| self.subject.recover(dev.clone()));
        let mut trace = dev.take();
        let reads = trace.take_reads();
        let came = Came::new(result, &trace);
        (trace, reads, came)
    }

    /// Returns the result of recovering a disk, from memory if it is known.
    fn came(&mut self, disk: &Disk) -> Arc<Came> {
        let known = self
            .recoveries
            .find(|sectors| disk.hash_of(sectors.clone()));
        match known {
            Some(known) => known.clone(),
            None => self.came_anew(disk).1,
        }
    }

    /// Recovers a disk, even if the result is known. Returns the trace as well.
    fn came_anew(&mut self, disk: &Disk) -> (Trace, Arc<Came>) {
        self.tally.runs += 1;
        let (trace, reads, came) = self.recovery(disk);
        let came = Arc::new(came);
        let content = |sectors: &Range<u64>| disk.hash_of(sectors.clone());
        if self.recoveries.find(content).is_some() {
            return (trace, came);
        }
        let noted = self.recoveries.note(&reads, content, came.clone());
        let came = match noted {
            Ok(()) => came,
            Err(what) => Arc::new(Came {
                mended: Err(what),
                left: BTreeMap::new(),
            }),
        };
        (trace, came)
    }

    fn outcome(&mut self, disk: &Disk, nested: usize) -> Arc<Outcome<S::Found>> {
        let key = (disk.hash(), nested);
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        self.tally.recoveries += 1;
        let cut_again = nested > 0 && disk.hash().is_multiple_of(self.depth.nested_each.max(1));
        let (trace, came) = match cut_again {
            true => {
                let (trace, came) = self.came_anew(disk);
                (Some(trace), came)
            }
            false => (None, self.came(disk)),
        };
        let found = came.mended.clone().and_then(|mended| {
            let found = self.settled(&came.on(disk))?;
            Ok(Recovered { mended, found })
        });
        let nested = match trace {
            Some(trace) if found.is_ok() => self.cut_again(&trace, nested - 1),
            _ => Vec::new(),
        };
        let outcome = Arc::new(Outcome { found, nested });
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        self.known.insert(key, outcome.clone());
        outcome
    }

    /// Looks at a recovered disk.
    fn settled(&mut self, after: &Disk) -> Looked<S::Found> {
        if self.subject.settles() {
            let again = self.came(after);
            if let Err(what) = &again.mended {
                return Err(format!("a second recovery: {what}"));
            }
            if !again.left.is_empty() {
                return Err("a second recovery writes".into());
            }
        }
        let aside = self.aside.clone();
        let content = |sectors: &Range<u64>| {
            let before = sectors.start..sectors.end.min(aside.start).max(sectors.start);
            let behind = sectors.start.max(aside.end).min(sectors.end)..sectors.end;
            after.hash_of(before) ^ after.hash_of(behind)
        };
        let known = self.looks.find(content).cloned();
        if let Some(known) = &known
            && !after.hash().is_multiple_of(LOOK_AGAIN)
        {
            return known.clone();
        }
        self.tally.looks += 1;
        let dev = Arc::new(Cow::new(after.clone()));
        let looked = caught(|| self.subject.look(dev.clone())).map(Arc::new);
        match known {
            Some(known) if known == looked => known,
            Some(_) => Err("what reads the same is looked at otherwise".into()),
            None => self
                .looks
                .note(&dev.reads(), content, looked.clone())
                .and(looked),
        }
    }

    fn cut_again(&mut self, trace: &Trace, nested: usize) -> Vec<(Cut, Arc<Outcome<S::Found>>)> {
        let mut all = Vec::new();
        let mut seen = HashSet::new();
        for point in crash_points(trace, false) {
            for choice in choices(point.in_flight.len(), &self.depth.nested_bounds) {
                let disk = point.disk_after(&choice);
                if !seen.insert(disk.hash()) {
                    continue;
                }
                self.tally.nested += 1;
                let event = point.event;
                all.push((Cut { event, choice }, self.outcome(&disk, nested)));
            }
        }
        all
    }
}

/// The prefix of an error that was a panic.
const PANIC: &str = "a panic: ";

/// Returns the result of `work`; a panic becomes an error with its message.
pub(crate) fn caught<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<String>().map(String::as_str);
        let words = words.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("{PANIC}{}", words.unwrap_or("without words")))
    })
}

//! Runs a bulk read: part by part, the list is read and delivered.

use crate::delivering::fetch::Fetch;
use crate::delivering::outlet::{Job, Outlet};
use crate::delivering::{large, ordinary};
use crate::interface::delivery::{Consumer, File, Part as Told, Way};
use crate::interface::options::{Cleaning, Method, Options, Shares};
use crate::interface::source::Source;
use crate::interface::summary::{Summary, Tally};
use crate::listing::list::List;
use crate::listing::plan::first_fit;
use crate::state::budget::{Budget, Meter};
use crate::state::part::{Part, Run, Tuned};
use crate::state::probe;
use crate::sweeps::sweep::Sweep;
use crate::sweeps::{ahead, shuffle};
use crate::walk::Walk;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::sync_channel;
use volary_core::{Error, Kind, Result};

/// A bulk read by DAFT's method: delivers all files below the places of some sources.
#[derive(Debug)]
pub struct BulkFileRead {
    options: Options,
}

impl BulkFileRead {
    /// Returns a run with these options.
    ///
    /// # Errors
    /// `Invalid` for less memory than [`Options::MEMORY_MIN`]; for a number of workers or requests
    /// that is 0 or above [`Options::THREADS_MAX`]; for a shuffle window of 0 bytes.
    pub fn new(options: Options) -> Result<Self> {
        let refuse = |words: &str| Err(Error::note(Kind::Invalid, words.to_string()));
        let threads = 1..=Options::THREADS_MAX;
        if options.memory < Options::MEMORY_MIN {
            return refuse("less memory than 1M");
        }
        if !threads.contains(&options.workers)
            || options.depth.is_some_and(|d| !threads.contains(&d))
        {
            return refuse("workers and requests at a time are 1 to 64");
        }
        if options.shuffle.is_some_and(|s| s.window == 0) {
            return refuse("a window of no bytes");
        }
        Ok(Self { options })
    }

    /// Delivers everything to `consumer`, and returns when all deliveries have ended. Errors of
    /// files are delivered and counted.
    pub fn run(&self, sources: &[Source], consumer: &dyn Consumer) -> Summary {
        let now = || self.options.clock.as_ref().map(|clock| clock());
        let began = now();
        let shares = Shares::of(&self.options);
        let meter = Arc::new(Meter::default());
        let run = Run {
            options: &self.options,
            shares,
            consumer,
            reads: Budget::keeping(shares.reads, &meter),
            assembly: Budget::new(shares.assembly, &meter),
            scratch: Budget::new(shares.scratch, &meter),
            meter: meter.clone(),
            tally: Tally::default(),
            stop: AtomicBool::new(false),
        };
        for (number, source) in sources.iter().enumerate() {
            if run.source(number, source).is_break() {
                run.tally.add(|sum| sum.is_stopped = true);
                break;
            }
        }
        let mut summary = run.tally.into_summary();
        summary.peak = meter.peak();
        summary.elapsed = began.and_then(|began| now()?.checked_sub(began));
        summary
    }
}

/// The most bytes of files in a part that is read while the next one is listed.
const PART: u64 = 64 << 20;
/// The most bytes of files in the first part, before which nothing is read. Also of all parts of a
/// source without a device. Larger ones would not improve the order, but make walk and reads wait
/// for each other.
const FIRST: u64 = 16 << 20;

impl Run<'_> {
    /// Walks on another thread. While one part is read, the next is listed, unless that would make
    /// the device seek back and forth.
    fn source(&self, number: usize, source: &Source) -> ControlFlow<()> {
        let (ask, asked) = sync_channel::<List>(1);
        let (give, lists) = sync_channel(0);
        // This thread drops its ends of the channels when it ends, and so the other thread ends
        // too.
        std::thread::scope(move |scope| {
            scope.spawn(move || {
                let mut walk = Walk::new(self, number, source);
                for mut list in asked {
                    let before = list.bytes();
                    let walked = walk.fill(&mut list);
                    list.sort(self.options.method == Method::Vanilla);
                    self.meter.add(list.bytes() - before);
                    if walked.is_break() || give.send(list).is_err() {
                        return;
                    }
                }
            });
            // Two lists exist at a time.
            let half = self.shares.list / 2;
            // If sending fails, the walk has ended, and `recv` says so.
            let _ = ask.send(List::new(half, FIRST));
            let mut tuned = None;
            let part = source.device.as_ref().map_or(FIRST, |_| PART);
            while let Ok(mut list) = lists.recv() {
                if list.is_empty() {
                    break;
                }
                let tuned = *tuned.get_or_insert_with(|| probe::tuned(self, source, &list));
                // Parts of scattered files would each sweep over the whole disk.
                let is_alone = tuned.moves || list.is_scattered();
                if is_alone && list.widen(self.shares.list) {
                    let _ = ask.send(list);
                    continue;
                }
                if !is_alone {
                    let _ = ask.send(List::new(half, part));
                }
                self.part(number, source, &list, is_alone, tuned)?;
                drop(list);
                if is_alone {
                    let _ = ask.send(List::new(self.shares.list, u64::MAX));
                }
            }
            self.check()
        })
    }

    /// Delivers a listed part. `is_alone` is true if no other list exists meanwhile.
    fn part(
        &self,
        number: usize,
        source: &Source,
        list: &List,
        is_alone: bool,
        tuned: Tuned,
    ) -> ControlFlow<()> {
        let (bytes, files) = (list.bytes(), list.files.len() as u64);
        // Memory that the lists do not use goes to files that are being assembled.
        let lists = if is_alone {
            bytes
        } else {
            bytes + self.shares.list / 2
        };
        let left = self.shares.list.saturating_sub(lists);
        let reads = self.reads_of(source, list, tuned);
        self.reads.set_max(reads);
        let unread = self.shares.reads - reads;
        self.assembly.set_max(self.shares.assembly + left + unread);
        if files > 0 {
            self.tally.add(|sum| sum.parts += 1);
            self.consumer.found(files, list.content());
        }
        let part = Part {
            run: self,
            number,
            source,
            list,
            tuned,
        };
        let done = part.deliver();
        self.meter.sub(bytes);
        done
    }

    /// Returns how much of their share the reads of a part need. Consumers' threads, and files read
    /// through the session, use all of it.
    fn reads_of(&self, source: &Source, list: &List, tuned: Tuned) -> u64 {
        let device = source.device.as_deref();
        match device.filter(|_| self.options.workers == 1 && list.ordinary.is_empty()) {
            Some(device) => {
                ahead::most(device, tuned, self.shares.whole_max).min(self.shares.reads)
            }
            None => self.shares.reads,
        }
    }
}

impl Part<'_> {
    /// Delivers the whole part.
    fn deliver(&self) -> ControlFlow<()> {
        self.nodes()?;
        let outlet = Outlet::new(self);
        std::thread::scope(|scope| {
            if self.run.options.workers > 1 {
                for _ in 0..self.run.options.workers {
                    scope.spawn(|| outlet.work());
                }
            }
            let done = self.small(&outlet);
            outlet.close();
            done
        })?;
        // These are the files whose bytes could not be used. No thread adds to them any more.
        for (file, why) in outlet.into_again() {
            ordinary::deliver(self, file, why)?;
        }
        for (_, file) in &self.list.large {
            large::deliver(self, *file)?;
        }
        self.run.check()
    }

    /// Delivers nodes without content, and paths that failed.
    fn nodes(&self) -> ControlFlow<()> {
        for number in 0..self.list.nodes.len() {
            self.run.check()?;
            let Some(node) = self.list.nodes.get(number) else {
                continue;
            };
            self.run.tally.add(|sum| sum.nodes += 1);
            ordinary::tell(self, &node.view(self.number, Way::Direct), Told::Node)?;
        }
        for (path, e) in &self.list.failed {
            self.run.check()?;
            let view = File {
                source: self.number,
                path,
                attr: None,
                way: Way::Direct,
                data: None,
            };
            self.run.tally.add(|sum| sum.failed += 1);
            ordinary::tell(self, &view, Told::Failed(e))?;
        }
        ControlFlow::Continue(())
    }

    /// Delivers all files but large ones.
    fn small(&self, outlet: &Outlet<'_>) -> ControlFlow<()> {
        for file in &self.list.empty {
            outlet.give(Job::Empty(*file))?;
        }
        match self.run.options.shuffle {
            Some(how) => shuffle::deliver(self, how, outlet)?,
            None => self.sweeps(outlet)?,
        }
        if self.run.options.method != Method::Vanilla {
            return Fetch::new(self, &self.list.ordinary).run(outlet);
        }
        for (file, why) in &self.list.ordinary {
            outlet.give(Job::Ordinary(*file, *why))?;
        }
        ControlFlow::Continue(())
    }

    fn sweeps(&self, outlet: &Outlet<'_>) -> ControlFlow<()> {
        if self.list.pieces.is_empty() {
            return ControlFlow::Continue(());
        }
        if self.run.options.cleaning == Cleaning::OnDemand {
            return Sweep::new(self, &self.list.pieces).run(outlet);
        }
        let copied = |file| self.is_copied(file);
        let (of_file, count) = first_fit(self.list, self.run.assembly.max(), copied);
        for sweep in 0..count {
            let of_file = |file: u32| of_file.get(file as usize).map(|s| usize::from(*s));
            let pieces = self.list.pieces_if(|file| of_file(file) == Some(sweep));
            Sweep::new(self, &pieces).run(outlet)?;
        }
        ControlFlow::Continue(())
    }
}

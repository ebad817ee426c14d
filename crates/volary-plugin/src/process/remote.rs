//! [`Remote`]: the volume of a plug-in in a separate process. Starts workers, and limits how often.

use super::lane::{Broken, Lane, Told, Wait, now};
use super::running::{EPOCHS, Running};
use super::spec::Spec;
use super::zygote::Zygote;
use crate::abi::*;
use crate::news::{LINE_MAX, News};
use crate::wire::{Event, Head, Hello, Request, Tag, finished};
use parking_lot::Mutex;
use std::fmt;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use volary_core::{Cancel, Caps, Change, Ctx, Error, Kind, NodeId, Result, Severity};

/// How many workers may be started at once, and the time after which one more may be.
const BURST: u32 = 20;
const PAUSE: Duration = Duration::from_millis(100);

/// The limits for a plug-in, and its name.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// The longest time of a call.
    pub(crate) limit: Duration,
    /// The plug-in's name in messages.
    pub(crate) shown: String,
}

/// A volume of a plug-in in a separate process.
///
/// A process that violates the protocol or exceeds the time limit is killed. Once a process has
/// ended, its pending requests return `Io`, and its opens and unstable ids are `Stale`. The next
/// call starts another process.
pub struct Remote {
    zygote: Zygote,
    spec: Spec,
    terms: Terms,
    pub(super) hello: Hello,
    pub(super) news: Arc<News>,
    pub(super) is_detached: AtomicBool,
    /// Whether something was changed and is not durable yet.
    is_dirty: AtomicBool,
    /// Whether a worker ended with changes that were not durable.
    is_lost: AtomicBool,
    state: Mutex<State>,
}

struct State {
    running: Option<Arc<Running>>,
    epoch: u64,
    /// The time until which the started workers use up the allowance.
    paid: Instant,
    why: String,
}

impl Remote {
    /// Starts the first worker, and attaches the volume.
    ///
    /// # Errors
    /// That of attaching; `Io` if the worker fails before that.
    pub(crate) fn attach(zygote: Zygote, spec: Spec, terms: Terms) -> Result<Self> {
        let news = Arc::new(News::default());
        let start = Start {
            zygote: &zygote,
            spec: &spec,
            terms: &terms,
            news: &news,
        };
        let (running, hello) = start.run(0, None)?;
        Ok(Self {
            zygote,
            spec,
            terms,
            hello,
            news,
            is_detached: AtomicBool::new(false),
            is_dirty: AtomicBool::new(false),
            is_lost: AtomicBool::new(false),
            state: Mutex::new(State {
                running: Some(running),
                epoch: 0,
                paid: now(),
                why: String::new(),
            }),
        })
    }

    /// Returns the running worker, or starts one.
    ///
    /// # Errors
    /// `Stale` once the volume is detached; `Io` if no worker can be started, or not yet again.
    fn running(&self, cx: &Ctx<'_>) -> Result<Arc<Running>> {
        if self.is_detached.load(Ordering::Acquire) {
            return Err(Kind::Stale.into());
        }
        let mut state = self.state.lock();
        if let Some(running) = &state.running {
            return Ok(Arc::clone(running));
        }
        let is_last = state.epoch + 1 >= EPOCHS && !self.is_stable();
        if is_last || !state.may_start() {
            return Err(self.failed(&state.why));
        }
        state.epoch += 1;
        let mut spec = self.spec.clone();
        spec.now = cx.now;
        let start = Start {
            zygote: &self.zygote,
            spec: &spec,
            terms: &self.terms,
            news: &self.news,
        };
        match start.run(state.epoch, Some(self.hello)) {
            Ok((running, _)) => {
                state.running = Some(Arc::clone(&running));
                drop(state);
                // The new worker's state before is unknown.
                self.news.changed(Change::Everything);
                Ok(running)
            }
            Err(e) => {
                state.why = format!("cannot be started again: {e}");
                Err(self.failed(&state.why))
            }
        }
    }

    fn is_stable(&self) -> bool {
        self.hello.caps.has(Caps::STABLE_IDS)
    }

    fn failed(&self, why: &str) -> Error {
        Error::note(Kind::Io, format!("the plug-in {} {why}", self.terms.shown))
    }

    /// Sends a request with the worker's own ids, and parses the body of the reply.
    ///
    /// # Errors
    /// That of the reply; `Io` if there is none.
    pub(super) fn ask<'r, T>(
        &self,
        cx: &Ctx<'_>,
        request: impl FnOnce(&Running) -> Result<Request<'r>>,
        read: impl FnOnce(&Running, &[u8]) -> Option<T>,
    ) -> Result<T> {
        let running = self.running(cx)?;
        let request = request(&running)?;
        self.exchange(cx, &running, &request, |lane, wait| {
            Ok(match lane.ask(cx, &request, None, wait)? {
                Ok(_) => Ok(read(&running, lane.body()).ok_or(Broken::Nonsense)?),
                Err(e) => Err(e),
            })
        })
    }

    /// Sends a request for file content, which goes to `buf`.
    ///
    /// # Errors
    /// As for [`ask`](Self::ask).
    pub(super) fn read_into<'r>(
        &self,
        cx: &Ctx<'_>,
        request: impl FnOnce(&Running) -> Result<Request<'r>>,
        buf: &mut [u8],
    ) -> Result<usize> {
        let running = self.running(cx)?;
        let request = request(&running)?;
        self.exchange(cx, &running, &request, |lane, wait| {
            lane.ask(cx, &request, Some(buf), wait)
        })
    }

    fn exchange<T>(
        &self,
        cx: &Ctx<'_>,
        running: &Arc<Running>,
        request: &Request<'_>,
        call: impl FnOnce(&mut Lane, Wait<'_>) -> Told<Result<T>>,
    ) -> Result<T> {
        if request.changes() {
            self.is_dirty.store(true, Ordering::Release);
        }
        let wait = Wait {
            until: now() + self.terms.limit,
            cancel: Some(cx.cancel),
        };
        let asked = running.take_lane(wait).and_then(|mut lane| {
            let answer = call(&mut lane, wait)?;
            Ok((lane, answer))
        });
        match asked {
            Ok((lane, answer)) => {
                running.give_back(lane);
                answer
            }
            Err(broken) => Err(self.broke(running, &broken)),
        }
    }

    /// Kills the worker, and reports that once.
    fn broke(&self, running: &Arc<Running>, broken: &Broken) -> Error {
        running.end();
        let mut state = self.state.lock();
        let is_first = matches!(&state.running, Some(held) if Arc::ptr_eq(held, running));
        if is_first {
            state.running = None;
            let how = self.zygote.kill();
            let why = match broken {
                Broken::Ended => how,
                Broken::Late => format!(
                    "did not answer for {} seconds, and was ended",
                    self.terms.limit.as_secs_f32()
                ),
                Broken::Nonsense => "answered nonsense, and was ended".to_owned(),
            };
            if self.is_dirty.swap(false, Ordering::AcqRel) {
                self.is_lost.store(true, Ordering::Release);
            }
            let line = format!(
                "the plug-in {} {why}; the next call starts it again",
                self.terms.shown
            );
            self.news.say(Severity::Damage, line.as_bytes());
            state.why = why;
        }
        self.failed(&state.why)
    }

    /// Runs a call that makes all changes durable.
    ///
    /// # Errors
    /// That of the call; `Io`, once, if a worker ended with changes that were not durable.
    pub(super) fn durable(&self, call: impl FnOnce() -> Result<()>) -> Result<()> {
        let was_dirty = self.is_dirty.swap(false, Ordering::AcqRel);
        let done = call();
        if done.is_err() && was_dirty {
            self.is_dirty.store(true, Ordering::Release);
        }
        if self.is_lost.swap(false, Ordering::AcqRel) {
            return Err(self.failed("ended before, with changes that were not yet durable"));
        }
        done
    }

    /// Returns whether a worker is running.
    pub(super) fn is_running(&self) -> bool {
        self.state.lock().running.is_some()
    }

    /// Ends the worker for good.
    pub(super) fn end(&self) {
        self.is_detached.store(true, Ordering::Release);
        let running = self.state.lock().running.take();
        if let Some(running) = running {
            running.end();
        }
    }
}

impl State {
    /// Returns whether another worker may be started now, and counts it.
    fn may_start(&mut self) -> bool {
        let now = now();
        let is_early = self.paid > now + PAUSE * BURST;
        if !is_early {
            self.paid = self.paid.max(now) + PAUSE;
        }
        !is_early
    }
}

/// The parts that starting a worker needs.
struct Start<'a> {
    zygote: &'a Zygote,
    spec: &'a Spec,
    terms: &'a Terms,
    news: &'a Arc<News>,
}

impl Start<'_> {
    /// Starts a worker: the first one, or one whose capabilities must be those of `before`.
    fn run(&self, epoch: u64, before: Option<Hello>) -> Result<(Arc<Running>, Hello)> {
        let host = |e: std::io::Error| {
            let words = format!("the plug-in {} cannot be started: {e}", self.terms.shown);
            Error::note(Kind::Io, words)
        };
        let mut sockets = self.zygote.fork(self.spec).map_err(host)?;
        let events = sockets.pop();
        // A worker sends its first message on the first lane.
        let first = (!sockets.is_empty()).then(|| sockets.remove(0));
        let missing = || host(std::io::ErrorKind::UnexpectedEof.into());
        let events = events.ok_or_else(missing)?;
        let mut first = Lane::new(first.ok_or_else(missing)?).map_err(host)?;
        let hello = match self.hello(&mut first) {
            Ok(hello) => hello,
            Err(e) => {
                self.zygote.kill();
                return Err(e);
            }
        };
        if let Some(before) = before {
            let is_stable = before.caps.has(Caps::STABLE_IDS);
            if hello.caps != before.caps || is_stable && hello.root != before.root {
                self.zygote.kill();
                return Err(self.broken("came back as another volume"));
            }
        }
        let root = before.map_or(hello.root, |before| before.root);
        let running = Running::new(epoch, &hello, root);
        running.add_lanes(first, sockets).map_err(host)?;
        let running = Arc::new(running);
        listen(events, &running, self.news).map_err(host)?;
        Ok((running, hello))
    }

    fn hello(&self, lane: &mut Lane) -> Result<Hello> {
        let wait = Wait {
            until: now() + self.terms.limit,
            cancel: None::<&Cancel>,
        };
        match lane.hello(wait) {
            Ok(Ok(_)) => {
                let hello = finished::<Hello>(lane.body());
                let hello = hello.filter(|h| h.caps.name_max > 0);
                hello.ok_or_else(|| self.broken("answered nonsense"))
            }
            Ok(Err(e)) => Err(e),
            Err(Broken::Late) => Err(self.broken("did not attach in time")),
            Err(_) => {
                let how = self.zygote.kill();
                Err(self.broken(&format!("{how} as it attached")))
            }
        }
    }

    fn broken(&self, why: &str) -> Error {
        Error::note(Kind::Io, format!("the plug-in {} {why}", self.terms.shown))
    }
}

/// Starts a thread that receives a worker's events until the worker ends.
fn listen(events: OwnedFd, running: &Arc<Running>, news: &Arc<News>) -> std::io::Result<()> {
    let mut events = UnixStream::from(events);
    let running = Arc::downgrade(running);
    let news = Arc::clone(news);
    let listening = move || {
        while let Some(body) = next(&mut events) {
            let event = finished::<Event<'_>>(&body);
            let node = |node: Option<NodeId>| running.upgrade()?.here(node?);
            match event {
                Some(Event::Line { is_error, words }) => {
                    let severity = match is_error {
                        true => Severity::Damage,
                        false => Severity::Note,
                    };
                    news.say(severity, words);
                }
                Some(Event::Changed { what, node: of }) => news.changed(change(what, node(of))),
                // After an event that cannot be parsed, the rest cannot be either.
                None => return,
            }
        }
    };
    let thread = std::thread::Builder::new().name("volary-plugin".into());
    thread.spawn(listening).map(drop)
}

fn next(events: &mut UnixStream) -> Option<Vec<u8>> {
    let mut head = [0; Head::LEN];
    events.read_exact(&mut head).ok()?;
    let head = Head::parse(&head)?;
    let is_right = head.tag == Tag::Event && head.len as usize <= LINE_MAX * 8;
    let mut body = vec![
        0;
        if is_right {
            head.len as usize
        } else {
            return None;
        }
    ];
    events.read_exact(&mut body).ok()?;
    Some(body)
}

fn change(what: u32, node: Option<NodeId>) -> Change {
    match (what, node) {
        (VOLARY_CHANGED_DATA, Some(node)) => Change::Data(node),
        (VOLARY_CHANGED_ATTR, Some(node)) => Change::Attr(node),
        (VOLARY_CHANGED_ENTRIES, Some(node)) => Change::Entries(node),
        (VOLARY_CHANGED_GONE, Some(node)) => Change::Gone(node),
        _ => Change::Everything,
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // Closing its lanes makes the worker free its resources. The zygote waits for that.
        self.end();
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("Remote");
        f.field("terms", &self.terms).field("hello", &self.hello);
        f.finish_non_exhaustive()
    }
}

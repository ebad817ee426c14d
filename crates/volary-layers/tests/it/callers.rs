use crate::{Rig, memory, n};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use volary_core::{Cancel, Create, Cred, Ctx, FileSystem, Kind, RenameFlags, SetAttr};
use volary_layers::{Audit, IdMap, Pace, Squash, Throttle};

#[test]
fn callers_become_who_they_should() {
    let all = Squash::parse(memory(), "7:8").unwrap();
    let root = Squash::parse(memory(), "root:7:8").unwrap();
    let mut member = Cred::new(5, 0);
    member.groups = Arc::from([0, 3]);
    assert_eq!(all.caller(&Cred::new(5, 5)), Some(Cred::new(7, 8)));
    assert_eq!(root.caller(&Cred::root()), Some(Cred::new(7, 8)));
    assert_eq!(root.caller(&Cred::new(5, 5)), None);
    let squashed = root.caller(&member).unwrap();
    assert_eq!(
        (squashed.uid, squashed.gid, &*squashed.groups),
        (5, 8, &[8, 3][..])
    );
}

#[test]
fn a_squash_below_an_idmap_sees_ids_as_they_are_below() {
    let squash: volary_core::Fs = Arc::new(Squash::parse(memory(), "root:7:7").unwrap());
    let map = IdMap::parse(squash, "u:1000:0,u:2000:7,g:1000:0,g:2000:7").unwrap();
    let caller = map.caller(&Cred::new(1000, 1000)).unwrap();
    assert_eq!((caller.uid, caller.gid), (2000, 2000));
}

#[test]
fn a_squash_of_nobody_is_refused() {
    for words in ["", "7", "root:7", "a:b", "root"] {
        assert!(Squash::parse(memory(), words).is_err(), "{words}");
    }
}

/// Keeps what is written, until it breaks.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<(Vec<u8>, bool)>>);

impl std::io::Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut paper = self.0.lock().unwrap();
        if paper.1 {
            return Err(std::io::Error::other("full"));
        }
        paper.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn each_change_has_its_line_and_nothing_else_has() {
    let paper = Paper::default();
    let rig = Rig::new(Audit::new(memory(), Box::new(paper.clone())));
    let (root, cx) = (rig.fs.root(), rig.cx());
    let node = rig.file(root, "a\nb", b"xyz");
    rig.read(node).unwrap();
    rig.find(root, "a\nb").unwrap();
    let flags = RenameFlags::KEEP;
    rig.fs
        .rename(&cx, root, n("a\nb"), root, n("c"), flags)
        .unwrap();
    rig.fs.setattr(&cx, node, &SetAttr::mode(0o600)).unwrap();
    let missing = rig.fs.unlink(&cx, root, n("d"));
    assert_eq!(missing.unwrap_err(), Kind::NotFound);
    let text = String::from_utf8(paper.0.lock().unwrap().0.clone()).unwrap();
    let lines: Vec<_> = text.lines().collect();
    let head = "1000.000000000 uid=0 gid=0";
    assert_eq!(
        lines,
        [
            format!("{head} create dir=1 name=\"a\\nb\" how=New -> ok node=2 open=1"),
            format!("{head} write open=1 offset=0 len=3 -> ok"),
            format!("{head} rename dir=1 name=\"a\\nb\" to=1 new=\"c\" flags=1 -> ok"),
            format!("{head} setattr node=2 mode=600 -> ok"),
            format!("{head} unlink dir=1 name=\"d\" -> NotFound"),
        ]
    );
}

#[test]
fn nothing_is_changed_once_a_line_could_not_be_written() {
    let paper = Paper::default();
    let rig = Rig::new(Audit::new(memory(), Box::new(paper.clone())));
    let root = rig.fs.root();
    paper.0.lock().unwrap().1 = true;
    rig.dir(root, "happened");
    let again = rig.fs.mkdir(&rig.cx(), root, n("not"), &SetAttr::default());
    assert_eq!(again.unwrap_err(), Kind::Io);
    assert_eq!(rig.list(root).len(), 1);
}

/// Time passes by waiting alone; after some waits, the caller has had enough.
#[derive(Default)]
struct Clock {
    now: Mutex<Duration>,
    cancel: Arc<Cancel>,
    patience: Option<Duration>,
}

impl Pace for Clock {
    fn now(&self) -> Duration {
        *self.now.lock().unwrap()
    }
    fn wait(&self, time: Duration) {
        let mut now = self.now.lock().unwrap();
        *now += time;
        if self.patience.is_some_and(|patience| *now >= patience) {
            self.cancel.set();
        }
    }
}

#[test]
fn operations_take_the_time_that_their_rate_gives_them() {
    let clock = Arc::new(Clock::default());
    let below = Rig::over(memory());
    let rig = Rig::new(Throttle::parse(below.fs, clock.clone(), "ops=100").unwrap());
    let root = rig.fs.root();
    for _ in 0..1100 {
        rig.find(root, "none").unwrap_err();
    }
    let took = clock.now().as_secs_f64();
    assert!(
        (9.9..=10.1).contains(&took),
        "{took} s for 1100, the first 100 at once"
    );
}

#[test]
fn bytes_take_the_time_that_their_rate_gives_them() {
    let clock = Arc::new(Clock::default());
    let rig = Rig::new(Throttle::parse(memory(), clock.clone(), "bytes=1M").unwrap());
    let root = rig.fs.root();
    let set = SetAttr::default();
    let made = rig.fs.create(&rig.cx(), root, n("f"), Create::New, &set);
    let open = made.unwrap().1;
    for _ in 0..16 {
        rig.fs
            .write(&rig.cx(), open, Some(0), &vec![0; 1 << 20])
            .unwrap();
    }
    rig.fs.close(&rig.cx(), open).unwrap();
    let took = clock.now().as_secs_f64();
    assert!((13.9..=15.1).contains(&took), "{took} s for 16 MiB");
}

#[test]
fn who_loses_interest_waits_no_longer_and_pays_nothing() {
    let cancel = Arc::new(Cancel::new());
    let clock = Arc::new(Clock {
        cancel: cancel.clone(),
        patience: Some(Duration::from_secs(2)),
        ..Clock::default()
    });
    let fs = Throttle::parse(memory(), clock.clone(), "ops=1").unwrap();
    let cred = Cred::root();
    let now = volary_core::Time::EPOCH;
    let cx = Ctx {
        cred: &cred,
        now,
        cancel: &cancel,
    };
    let mut answers = Vec::new();
    for _ in 0..6 {
        answers.push(volary_core::FileSystem::getattr(&fs, &cx, fs.root()).is_ok());
    }
    // Two at once, and one after each second of waiting.
    assert_eq!(answers, [true, true, true, true, false, false]);
    assert!(clock.now() < Duration::from_millis(2100));
}

#[test]
fn rates_that_are_none_are_refused() {
    for words in ["", "ops=0", "ops", "bytes=x", "ops=1,more=2"] {
        let clock = Arc::new(Clock::default());
        assert!(Throttle::parse(memory(), clock, words).is_err(), "{words}");
    }
}

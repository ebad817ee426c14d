use crate::{Rig, memory};
use parking_lot::Mutex;
use std::sync::Arc;
use volary_core::{Caps, Ctx, Fs, Kind, Layer, NodeId, Op, Result, Time};
use volary_layers::{Alarm, Alert, Fault};

type Told = Arc<Mutex<Vec<String>>>;

/// Returns a volume with an alarm, and what it has told.
fn rig(below: Fs) -> (Rig, Arc<Alarm>, Told) {
    let told = Told::default();
    let lines = Arc::clone(&told);
    let alarm = Arc::new(Alarm::new(below, move |alert| {
        lines.lock().push(match alert {
            Alert::Fails(e) => format!("fails: {:?}", e.kind()),
            Alert::Answers(failed) => format!("answers: {failed}"),
            Alert::Found(finding) => format!("found: {}", finding.message),
        });
    }));
    (Rig::over(alarm.clone()), alarm, told)
}

fn faulty(words: &str) -> Fs {
    Arc::new(Fault::parse(memory(), words).unwrap())
}

#[test]
fn a_failure_is_told_once_and_changes_no_answer() {
    let (rig, alarm, told) = rig(faulty("lookup@2+:Io,mkdir:Io"));
    let root = rig.fs.root();
    assert_eq!(rig.find(root, "a").unwrap_err(), Kind::NotFound);
    assert_eq!(*told.lock(), [""; 0]);
    for _ in 0..5 {
        assert_eq!(rig.find(root, "a").unwrap_err(), Kind::Io);
    }
    assert_eq!(*told.lock(), ["fails: Io"]);
    assert_eq!(alarm.lost(), 0);
    let set = volary_core::SetAttr::default();
    let made = rig.fs.mkdir(&rig.cx(), root, crate::n("d"), &set);
    assert_eq!(made.unwrap_err(), Kind::Io);
    assert_eq!(alarm.lost(), 1);
    // What is answered from memory says nothing of a device.
    rig.fs.getattr(&rig.cx(), root).unwrap();
    assert_eq!(*told.lock(), ["fails: Io"]);
}

#[test]
fn ordinary_answers_and_detaching_are_not_told_of() {
    let (rig, alarm, told) = rig(faulty("lookup:NoSpace,mkdir:Stale,detach:Io"));
    let root = rig.fs.root();
    assert_eq!(rig.find(root, "a").unwrap_err(), Kind::NoSpace);
    assert_eq!(rig.fs.detach(&rig.cx()).unwrap_err(), Kind::Io);
    assert_eq!(*told.lock(), [""; 0]);
    assert_eq!(alarm.lost(), 0);
}

/// A volume that others have too, of which chosen calls fail.
struct Shared(Fs, Mutex<Option<Kind>>);

impl Layer for Shared {
    fn below(&self) -> &Fs {
        &self.0
    }
    fn caps(&self) -> Caps {
        let mut caps = self.0.caps();
        caps.bits |= Caps::CHECKS_ACCESS;
        caps
    }
    fn around<T>(&self, _: &Op<'_>, call: impl FnOnce() -> Result<T>) -> Result<T> {
        match *self.1.lock() {
            Some(kind) => Err(kind.into()),
            None => call(),
        }
    }
    /// Answered from what is remembered.
    fn getattr(&self, cx: &Ctx<'_>, node: NodeId) -> Result<volary_core::Attr> {
        match *self.1.lock() {
            Some(Kind::Stale) => Err(Kind::Stale.into()),
            _ => self.0.getattr(cx, node),
        }
    }
}

#[test]
fn what_others_have_may_come_back_and_that_is_told() {
    let shared = Arc::new(Shared(memory(), Mutex::new(None)));
    let (mut rig, _, told) = rig(shared.clone());
    let root = rig.fs.root();
    *shared.1.lock() = Some(Kind::Io);
    assert_eq!(rig.find(root, "a").unwrap_err(), Kind::Io);
    assert_eq!(rig.find(root, "a").unwrap_err(), Kind::Io);
    // Attributes that are remembered are no sign of life.
    rig.fs.getattr(&rig.cx(), root).unwrap();
    assert_eq!(*told.lock(), ["fails: Io"]);
    *shared.1.lock() = None;
    // Not asked again within the second.
    rig.fs.getattr(&rig.cx(), root).unwrap();
    assert_eq!(*told.lock(), ["fails: Io"]);
    rig.now = Time::from_secs(1001);
    rig.fs.getattr(&rig.cx(), root).unwrap();
    assert_eq!(*told.lock(), ["fails: Io", "answers: 2"]);
    // And it may go again.
    *shared.1.lock() = Some(Kind::Stale);
    assert_eq!(rig.fs.getattr(&rig.cx(), root).unwrap_err(), Kind::Stale);
    assert_eq!(*told.lock(), ["fails: Io", "answers: 2", "fails: Stale"]);
}

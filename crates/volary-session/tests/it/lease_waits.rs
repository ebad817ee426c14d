//! Waiting for others' leases to be given up.

use crate::leases::{ALL, NONE, R, RH, RHW, RW, held, key, open, setup, shared, sink_of};
use crate::{Make, NOW, kind, root};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use volary_core::{Cancel, Kind, Mode, OpenId, RenameFlags, Time};
use volary_mem::{Mem, MemOptions};
use volary_session::{LeaseBreak, Rights, Session, Volume, VolumeOptions};

#[test]
fn who_opens_waits_until_the_lease_is_given_up() {
    let (volume, s, node) = setup();
    let (sink, breaks) = sink_of(false);
    let one = open(&s, node, key(1, 1));
    s.lease(one, key(1, 1), RHW, sink).unwrap();
    let (opened, waits) = meanwhile(
        &s,
        |s| s.open(node, Mode::Read),
        || {
            let broken = breaks.recv().unwrap();
            let expected = LeaseBreak {
                key: key(1, 1),
                from: RHW,
                to: RH,
                epoch: 2,
                must_ack: true,
                open: one,
            };
            assert_eq!(broken, expected);
            assert!(s.lease_state(key(1, 1)).unwrap().breaking);
            // The holder goes on to write through its own open meanwhile.
            s.write(one, Some(0), b"kept").unwrap();
            assert_eq!(kind(s.acknowledge(key(1, 1), RHW)), Some(Kind::Invalid));
            assert_eq!(s.acknowledge(key(1, 1), RH), Ok(RH));
        },
    );
    assert_eq!(waits, 1);
    let mut buf = [0; 8];
    assert_eq!(s.read(opened.unwrap(), 0, &mut buf), Ok(4));
    assert_eq!(kind(s.acknowledge(key(1, 1), RH)), Some(Kind::Invalid));
    assert_eq!(volume.waiting_count(), 0);
}

#[test]
fn a_lease_ends_with_its_last_open_and_those_who_wait_go_on() {
    let (volume, s, node) = setup();
    let (sink, _breaks) = sink_of(false);
    let one = open(&s, node, key(1, 1));
    let other = open(&s, node, key(1, 1));
    s.lease(one, key(1, 1), RHW, sink).unwrap();
    s.close(one).unwrap();
    assert_eq!(held(&s, key(1, 1)), RHW);
    let (opened, _) = meanwhile(
        &s,
        |s| s.open(node, Mode::Write),
        || s.close(other).unwrap(),
    );
    opened.unwrap();
    assert_eq!(kind(s.acknowledge(key(1, 1), RH)), Some(Kind::Invalid));
    assert_eq!((volume.lease_count(), s.leased_node(key(1, 1))), (0, None));
}

/// Nobody waited for it to be given up when it was asked for, and nobody does.
#[test]
fn a_lease_that_is_not_given_up_in_time_is_gone_for_who_comes_later() {
    static CLOCK: AtomicI64 = AtomicI64::new(1000);
    let now = || Time::from_secs(CLOCK.load(Ordering::SeqCst));
    let fs = Mem::attach(MemOptions::default(), now()).unwrap();
    let volume = Volume::new(fs, VolumeOptions::new("late", now));
    let s = root(&volume);
    let (node, writer) = s.open_file(s.root(), "f");
    let (sink, breaks) = sink_of(false);
    let one = open(&s, node, key(1, 1));
    s.lease(one, key(1, 1), RH, sink).unwrap();
    s.write(writer, Some(0), b"new").unwrap();
    assert!(breaks.recv().unwrap().must_ack);
    assert!(s.lease_state(key(1, 1)).unwrap().breaking);
    CLOCK.fetch_add(34, Ordering::SeqCst);
    s.write(writer, Some(0), b"new").unwrap();
    assert_eq!(held(&s, key(1, 1)), RH, "it has its time");
    CLOCK.fetch_add(1, Ordering::SeqCst);
    s.write(writer, Some(0), b"new").unwrap();
    let state = s.lease_state(key(1, 1)).unwrap();
    assert_eq!((state.granted, state.breaking), (NONE, false));
    assert_eq!(kind(s.acknowledge(key(1, 1), NONE)), Some(Kind::Invalid));
}

#[test]
fn who_opens_against_a_share_mode_waits_for_the_open_to_be_closed() {
    for closes in [true, false] {
        let (_volume, s, node) = setup();
        let (sink, breaks) = sink_of(false);
        let how = shared(ALL, Rights::NONE).with_lease_key(key(1, 1));
        let one = s.open(node, how).unwrap();
        s.lease(one, key(1, 1), RHW, sink).unwrap();
        let (opened, waits) = meanwhile(
            &s,
            |s| s.open(node, Mode::Read),
            || {
                let broken = breaks.recv().unwrap();
                // Writes need not be given up by one who is refused.
                assert_eq!((broken.from, broken.to), (RHW, RW));
                if closes {
                    s.close(one).unwrap();
                } else {
                    s.acknowledge(key(1, 1), RW).unwrap();
                }
            },
        );
        let expected = (!closes).then_some(Kind::Sharing);
        assert_eq!((kind(opened), waits), (expected, 1));
        assert!(breaks.try_recv().is_err());
    }
}

#[test]
fn more_can_be_taken_away_while_it_breaks() {
    let (_volume, s, node) = setup();
    let (sink, breaks) = sink_of(false);
    let one = open(&s, node, key(1, 1));
    s.lease(one, key(1, 1), RHW, sink).unwrap();
    let idle = s.open(node, shared(Rights::NONE, ALL)).unwrap();
    let next = || {
        let broken = breaks.recv_timeout(Duration::from_secs(20)).unwrap();
        (broken.from, broken.to, broken.epoch, broken.must_ack)
    };
    let (written, _) = meanwhile(
        &s,
        |s| {
            s.open(node, Mode::Read)
                .and_then(|_| s.write(idle, Some(0), b"x"))
        },
        || {
            assert_eq!(next(), (RHW, RH, 2, true));
            // A writer comes before the first break is acknowledged: both wait to the end.
            let (written, _) = meanwhile(
                &s,
                |s| s.write(idle, Some(0), b"y"),
                || {
                    assert_eq!(s.acknowledge(key(1, 1), RH), Ok(RH));
                    assert_eq!(next(), (RH, R, 2, true));
                    assert_eq!(s.acknowledge(key(1, 1), R), Ok(R));
                    assert_eq!(next(), (R, NONE, 2, false));
                },
            );
            written.unwrap();
        },
    );
    written.unwrap();
    assert_eq!(held(&s, key(1, 1)), NONE);
    assert!(breaks.try_recv().is_err());
}

#[test]
fn who_does_not_answer_in_time_loses_the_lease() {
    let volume = short(Duration::from_millis(60));
    let s = root(&volume);
    let node = s.file(s.root(), "f", 0o666);
    let (sink, breaks) = sink_of(false);
    let one = open(&s, node, key(1, 1));
    s.lease(one, key(1, 1), RHW, sink).unwrap();
    s.open(node, Mode::Read).unwrap();
    assert_eq!(breaks.recv().unwrap().to, RH);
    let lease = s.lease_state(key(1, 1)).unwrap();
    assert_eq!((lease.granted, lease.breaking), (NONE, false));
    assert_eq!(kind(s.acknowledge(key(1, 1), RH)), Some(Kind::Invalid));
    s.unlink(s.root(), b"f").unwrap();
}

#[test]
fn a_wait_ends_with_interest_and_leaves_no_open_behind() {
    let (volume, s, node) = setup();
    let (sink, _breaks) = sink_of(false);
    let one = open(&s, node, key(1, 1));
    s.lease(one, key(1, 1), RHW, sink).unwrap();
    let off = Arc::new(Cancel::new());
    let waiter = s.clone().with_cancel(off.clone());
    let (opened, _) = meanwhile(
        &waiter,
        |s| s.open(node, Mode::Read),
        || {
            off.set();
            volume.wake_waiting();
        },
    );
    assert_eq!(kind(opened), Some(Kind::Interrupted));
    assert_eq!((s.open_count_of(node), volume.waiting_count()), (1, 0));
    let late = s.clone().with_deadline(Time::from_secs(1));
    assert_eq!(kind(late.unlink(s.root(), b"f")), Some(Kind::Interrupted));
    assert_eq!(s.find(s.root(), "f"), Ok(node));
}

/// Whoever cancels a request of their own wakes all who wait: that may not give a lease more time.
#[test]
fn those_who_are_woken_for_nothing_wait_no_longer() {
    let volume = short(Duration::from_millis(200));
    let s = root(&volume);
    let node = s.file(s.root(), "f", 0o666);
    let (sink, _breaks) = sink_of(false);
    let one = open(&s, node, key(1, 1));
    s.lease(one, key(1, 1), RHW, sink).unwrap();
    let (done, is_done) = channel();
    let wakes = std::thread::scope(|scope| {
        let volume = &volume;
        let waking = scope.spawn(move || {
            let mut wakes = 0;
            // At most for 20 s: a hundred times the limit.
            while wakes < 4000 && is_done.recv_timeout(Duration::from_millis(5)).is_err() {
                volume.wake_waiting();
                wakes += 1;
            }
            wakes
        });
        s.open(node, Mode::Read).unwrap();
        done.send(()).unwrap();
        waking.join().unwrap()
    });
    assert!((2..1000).contains(&wakes), "{wakes}");
}

#[test]
fn detach_sends_away_those_who_wait() {
    let (volume, s, node) = setup();
    let (sink, _breaks) = sink_of(false);
    let one = open(&s, node, key(1, 1));
    s.lease(one, key(1, 1), RHW, sink).unwrap();
    let work = |s: &Session| s.open(node, Mode::Read);
    let (opened, _) = meanwhile(&s, work, || volume.detach().unwrap());
    assert_eq!(kind(opened), Some(Kind::Stale));
    assert_eq!((volume.open_count(), volume.lease_count()), (0, 0));
}

#[test]
fn one_who_waits_is_in_nobodys_way() {
    let (_volume, s, node) = setup();
    let other = s.file(s.root(), "other", 0o666);
    let (sink, _breaks) = sink_of(false);
    let one = open(&s, node, key(1, 1));
    s.lease(one, key(1, 1), RHW, sink).unwrap();
    let work = |s: &Session| s.rename(s.root(), b"f", s.root(), b"g", RenameFlags::REPLACE);
    let (renamed, _) = meanwhile(&s, work, || {
        let id = s.open(other, Mode::ReadWrite).unwrap();
        s.write(id, None, b"x").unwrap();
        s.rename(s.root(), b"other", s.root(), b"o", RenameFlags::REPLACE)
            .unwrap();
        s.unlink(s.root(), b"o").unwrap();
        s.close(open_elsewhere(&s)).unwrap();
        s.acknowledge(key(1, 1), RW).unwrap();
    });
    renamed.unwrap();
    assert_eq!(s.find(s.root(), "g"), Ok(node));
}

/// Returns an open with a place, on a file of its own.
fn open_elsewhere(s: &Session) -> OpenId {
    let node = s.file(s.root(), "elsewhere", 0o666);
    let at = Some((s.root(), b"elsewhere".as_slice()));
    s.open_entry_of(node, at, shared(ALL, ALL)).unwrap()
}

fn short(timeout: Duration) -> Arc<Volume> {
    let fs = Mem::attach(MemOptions::default(), NOW).unwrap();
    let options = VolumeOptions {
        lease_timeout: timeout,
        ..VolumeOptions::new("short", || NOW)
    };
    Volume::new(fs, options)
}

/// Does `work` on a thread; gives its answer, and how many waits were begun.
pub(crate) fn meanwhile<T: Send>(
    s: &Session,
    work: impl FnOnce(&Session) -> T + Send,
    then: impl FnOnce(),
) -> (T, usize) {
    let begun = Arc::new(Mutex::new(0));
    let count = Arc::clone(&begun);
    let (tell, told) = channel();
    let hook = move || {
        *count.lock().unwrap() += 1;
        let _ = tell.send(());
    };
    let waiter = s.clone().with_wait_hook(Arc::new(hook));
    let answer = std::thread::scope(|scope| {
        let working = scope.spawn(|| work(&waiter));
        told.recv_timeout(Duration::from_secs(20))
            .expect("nobody waits");
        then();
        working.join().unwrap()
    });
    let begun = *begun.lock().unwrap();
    (answer, begun)
}

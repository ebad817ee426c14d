//! Change events.

use crate::{Make, kind, root, volume};
use std::sync::Arc;
use volary_core::{Create, Kind, Mode, NodeId, RenameFlags, SetAttr};
use volary_session::{Event, EventQueue, EventSink, News, Session, SetXattr, Subscription, Volume};

fn listen(volume: &Arc<Volume>) -> (Arc<EventQueue>, Subscription) {
    let queue = Arc::new(EventQueue::new(100));
    let subscription = volume.subscribe(queue.clone());
    (queue, subscription)
}

fn news(queue: &EventQueue) -> Vec<News> {
    std::iter::from_fn(|| queue.try_take())
        .map(|event| event.news)
        .collect()
}

fn made(dir: NodeId, name: &str, node: NodeId) -> News {
    let name = name.as_bytes().into();
    News::Made { dir, name, node }
}

fn removed(dir: NodeId, name: &str, node: NodeId) -> News {
    News::Removed {
        dir,
        name: name.as_bytes().into(),
        node: Some(node),
    }
}

#[test]
fn each_change_is_told_and_nothing_else() {
    let volume = volume();
    let s = root(&volume);
    let (queue, _kept) = listen(&volume);
    let (top, set) = (s.root(), SetAttr::mode(0o755));

    let (node, open) = s.open_file(top, "f");
    assert_eq!(news(&queue), [made(top, "f", node)]);
    s.write(open, None, b"text").unwrap();
    s.allocate(open, 0, 10, false).unwrap();
    s.setattr(node, &SetAttr::size(2)).unwrap();
    assert_eq!(news(&queue), vec![News::Data(node); 3]);
    s.setattr(node, &SetAttr::mode(0o600)).unwrap();
    s.setxattr(node, b"user.a", b"b", SetXattr::Any).unwrap();
    s.removexattr(node, b"user.a").unwrap();
    assert_eq!(news(&queue), vec![News::Attr(node); 3]);
    s.link(node, top, b"g").unwrap();
    assert_eq!(news(&queue), [made(top, "g", node), News::Attr(node)]);
    let dir = s.mkdir(top, b"d", &set).unwrap().node;
    let link = s.symlink(dir, b"l", b"f", &set).unwrap().node;
    assert_eq!(news(&queue), [made(top, "d", dir), made(dir, "l", link)]);
    s.unlink(dir, b"l").unwrap();
    s.rmdir(top, b"d").unwrap();
    assert_eq!(
        news(&queue),
        [removed(dir, "l", link), removed(top, "d", dir)]
    );

    s.read(open, 0, &mut [0; 10]).unwrap();
    s.lookup(top, b"f").unwrap();
    s.fsync(open, false).unwrap();
    s.close(open).unwrap();
    s.setattr(node, &SetAttr::default()).unwrap();
    assert_eq!(kind(s.mkdir(top, b"f", &set)), Some(Kind::Exists));
    assert_eq!(kind(s.unlink(top, b"x")), Some(Kind::NotFound));
    assert_eq!(news(&queue), []);
}

#[test]
fn a_rename_tells_what_it_replaced_or_swapped() {
    let volume = volume();
    let s = root(&volume);
    let top = s.root();
    let a = s.file(top, "a", 0o644);
    let b = s.file(top, "b", 0o644);
    let (queue, _kept) = listen(&volume);
    let renamed = |name: &str, new_name: &str, node, replaced, swapped| News::Renamed {
        from: top,
        name: name.as_bytes().into(),
        to: top,
        new_name: new_name.as_bytes().into(),
        node: Some(node),
        replaced,
        swapped,
    };
    let replace = RenameFlags::REPLACE;
    s.rename(top, b"b", top, b"c", replace).unwrap();
    s.rename(top, b"a", top, b"c", RenameFlags::SWAP).unwrap();
    s.rename(top, b"c", top, b"a", replace).unwrap();
    assert_eq!(
        news(&queue),
        [
            renamed("b", "c", b, None, false),
            renamed("a", "c", a, Some(b), true),
            renamed("c", "a", a, Some(b), false),
        ]
    );
}

#[test]
fn cutting_at_create_and_open_is_told() {
    let volume = volume();
    let s = root(&volume);
    let node = s.file(s.root(), "f", 0o644);
    let (queue, _kept) = listen(&volume);
    let set = SetAttr::default();
    s.create(s.root(), b"f", Create::Truncate, Mode::Write, &set)
        .unwrap();
    assert_eq!(news(&queue), [News::Data(node)]);
}

#[test]
fn an_event_tells_whose_change_it_is() {
    let volume = volume();
    let (one, two) = (volume.client(), volume.client());
    assert_ne!(one, two);
    let (queue, _kept) = listen(&volume);
    let top = volume.fs().root();
    root(&volume).with_client(one).dir(top, "a", 0o755);
    root(&volume).with_client(two).dir(top, "b", 0o755);
    root(&volume).dir(top, "c", 0o755);
    let origins = [(); 3].map(|()| queue.try_take().unwrap().origin);
    assert_eq!(origins, [Some(one), Some(two), None]);
}

#[test]
fn a_subscriber_to_others_is_told_of_all_but_one_client() {
    let volume = volume();
    let (one, two) = (volume.client(), volume.client());
    let queue = Arc::new(EventQueue::new(100));
    let _kept = volume.subscribe_to_others(one, queue.clone());
    let make = |session: Session, name: &str| session.dir(volume.fs().root(), name, 0o755);
    make(root(&volume).with_client(one), "unheard");
    assert_eq!(queue.try_take(), None);
    make(root(&volume).with_client(two), "a");
    make(root(&volume), "b");
    assert_eq!(news(&queue).len(), 2);

    // Beside one who hears all, and one who is deaf to another.
    let (all, ended) = listen(&volume);
    make(root(&volume).with_client(one), "c");
    assert_eq!((news(&queue).len(), news(&all).len()), (0, 1));
    drop(ended);
    let others = Arc::new(EventQueue::new(100));
    let _kept = volume.subscribe_to_others(two, others.clone());
    make(root(&volume).with_client(one), "d");
    make(root(&volume).with_client(two), "e");
    assert_eq!((news(&queue).len(), news(&others).len()), (1, 1));
}

#[test]
fn a_subscription_ends_when_it_is_dropped() {
    let volume = volume();
    let s = root(&volume);
    let (queue, kept) = listen(&volume);
    let (other, _kept) = listen(&volume);
    s.dir(s.root(), "a", 0o755);
    drop(kept);
    s.dir(s.root(), "b", 0o755);
    assert_eq!(news(&queue).len(), 1);
    assert_eq!(news(&other).len(), 2);
}

#[test]
fn a_queue_that_is_full_keeps_one_event_for_everything() {
    let queue = EventQueue::new(3);
    let node = root(&volume()).root();
    let event = |news| Event { origin: None, news };
    for _ in 0..4 {
        queue.event(&event(News::Data(node)));
    }
    queue.event(&event(News::Attr(node)));
    assert_eq!(news(&queue), [News::Everything, News::Attr(node)]);
}

#[test]
fn one_who_waits_for_an_event_gets_it_and_a_closed_queue_sends_them_away() {
    let volume = volume();
    let s = root(&volume);
    let (queue, _kept) = listen(&volume);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| (queue.take(), queue.take()));
        let node = s.dir(s.root(), "a", 0o755);
        queue.close();
        let (first, second) = waiting.join().unwrap();
        assert_eq!(first.unwrap().news, made(s.root(), "a", node));
        assert_eq!(second, None);
    });
    s.dir(s.root(), "b", 0o755);
    assert_eq!(queue.try_take(), None);
}

/// A sink may call the volume: nothing is locked while it is told.
struct CallsBack(std::sync::Weak<Volume>);

impl EventSink for CallsBack {
    fn event(&self, event: &Event) {
        if let (Some(volume), News::Made { node, .. }) = (self.0.upgrade(), &event.news) {
            root(&volume).getattr(*node).unwrap();
            drop(volume.subscribe(Arc::new(EventQueue::new(1))));
        }
    }
}

#[test]
fn nothing_is_locked_while_a_sink_is_told() {
    let volume = volume();
    let sink = Arc::new(CallsBack(Arc::downgrade(&volume)));
    let _kept = volume.subscribe(sink);
    let s = root(&volume);
    s.dir(s.root(), "a", 0o755);
}

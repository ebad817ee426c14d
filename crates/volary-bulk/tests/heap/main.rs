//! The memory of a run as the allocator sees it, on layouts that are made to need much of it.
//! A program of its own: nobody else allocates meanwhile.
#![expect(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use volary_block::MemDevice;
use volary_bulk::{BulkFileRead, Cleaning, File, Method, Options, Part, Source};
use volary_core::{Cred, Fs, Name, SetAttr};
use volary_fat::FAT;
use volary_ffs::FFS;
use volary_session::{Volume, VolumeOptions};
use volary_testkit::readable::Content;
use volary_testkit::turns::Turns;
use volary_testkit::volumes::{NOW, Shape, as_root, attach, attach_read_only};

/// The system's, and how much of it is in use.
struct Counting {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Counting {
    fn grows(&self, by: usize) {
        let now = self.now.fetch_add(by, Relaxed) + by;
        self.most.fetch_max(now, Relaxed);
    }
}

// SAFETY: all is left to the system's allocator; the numbers beside do not touch it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.grows(layout.size());
        // SAFETY: the caller's promises are the system's.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.grows(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        self.now.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static HEAP: Counting = Counting {
    now: AtomicUsize::new(0),
    most: AtomicUsize::new(0),
};

const MIB: u64 = 1 << 20;

/// What a run takes beside its memory bound, at most: entries of a directory that are looked at, threads, and
/// what the driver allocates for a moment.
const BESIDE: u64 = MIB;

/// Files that are all begun before any is complete, and many small ones, on a volume of this shape.
fn woven(shape: Shape, small: u64) -> (Fs, Arc<MemDevice>) {
    let device = shape.device();
    let fs = attach(shape.format(), device.clone(), shape.attach).expect("attach");
    as_root(|cx| {
        Turns::new(90, 30, 4096).run(&fs, cx, fs.root());
        let name = Name::new(b"small").expect("a name");
        let made = fs.mkdir(cx, fs.root(), name, &SetAttr::default());
        Turns::new(small, 1, 100).run(&fs, cx, made.expect("mkdir").node);
        fs.detach(cx).expect("detach");
    });
    let fs = attach_read_only(shape.format(), device.clone(), "").expect("attach");
    // What the driver keeps in memory is there now, and not counted.
    as_root(|cx| Content::read(&fs, cx)).expect("an ordinary walk");
    (fs, device)
}

#[test]
fn a_run_takes_no_more_of_the_heap_than_it_was_given() {
    let shapes = [
        Shape::new(&FAT, "fat32", 40 << 20),
        Shape::new(&FFS, "ffs2", 24 << 20),
    ];
    for (fs, device) in shapes.map(|shape| woven(shape, 3000)) {
        let options = VolumeOptions {
            trust: true,
            ..VolumeOptions::new("test", || NOW)
        };
        let session = Volume::new(fs, options).session(Cred::root());
        let source = Source::new(session).on(device);
        for memory in [MIB, 2 * MIB, 6 * MIB] {
            for (cleaning, method, workers) in [
                (Cleaning::OnDemand, Method::DaftM, 1),
                (Cleaning::OnDemand, Method::DaftNm, 3),
                (Cleaning::FirstFit, Method::DaftM, 3),
                (Cleaning::OnDemand, Method::Vanilla, 1),
            ] {
                let options = Options {
                    memory,
                    cleaning,
                    method,
                    workers,
                    ..Options::default()
                };
                let what = format!("{options:?}");
                let run = BulkFileRead::new(options).expect("options");
                let take = |_: &File<'_>, _: Part<'_>| ControlFlow::Continue(());
                let before = HEAP.now.load(Relaxed);
                HEAP.most.store(before, Relaxed);
                let summary = run.run(std::slice::from_ref(&source), &take);
                let most = HEAP.most.load(Relaxed).saturating_sub(before) as u64;
                assert_eq!((summary.files, summary.failed), (3090, 0), "{what}");
                assert!(summary.peak <= memory, "{} of {what}", summary.peak);
                assert!(most <= memory + BESIDE, "{most} bytes of {what}");
                // It is a bound that is made use of.
                assert!(most * 4 >= memory.min(3 * MIB) || method == Method::Vanilla);
            }
        }
    }
}

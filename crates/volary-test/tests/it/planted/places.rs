//! Mistakes in where a volume says that the bytes of its files are.

use crate::volumes::{manifest, reader};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use volary_core::{
    BlockDevice, Cancel, Caps, Cred, Ctx, Extent, Fs, Geometry, Kind, Layer, Mode, NodeId, OpenId,
    Place, Result, Time,
};
use volary_test::{Fresh, Report, Suite};

/// Each file has this much room on the device.
const ROOM: u64 = 1 << 24;

/// A device on which the files of a volume lie, in the order in which they were asked for.
struct Files {
    fs: Fs,
    nodes: Mutex<Vec<NodeId>>,
}

impl Files {
    fn place_of(&self, node: NodeId) -> u64 {
        let mut nodes = self.nodes.lock();
        let there = nodes.iter().position(|other| *other == node);
        let index = there.unwrap_or(nodes.len());
        if there.is_none() {
            nodes.push(node);
        }
        index as u64 * ROOM
    }
}

impl BlockDevice for Files {
    fn geometry(&self) -> Geometry {
        Geometry {
            size: 1 << 40,
            sector: 512,
            read_only: true,
        }
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let (cred, cancel) = (Cred::root(), Cancel::new());
        let cx = Ctx {
            cred: &cred,
            now: Time::EPOCH,
            cancel: &cancel,
        };
        let node = self.nodes.lock()[(offset / ROOM) as usize];
        let open = self.fs.open(&cx, node, Mode::Read)?;
        self.fs.read(&cx, open, offset % ROOM, buf)?;
        self.fs.close(&cx, open)
    }

    fn write_at(&self, _: u64, _: &[u8]) -> Result<()> {
        Err(Kind::ReadOnly.into())
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }
}

/// Says where files are, so many bytes off.
struct Placed {
    device: Arc<Files>,
    opens: Mutex<HashMap<OpenId, NodeId>>,
    off_by: u64,
}

impl Layer for Placed {
    fn below(&self) -> &Fs {
        &self.device.fs
    }

    fn caps(&self) -> Caps {
        self.below().caps().with(Caps::EXTENTS)
    }

    fn open(&self, cx: &Ctx<'_>, node: NodeId, mode: Mode) -> Result<OpenId> {
        let open = self.below().open(cx, node, mode)?;
        self.opens.lock().insert(open, node);
        Ok(open)
    }

    fn extents(
        &self,
        _: &Ctx<'_>,
        open: OpenId,
        offset: u64,
        len: u64,
        out: &mut Vec<Extent>,
    ) -> Result<()> {
        let node = *self.opens.lock().get(&open).ok_or(Kind::Stale)?;
        let place = self.device.place_of(node) + offset + self.off_by;
        out.push(Extent {
            offset,
            len,
            place: Place::Device(place),
        });
        Ok(())
    }
}

fn report(off_by: u64) -> Report {
    let make = move || {
        let device = Arc::new(Files {
            fs: reader(),
            nodes: Mutex::default(),
        });
        let placed = Placed {
            device: device.clone(),
            opens: Mutex::default(),
            off_by,
        };
        Fresh::new(Arc::new(placed) as Fs).on(device)
    };
    let suite = Suite::reading(format!("{off_by} bytes off"), make, &manifest());
    suite.only("extents_lead_to_the_bytes_of_files").report()
}

#[test]
fn places_that_are_off_are_caught() {
    let right = report(0);
    assert!(right.held() && right.passed.len() == 1, "{right}");
    let off = report(1);
    assert!(!off.held(), "{off}");
}

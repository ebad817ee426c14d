//! A page: its bytes, and the state of each of its sectors.

use super::stage::{PAGE, SECTOR, Stage};
use std::sync::Arc;

/// The number of stages.
pub(super) const STAGES: usize = Stage::LAST.0 as usize + 1;

/// A set of a page's sectors, one bit each.
pub(super) type Sectors = u8;

/// All sectors of a page.
pub(super) const ALL: Sectors = Sectors::MAX;

const _: () = assert!(PAGE / SECTOR == Sectors::BITS as usize);

/// Returns the sectors that the range of a page touches.
pub(super) fn touched(at: usize, len: usize) -> Sectors {
    match len {
        0 => 0,
        _ => between(at / SECTOR, (at + len).div_ceil(SECTOR)),
    }
}

/// Returns the sectors that lie wholly in the range of a page.
pub(super) fn covered(at: usize, len: usize) -> Sectors {
    between(at.div_ceil(SECTOR), (at + len) / SECTOR)
}

fn between(first: usize, end: usize) -> Sectors {
    match first < end {
        true => ((1_u16 << end) - (1_u16 << first)) as Sectors,
        false => 0,
    }
}

/// Returns the runs of adjacent sectors in a set: byte offset in the page, and length.
pub(super) fn stretches(mut set: Sectors) -> impl Iterator<Item = (usize, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        if set == 0 {
            return None;
        }
        let gap = set.trailing_zeros();
        let n = (set >> gap).trailing_ones();
        let found = (at + gap as usize * SECTOR, n as usize * SECTOR);
        at = found.0 + found.1;
        set = set.checked_shr(gap + n).unwrap_or(0);
        Some(found)
    })
}

/// How much of a page is dirty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Tally {
    /// Dirty sectors of stage 0.
    pub(super) data: usize,
    /// Dirty sectors of later stages.
    pub(super) held: usize,
}

/// A page.
///
/// A sector is *valid* if its bytes are what a read must return. A dirty sector is valid, and in
/// exactly one stage. While a copy of a sector is being written to the device, the sector is *in
/// flight*. It stays dirty until the copy has arrived. If it is written again or forgotten
/// meanwhile, it is *changed* too, and the arrival does not make it clean.
pub(super) struct Page {
    /// [`PAGE`] bytes. They are shared while a copy is being written to the device or being read. A
    /// write then makes its own copy.
    data: Arc<[u8]>,
    valid: Sectors,
    in_flight: Sectors,
    changed: Sectors,
    dirty: [Sectors; STAGES],
    /// Whether a thread is loading the invalid sectors from the device.
    pub(super) loading: bool,
}

impl Page {
    /// Returns a page without valid sectors, with the shared bytes `blank`.
    pub(super) fn new(blank: &Arc<[u8]>) -> Self {
        Self {
            data: Arc::clone(blank),
            valid: 0,
            in_flight: 0,
            changed: 0,
            dirty: [0; STAGES],
            loading: false,
        }
    }

    pub(super) fn data(&self) -> &Arc<[u8]> {
        &self.data
    }

    pub(super) fn has(&self, sectors: Sectors) -> bool {
        self.valid & sectors == sectors
    }

    pub(super) fn is_empty(&self) -> bool {
        self.valid == 0 && !self.is_busy()
    }

    /// Returns whether it cannot be evicted for a reason other than being dirty.
    pub(super) fn is_busy(&self) -> bool {
        self.loading || self.in_flight != 0
    }

    pub(super) fn is_in_flight(&self, sectors: Sectors) -> bool {
        self.in_flight & sectors != 0
    }

    pub(super) fn dirty(&self) -> Sectors {
        self.dirty.iter().fold(0, |all, d| all | d)
    }

    pub(super) fn tally(&self) -> Tally {
        let data = self.dirty[0];
        Tally {
            data: data.count_ones() as usize,
            held: (self.dirty() & !data).count_ones() as usize,
        }
    }

    /// Returns the bytes for a change.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        Arc::make_mut(&mut self.data)
    }

    /// Copies `data` in at byte `at`. The sectors that it covers become valid.
    pub(super) fn put(&mut self, at: usize, data: &[u8]) {
        match Arc::get_mut(&mut self.data) {
            Some(bytes) => bytes[at..at + data.len()].copy_from_slice(data),
            None if data.len() == PAGE => self.data = Arc::from(data),
            None => self.bytes_mut()[at..at + data.len()].copy_from_slice(data),
        }
        self.valid |= covered(at, data.len());
    }

    /// Fills the invalid sectors from `bytes`, which are a page or the last part of the device.
    pub(super) fn fill(&mut self, bytes: &[u8], sectors: Sectors) {
        let missing = sectors & !self.valid;
        if missing == ALL && bytes.len() == PAGE {
            self.data = Arc::from(bytes);
        } else {
            for (at, len) in stretches(missing) {
                let end = (at + len).min(bytes.len());
                if at < end {
                    self.bytes_mut()[at..end].copy_from_slice(&bytes[at..end]);
                }
            }
        }
        self.valid |= missing;
    }

    /// Makes sectors dirty. A sector that is dirty already goes with the later of the two stages,
    /// unless its old content is in flight.
    pub(super) fn mark(&mut self, sectors: Sectors, stage: usize) {
        let leaving = sectors & self.in_flight & !self.changed;
        self.changed |= leaving;
        self.clean(leaving);
        let later = self.dirty[stage + 1..].iter().fold(0, |all, d| all | d);
        let now = sectors & !later;
        self.clean(now);
        self.dirty[stage] |= now;
        self.valid |= sectors;
    }

    fn clean(&mut self, sectors: Sectors) {
        for d in &mut self.dirty {
            *d &= !sectors;
        }
    }

    /// Makes sectors clean whose bytes are on the device.
    pub(super) fn settle(&mut self, sectors: Sectors) {
        self.clean(sectors);
        self.valid |= sectors;
    }

    /// Forgets sectors, dirty or not.
    pub(super) fn forget(&mut self, sectors: Sectors) {
        self.clean(sectors);
        self.valid &= !sectors;
        self.changed |= sectors & self.in_flight;
    }

    /// Forgets the clean ones among the sectors.
    pub(super) fn forget_clean(&mut self, sectors: Sectors) {
        self.valid &= !(sectors & !self.dirty());
    }

    /// Marks the dirty sectors of a stage as in flight. Returns them.
    pub(super) fn launch(&mut self, stage: usize) -> Sectors {
        let sectors = self.dirty[stage];
        self.in_flight |= sectors;
        sectors
    }

    /// Notes that sectors in flight have arrived.
    pub(super) fn arrived(&mut self, sectors: Sectors) {
        self.clean(sectors & !self.changed);
        self.landed(sectors);
    }

    /// Notes that sectors in flight, of this stage, have not arrived. They are as dirty as before.
    /// Those written again meanwhile go with the later stage.
    pub(super) fn failed(&mut self, sectors: Sectors, stage: usize) {
        let earlier = self.dirty[..stage].iter().fold(0, |all, d| all | d);
        let raised = sectors & self.changed & earlier;
        self.landed(sectors);
        if raised != 0 {
            self.mark(raised, stage);
        }
    }

    fn landed(&mut self, sectors: Sectors) {
        self.in_flight &= !sectors;
        self.changed &= !sectors;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> Page {
        Page::new(&Arc::from([0; PAGE]))
    }

    #[test]
    fn sets_of_sectors() {
        assert_eq!(touched(0, PAGE), ALL);
        assert_eq!(touched(511, 2), 0b11);
        assert_eq!(covered(511, 2), 0);
        assert_eq!(covered(511, 514), 0b10);
        assert_eq!(touched(4095, 1), 0x80);
        assert_eq!(touched(5, 0), 0);
        let found: Vec<_> = stretches(0b1011_0010).collect();
        assert_eq!(found, [(512, 512), (2048, 1024), (3584, 512)]);
        assert_eq!(stretches(ALL).collect::<Vec<_>>(), [(0, PAGE)]);
    }

    #[test]
    fn a_sector_written_in_two_stages_goes_with_the_later() {
        let mut p = page();
        p.mark(0b11, 2);
        p.mark(0b110, 1);
        p.mark(0b1000, 0);
        assert_eq!(p.dirty, [0b1000, 0b100, 0b11, 0, 0]);
        p.mark(0b1111, 3);
        assert_eq!(p.dirty, [0, 0, 0, 0b1111, 0]);
        assert_eq!(p.tally(), Tally { data: 0, held: 4 });
    }

    #[test]
    fn what_is_written_in_flight_stays_dirty_in_its_own_stage() {
        let mut p = page();
        p.mark(0b11, 2);
        assert_eq!(p.launch(2), 0b11);
        p.mark(0b10, 1);
        p.arrived(0b11);
        assert_eq!(p.dirty, [0, 0b10, 0, 0, 0]);
        assert!(!p.is_busy());
    }

    #[test]
    fn what_failed_in_flight_goes_with_the_later_stage() {
        let mut p = page();
        p.mark(0b1111, 2);
        p.launch(2);
        p.mark(0b0010, 1);
        p.mark(0b0100, 3);
        p.forget(0b1000);
        p.failed(0b1111, 2);
        assert_eq!(p.dirty, [0, 0, 0b0011, 0b0100, 0]);
        assert!(p.has(0b111) && !p.has(0b1000));
    }

    #[test]
    fn filling_takes_only_what_is_not_valid() {
        let mut p = page();
        p.put(512, &[1; 512]);
        p.fill(&[2; 1200], ALL);
        assert!(p.has(ALL));
        let bytes = p.data();
        assert_eq!(
            [bytes[0], bytes[600], bytes[1100], bytes[1300]],
            [2, 1, 2, 0]
        );
    }
}

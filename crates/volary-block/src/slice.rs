//! A range of a device, as a device.

use crate::range::check_range;
use std::sync::Arc;
use volary_core::{BlockDevice, Geometry, HostFile, Read, Result};

/// A range of a device, such as a partition. Nothing outside of it can be reached.
#[derive(Clone)]
pub struct Slice {
    dev: Arc<dyn BlockDevice>,
    offset: u64,
    len: u64,
}

impl Slice {
    /// Returns the `len` bytes of `dev` from byte `offset` on.
    ///
    /// # Errors
    /// `Invalid` past the end of `dev`.
    pub fn new(dev: Arc<dyn BlockDevice>, offset: u64, len: u64) -> Result<Self> {
        let bytes = usize::try_from(len).unwrap_or(usize::MAX);
        check_range(offset, bytes, dev.geometry().size)?;
        Ok(Self { dev, offset, len })
    }

    /// Returns the offset on the device below, in bytes.
    pub fn offset(&self) -> u64 {
        self.offset
    }
}

impl BlockDevice for Slice {
    fn geometry(&self) -> Geometry {
        Geometry {
            size: self.len,
            ..self.dev.geometry()
        }
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        check_range(offset, buf.len(), self.len)?;
        self.dev.read_at(self.offset + offset, buf)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        check_range(offset, data.len(), self.len)?;
        self.dev.write_at(self.offset + offset, data)
    }

    fn write_gather(&self, offset: u64, parts: &[&[u8]]) -> Result<()> {
        let len = parts.iter().map(|p| p.len()).sum();
        check_range(offset, len, self.len)?;
        self.dev.write_gather(self.offset + offset, parts)
    }

    fn flush(&self) -> Result<()> {
        self.dev.flush()
    }

    fn discard(&self, offset: u64, len: u64) -> Result<()> {
        let bytes = usize::try_from(len).unwrap_or(usize::MAX);
        check_range(offset, bytes, self.len)?;
        self.dev.discard(self.offset + offset, len)
    }

    fn zero(&self, offset: u64, len: u64) -> Result<()> {
        let bytes = usize::try_from(len).unwrap_or(usize::MAX);
        check_range(offset, bytes, self.len)?;
        self.dev.zero(self.offset + offset, len)
    }

    fn is_cached(&self) -> bool {
        self.dev.is_cached()
    }

    fn past_cache(&self) -> Option<Arc<dyn BlockDevice>> {
        let dev = self.dev.past_cache()?;
        Some(Arc::new(Self { dev, ..*self }))
    }

    fn will_read(&self, offset: u64, len: u64) {
        let len = len.min(self.len.saturating_sub(offset));
        if len > 0 {
            self.dev.will_read(self.offset + offset, len);
        }
    }

    fn in_host_file(&self, offset: u64, len: u64) -> Option<(HostFile<'_>, u64)> {
        let bytes = usize::try_from(len).ok()?;
        check_range(offset, bytes, self.len).ok()?;
        self.dev.in_host_file(self.offset + offset, len)
    }

    fn read_batch(&self, reads: &mut [Read<'_>]) {
        let (mut inside, outside): (Vec<_>, Vec<_>) = reads
            .iter_mut()
            .partition(|r| check_range(r.offset, r.buf.len(), self.len).is_ok());
        for r in outside {
            r.result = check_range(r.offset, r.buf.len(), self.len).map(drop);
        }
        let mut below: Vec<Read<'_>> = inside
            .iter_mut()
            .map(|r| Read {
                offset: self.offset + r.offset,
                buf: &mut *r.buf,
                result: Ok(()),
            })
            .collect();
        self.dev.read_batch(&mut below);
        let results: Vec<_> = below.into_iter().map(|b| b.result).collect();
        for (r, result) in inside.iter_mut().zip(results) {
            r.result = result;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemDevice;
    use volary_core::Kind;

    fn slice() -> (Arc<MemDevice>, Slice) {
        let mem = Arc::new(MemDevice::from_vec((0..=255).cycle().take(4096).collect()));
        let slice = Slice::new(mem.clone(), 1000, 100).unwrap();
        (mem, slice)
    }

    #[test]
    fn a_slice_shows_its_stretch() {
        let (mem, slice) = slice();
        assert_eq!(slice.geometry().size, 100);
        let mut b = [0; 4];
        slice.read_at(10, &mut b).unwrap();
        assert_eq!(b, [242, 243, 244, 245]);
        slice.write_gather(98, &[&[1], &[2]]).unwrap();
        assert_eq!(mem.to_vec()[1098..1101], [1, 2, 76]);
    }

    #[test]
    fn nothing_outside_is_reached() {
        let (mem, slice) = slice();
        let before = mem.to_vec();
        assert_eq!(slice.write_at(99, &[9, 9]).unwrap_err(), Kind::Invalid);
        assert_eq!(
            slice.write_gather(99, &[&[9], &[9]]).unwrap_err(),
            Kind::Invalid
        );
        assert_eq!(
            slice.write_at(u64::MAX - 500, &[9]).unwrap_err(),
            Kind::Invalid
        );
        assert_eq!(slice.discard(0, 101).unwrap_err(), Kind::Invalid);
        assert!(mem.to_vec() == before);
        assert_eq!(
            Slice::new(mem.clone(), 4000, 97).err().unwrap(),
            Kind::Invalid
        );
        assert_eq!(Slice::new(mem, u64::MAX, 2).err().unwrap(), Kind::Invalid);
    }

    #[test]
    fn a_batch_answers_each_read_for_itself() {
        let (_, slice) = slice();
        let (mut a, mut b, mut c) = ([0; 2], [0; 2], [0; 2]);
        let mut reads = [(0, &mut a), (99, &mut b), (98, &mut c)].map(|(offset, buf)| Read {
            offset,
            buf,
            result: Err(Kind::Io.into()),
        });
        slice.read_batch(&mut reads);
        let ok = reads.map(|r| r.result.is_ok());
        assert_eq!(ok, [true, false, true]);
        assert_eq!((a, b, c), ([232, 233], [0, 0], [74, 75]));
    }
}

//! Reads compressed files at any offset, though they can only be decompressed from the beginning.

use crate::{Bytes, Cursor};
use parking_lot::Mutex;
use std::hash::Hasher;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use volary_core::{Attach, Result};

/// The least number of its last bytes that a stream keeps, since concurrent reads come out of
/// order.
const KEPT: usize = 256 << 10;
/// How many bytes are decompressed at once.
const STEP: usize = 64 << 10;
/// Memory of a stream: up to twice the bytes it keeps, and a step, with room for its decoder.
const EACH: u64 = (2 * KEPT + 2 * STEP) as u64;

/// Decompresses a file from its beginning.
type Decoder = Box<dyn Read + Send>;

/// Reads packed files at any offset by decoders, which go forward only.
///
/// A read continues the nearest decoder before it, or starts a new one and skips to its offset. So
/// a file that is read from beginning to end is decompressed once, even by concurrent readers.
///
/// ```
/// use std::sync::Arc;
/// use volary_driver::core::{Attach, Result};
/// use volary_driver::{Bytes, Streams};
///
/// # fn unpacking(packed: volary_driver::Cursor) -> impl std::io::Read { packed }
/// # fn read(bytes: &Bytes) -> Result<()> {
/// let streams = Streams::new(&Attach::default());
/// let packed = bytes.part("a file", 100, 2000)?;
/// let mut buf = [0; 10];
/// streams.read(&packed, 500, &mut buf, |packed| Box::new(unpacking(packed)))
/// # }
/// ```
pub struct Streams {
    /// In the order of their last use.
    under_way: Mutex<Vec<Arc<Stream>>>,
    most: usize,
}

/// A file that is being decompressed.
struct Stream {
    /// The offset of its packed bytes on the device.
    place: u64,
    /// The offset of the first byte that it can still return.
    first: AtomicU64,
    unpacked: Mutex<Unpacked>,
}

struct Unpacked {
    decoder: Decoder,
    /// The decoder's position.
    end: u64,
    /// The bytes before `end`.
    last: Vec<u8>,
}

impl Streams {
    /// Returns an empty set of at most 64 decoders: as many as fit into a sixteenth of
    /// [`Attach::memory`], but at least one.
    pub fn new(how: &Attach) -> Self {
        let most = (how.memory / 16 / EACH).clamp(1, 64) as usize;
        Self {
            under_way: Mutex::default(),
            most,
        }
    }

    /// Fills `buf` with the decompressed bytes of `packed` from `offset` on. `unpack` makes the
    /// decoder, always the same for the same place.
    ///
    /// # Errors
    /// `Corrupt` if the bytes end before, or the decoder fails; `Io`.
    pub fn read(
        &self,
        packed: &Bytes,
        offset: u64,
        buf: &mut [u8],
        unpack: impl FnOnce(Cursor) -> Decoder,
    ) -> Result<()> {
        let under_way = self.nearest(packed.start(), offset);
        let done = under_way.and_then(|stream| stream.read(offset, buf));
        let done = done.unwrap_or_else(|| {
            let stream = Arc::new(Stream::new(packed.start(), unpack(packed.cursor())));
            // Locked before others can find it, so that none skips past this read.
            let mut unpacked = stream.unpacked.lock();
            self.keep(stream.clone());
            stream.fill(&mut unpacked, offset, buf)
        });
        done.map_err(|e| {
            self.under_way.lock().retain(|s| s.place != packed.start());
            packed.failed("packed bytes", 0, e)
        })
    }

    /// Returns the stream of a place that has the least to skip, if one can return the bytes from
    /// `offset` on.
    fn nearest(&self, place: u64, offset: u64) -> Option<Arc<Stream>> {
        let mut under_way = self.under_way.lock();
        let can = |s: &Stream| s.place == place && s.first() <= offset;
        let all = under_way.iter().enumerate().filter(|(_, s)| can(s));
        let (index, _) = all.max_by_key(|(_, s)| s.first())?;
        let stream = under_way.remove(index);
        under_way.push(stream.clone());
        Some(stream)
    }

    fn keep(&self, stream: Arc<Stream>) {
        let mut under_way = self.under_way.lock();
        if under_way.len() >= self.most {
            under_way.remove(0);
        }
        under_way.push(stream);
    }
}

impl Stream {
    fn new(place: u64, decoder: Decoder) -> Self {
        Self {
            place,
            first: AtomicU64::new(0),
            unpacked: Mutex::new(Unpacked {
                decoder,
                end: 0,
                last: Vec::new(),
            }),
        }
    }

    fn first(&self) -> u64 {
        self.first.load(Ordering::Relaxed)
    }

    /// Fills `buf`; returns `None` if another read has moved the stream too far meanwhile.
    fn read(&self, offset: u64, buf: &mut [u8]) -> Option<io::Result<()>> {
        let mut unpacked = self.unpacked.lock();
        (unpacked.first() <= offset).then(|| self.fill(&mut unpacked, offset, buf))
    }

    fn fill(&self, unpacked: &mut Unpacked, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let done = unpacked.read(offset, buf);
        self.first.store(unpacked.first(), Ordering::Relaxed);
        done
    }
}

impl Unpacked {
    /// Returns the offset of the first byte that is still kept.
    fn first(&self) -> u64 {
        self.end - self.last.len() as u64
    }

    /// Fills `buf` from an offset that is not before [`first`](Self::first).
    fn read(&mut self, mut offset: u64, mut buf: &mut [u8]) -> io::Result<()> {
        loop {
            let skipped = usize::try_from(offset - self.first()).unwrap_or(usize::MAX);
            let here = self.last.get(skipped..).unwrap_or_default();
            let (now, later) = buf.split_at_mut(here.len().min(buf.len()));
            now.copy_from_slice(here.get(..now.len()).unwrap_or_default());
            offset += now.len() as u64;
            if later.is_empty() {
                return Ok(());
            }
            buf = later;
            self.go_on(offset.saturating_add(buf.len() as u64))?;
        }
    }

    /// Decompresses some more, but not past `until`.
    fn go_on(&mut self, until: u64) -> io::Result<()> {
        if self.last.len() >= 2 * KEPT {
            self.last.drain(..self.last.len() - KEPT);
        }
        let from = self.last.len();
        let step = (until - self.end).min(STEP as u64);
        self.last.reserve_exact(step as usize);
        self.last.resize(from + step as usize, 0);
        let new = self.last.get_mut(from..).unwrap_or_default();
        if let Err(e) = self.decoder.read_exact(new) {
            self.last.truncate(from);
            return Err(e);
        }
        self.end += step;
        Ok(())
    }
}

/// A stream that compares its checksum with the expected one at its end. Too few bytes, or another
/// checksum, make the last read fail.
pub struct Checked<R, H> {
    from: R,
    left: u64,
    hasher: H,
    sum: u64,
}

impl<R: Read, H: Hasher> Checked<R, H> {
    /// Returns the first `len` bytes of `from`, whose checksum by `hasher` must be `sum`.
    pub fn new(from: R, len: u64, hasher: H, sum: u64) -> Self {
        Self {
            from,
            left: len,
            hasher,
            sum,
        }
    }
}

impl<R: Read, H: Hasher> Read for Checked<R, H> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX);
        let most = most.min(buf.len());
        let n = self.from.read(buf.get_mut(..most).unwrap_or_default())?;
        self.hasher.write(buf.get(..n).unwrap_or_default());
        self.left -= n as u64;
        match (n, self.left) {
            (0, 1..) if most > 0 => Err(io::ErrorKind::UnexpectedEof.into()),
            (1.., 0) if self.hasher.finish() != self.sum => {
                Err(io::Error::other("its checksum is another"))
            }
            _ => Ok(n),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use volary_block::MemDevice;
    use volary_core::Kind;

    /// A file that is "packed" by turning each bit, and how often it was begun.
    struct File {
        streams: Streams,
        packed: Bytes,
        begun: AtomicUsize,
    }

    struct Turned(Cursor);

    impl Read for Turned {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            // Decoders answer short, too.
            let n = buf.len().min(10_007);
            let n = self.0.read(&mut buf[..n])?;
            buf[..n].iter_mut().for_each(|b| *b = !*b);
            Ok(n)
        }
    }

    fn byte(at: u64) -> u8 {
        (at % 251) as u8
    }

    impl File {
        fn new(len: u64, memory: u64) -> Self {
            let bytes: Vec<u8> = (0..len).map(|at| !byte(at)).collect();
            let how = Attach {
                memory,
                ..Attach::default()
            };
            Self {
                streams: Streams::new(&how),
                packed: Bytes::whole(Arc::new(MemDevice::from_vec(bytes))),
                begun: AtomicUsize::new(0),
            }
        }

        fn read(&self, offset: u64, len: usize) -> Result<()> {
            let mut buf = vec![0; len];
            self.streams
                .read(&self.packed, offset, &mut buf, |packed| {
                    self.begun.fetch_add(1, Ordering::Relaxed);
                    Box::new(Turned(packed))
                })?;
            let right = buf.iter().zip(offset..).all(|(b, at)| *b == byte(at));
            assert!(right, "{len} bytes at {offset}");
            Ok(())
        }

        fn begun(&self) -> usize {
            self.begun.load(Ordering::Relaxed)
        }
    }

    const LEN: u64 = 3_000_000;

    #[test]
    fn what_is_read_in_order_or_nearly_is_unpacked_once() {
        let file = File::new(LEN, 64 << 20);
        for offset in (0..LEN - 200_000).step_by(100_000) {
            file.read(offset + 100_000, 100_000).unwrap();
            file.read(offset, 100_000).unwrap();
        }
        assert_eq!(file.begun(), 1);
        file.read(0, LEN as usize).unwrap();
        file.read(LEN - 1, 1).unwrap();
        assert_eq!(file.begun(), 2);
    }

    #[test]
    fn any_offset_and_length_is_right_in_bounded_memory() {
        let file = File::new(LEN, 32 << 20);
        let mut at = 1;
        for i in 0..200 {
            at = (at * 48_271) % 2_147_483_647;
            let offset = at % LEN;
            let len = [1, 512, 70_000, 700_000][i % 4].min(LEN - offset);
            file.read(offset, len as usize).unwrap();
        }
        let under_way = file.streams.under_way.lock();
        assert!(under_way.len() <= 3, "{}", under_way.len());
        let kept = under_way
            .iter()
            .map(|s| s.unpacked.lock().last.capacity())
            .max();
        assert!(kept.unwrap() as u64 <= EACH, "{kept:?}");
    }

    #[test]
    fn readers_at_the_same_time_share_what_is_unpacked() {
        let file = File::new(LEN, 64 << 20);
        let next = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    loop {
                        let offset = next.fetch_add(30_000, Ordering::Relaxed);
                        if offset + 30_000 > LEN {
                            return;
                        }
                        file.read(offset, 30_000).unwrap();
                    }
                });
            }
        });
        assert!(file.begun() <= 8, "{}", file.begun());
    }

    #[test]
    fn what_ends_before_is_damage_and_is_forgotten() {
        let file = File::new(1000, 1 << 20);
        file.read(0, 1000).unwrap();
        assert_eq!(file.read(999, 2).unwrap_err(), Kind::Corrupt);
        assert_eq!(file.read(u64::MAX, 2).unwrap_err(), Kind::Corrupt);
        assert!(file.streams.under_way.lock().is_empty());
        file.read(10, 900).unwrap();
    }

    /// Adds bytes up.
    #[derive(Default)]
    struct Sum(u64);

    impl Hasher for Sum {
        fn write(&mut self, bytes: &[u8]) {
            self.0 += bytes.iter().map(|b| u64::from(*b)).sum::<u64>();
        }

        fn finish(&self) -> u64 {
            self.0
        }
    }

    #[test]
    fn a_checksum_is_held_against_the_last_byte() {
        let read = |len, sum| {
            let mut all = Vec::new();
            let mut checked = Checked::new(&[1_u8, 2, 3, 4][..], len, Sum::default(), sum);
            checked.read_to_end(&mut all).map(|_| all)
        };
        assert_eq!(read(4, 10).unwrap(), [1, 2, 3, 4]);
        assert_eq!(read(3, 6).unwrap(), [1, 2, 3]);
        assert_eq!(read(0, 9).unwrap(), [0; 0]);
        assert!(read(4, 9).unwrap_err().to_string().contains("checksum"));
        assert!(read(5, 10).is_err());
    }
}

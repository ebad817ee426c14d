//! The names of a directory, in one block of memory.

/// Names, each with its kind: a number as in C, 0 if it is unknown.
#[derive(Debug, Default)]
pub(crate) struct Names {
    bytes: Vec<u8>,
    ends: Vec<(u32, u8)>,
}

impl Names {
    pub(crate) fn push(&mut self, name: &[u8], kind: u8) {
        self.bytes.extend_from_slice(name);
        let end = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        self.ends.push((end, kind));
    }

    pub(crate) fn get(&self, at: usize) -> Option<(&[u8], u8)> {
        let before = at.checked_sub(1).and_then(|before| self.ends.get(before));
        let start = before.map_or(0, |(end, _)| *end);
        let (end, kind) = self.ends.get(at)?;
        let name = self.bytes.get(start as usize..*end as usize)?;
        Some((name, *kind))
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the memory that the names take, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len() + self.ends.len() * size_of::<(u32, u8)>()
    }
}

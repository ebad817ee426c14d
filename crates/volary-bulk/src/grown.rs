//! A list that moves nothing as it grows.

/// Entries of a block, at least; a power of two.
const BLOCK: usize = 256;

/// A list in blocks. A vector is copied whenever it grows, and has up to twice the room that it needs: of millions of
/// files, hundreds of megabytes.
#[derive(Debug)]
pub(crate) struct Grown<T> {
    /// All but the last one are full.
    blocks: Vec<Vec<T>>,
}

impl<T> Grown<T> {
    pub(crate) fn new() -> Self {
        Self { blocks: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        let last = self.blocks.last().map_or(0, Vec::len);
        self.blocks.len().saturating_sub(1) * BLOCK + last
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    pub(crate) fn push(&mut self, entry: T) {
        match self.blocks.last_mut() {
            Some(last) if last.len() < BLOCK => last.push(entry),
            _ => {
                let mut block = Vec::with_capacity(BLOCK);
                block.push(entry);
                self.blocks.push(block);
            }
        }
    }

    pub(crate) fn get(&self, number: usize) -> Option<&T> {
        self.blocks.get(number / BLOCK)?.get(number % BLOCK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_stay_in_order_over_the_ends_of_blocks() {
        let mut list = Grown::new();
        assert!(list.is_empty() && list.get(0).is_none());
        for number in 0..2 * BLOCK + 3 {
            assert_eq!(list.len(), number);
            list.push(number);
        }
        assert!((0..2 * BLOCK + 3).all(|number| list.get(number) == Some(&number)));
        assert_eq!(list.get(2 * BLOCK + 3), None);
    }
}

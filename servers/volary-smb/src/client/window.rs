//! [`Window`]: credits, and the message ids that they allow (MS-SMB2 3.3.1.1, 3.3.1.2).

/// The message ids that a client may use. Ids below `low` are used up. Those from `low` to `high`
/// have been granted, and each may be used once, in any order.
#[derive(Debug)]
pub(crate) struct Window {
    low: u64,
    high: u64,
    /// How many ids from `low` to `high` are used.
    used: u64,
    /// A bit for each id, at the id modulo the number of bits.
    bits: Box<[u64]>,
    credits_max: u64,
}

impl Window {
    /// Returns a window in which only id 0 is granted. There will be at most `credits_max` unused
    /// ids at a time.
    pub(crate) fn new(credits_max: u16) -> Self {
        // This is twice the most credits, so that a single unused id does not block the window at
        // once.
        let bits = usize::from(credits_max).max(32).next_power_of_two() * 2;
        Self {
            low: 0,
            high: 1,
            used: 0,
            bits: vec![0; bits.div_ceil(64)].into(),
            credits_max: u64::from(credits_max.max(1)),
        }
    }

    fn len_max(&self) -> u64 {
        self.bits.len() as u64 * 64
    }

    fn bit(&self, id: u64) -> (usize, u64) {
        let at = id % self.len_max();
        ((at / 64) as usize, 1 << (at % 64))
    }

    /// Uses up `charge` ids from `first` on. Returns `false`, and changes nothing, if any of them
    /// is not granted or already used.
    pub(crate) fn take(&mut self, first: u64, charge: u16) -> bool {
        let Some(end) = first.checked_add(u64::from(charge.max(1))) else {
            return false;
        };
        if first < self.low || end > self.high {
            return false;
        }
        let is_used = |id| {
            let (word, bit) = self.bit(id);
            self.bits[word] & bit != 0
        };
        if (first..end).any(is_used) {
            return false;
        }
        for id in first..end {
            let (word, bit) = self.bit(id);
            self.bits[word] |= bit;
        }
        self.used += end - first;
        self.move_on();
        true
    }

    fn move_on(&mut self) {
        while self.low < self.high {
            let (word, bit) = self.bit(self.low);
            if self.bits[word] & bit == 0 {
                return;
            }
            self.bits[word] &= !bit;
            self.low += 1;
            self.used -= 1;
        }
    }

    /// Grants as many of `wanted` credits as permitted, and at least one if the client would
    /// otherwise have none.
    pub(crate) fn grant(&mut self, wanted: u16) -> u16 {
        let len = self.high - self.low;
        let unused = len - self.used;
        let wanted = u64::from(wanted.max(u16::from(unused == 0)));
        let granted = wanted
            .min(self.credits_max.saturating_sub(unused))
            .min(self.len_max() - len);
        self.high += granted;
        u16::try_from(granted).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_is_good_once() {
        let mut window = Window::new(8);
        assert!(window.take(0, 1));
        assert!(!window.take(0, 1), "used");
        assert!(!window.take(1, 1), "not granted");
        assert_eq!(window.grant(4), 4);
        assert!(window.take(3, 1), "in any order");
        assert!(!window.take(2, 2), "half of it is used");
        assert!(window.take(1, 2));
        assert!(!window.take(3, 1));
        assert!(window.take(4, 0), "a charge of 0 is one");
        assert!(!window.take(u64::MAX, 1));
        assert!(!window.take(u64::MAX, 2));
    }

    #[test]
    fn credits_are_bounded_and_never_none() {
        let mut window = Window::new(8);
        assert!(window.take(0, 1));
        assert_eq!(window.grant(100), 8);
        assert_eq!(window.grant(100), 0);
        assert!(window.take(1, 8));
        assert_eq!(window.grant(0), 1, "a client without credits is mute");
        assert_eq!(window.grant(0), 0);
    }

    #[test]
    fn an_id_left_out_stops_the_window_in_the_end() {
        let mut window = Window::new(8);
        assert!(window.take(0, 1));
        assert_eq!(window.grant(8), 8);
        let mut next = 2;
        let mut granted = 8;
        while window.take(next, 1) {
            granted += window.grant(1);
            next += 1;
        }
        assert_eq!(granted, 64, "the length of the window");
        assert!(window.take(1, 1));
        assert_eq!(window.grant(8), 8);
    }
}

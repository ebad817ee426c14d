//! Leader pages: the first page of each file with content. A leader says whose
//! pages follow, and checks the name table; it is never what a file is found by
//! (paper, sections 5.2 and 5.8).

use crate::disk::ondisk::{HEADER, Header, LEADER_FIXED, PageType, get_u32, get_u64, put, seal};
use crate::disk::runs::{RUN, Run, Runs};
use crate::disk::volume::Layout;

/// What is said of a leader that is bad, or of other runs than the name table has.
pub(crate) const DIFFERS: &str = "its leader page is bad or does not agree with the name table";

/// What a leader says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leader {
    pub(crate) uid: u64,
    /// The checksum of all runs.
    pub(crate) runs_crc: u32,
    /// How many runs there are.
    pub(crate) runs_len: u32,
    /// The first of them.
    pub(crate) preamble: Vec<Run>,
}

impl Leader {
    /// Returns the leader of a file with these runs.
    pub(crate) fn of(uid: u64, runs: &Runs, layout: &Layout) -> Self {
        let most = (layout.page_len() - LEADER_FIXED) / RUN;
        Self {
            uid,
            runs_crc: runs.checksum(),
            runs_len: runs.0.len() as u32,
            preamble: runs.0.iter().take(most).copied().collect(),
        }
    }

    pub(crate) fn encode(&self, layout: &Layout, page: u32, epoch: u32, seq: u64) -> Vec<u8> {
        let header = Header {
            kind: PageType::Leader,
            level: 0,
            count: self.preamble.len() as u16,
            nonce: layout.nonce,
            page,
            epoch,
            seq,
        };
        let mut out = header.page(layout.page_len());
        put(&mut out, HEADER, &self.uid.to_le_bytes());
        put(&mut out, HEADER + 8, &self.runs_crc.to_le_bytes());
        put(&mut out, HEADER + 12, &self.runs_len.to_le_bytes());
        put(&mut out, LEADER_FIXED, &Runs::encode(&self.preamble));
        seal(&mut out);
        out
    }

    pub(crate) fn decode(layout: &Layout, page: u32, bytes: &[u8]) -> Option<Self> {
        let header = Header::read(bytes)?;
        let own =
            header.kind == PageType::Leader && header.nonce == layout.nonce && header.page == page;
        let len = usize::from(header.count) * RUN;
        let preamble = bytes.get(LEADER_FIXED..LEADER_FIXED + len)?;
        own.then(|| Self {
            uid: get_u64(bytes, HEADER),
            runs_crc: get_u32(bytes, HEADER + 8),
            runs_len: get_u32(bytes, HEADER + 12),
            preamble: Runs::decode(preamble).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::volume::Wanted;

    #[test]
    fn a_leader_comes_back_with_as_many_runs_as_fit() {
        let wanted = Wanted {
            page: 512,
            pages: 2000,
            table: 64,
            third: 332,
            logs_map: true,
        };
        let layout = Layout::plan(wanted, 7, 8, "").unwrap();
        let runs = Runs(
            (0..100)
                .map(|i| Run {
                    start: 4 + 2 * i,
                    len: 1,
                })
                .collect(),
        );
        let leader = Leader::of(9, &runs, &layout);
        assert_eq!((leader.preamble.len(), leader.runs_len), (56, 100));
        let bytes = leader.encode(&layout, 4, 1, 2);
        assert_eq!(Leader::decode(&layout, 4, &bytes), Some(leader));
        assert_eq!(Leader::decode(&layout, 5, &bytes), None);
    }
}

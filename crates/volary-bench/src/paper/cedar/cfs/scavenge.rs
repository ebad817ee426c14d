//! The scavenger: makes the name table and the map anew from labels and headers.

use super::disk::Type;
use super::table::{self, Table};
use super::volume::{HeaderPlace, TABLE, Volume, key_of, value_of};
use anyhow::Result;

impl Volume {
    /// Reads all labels, a cylinder at a time, and the header of each file, in the order of the disk. Returns how
    /// many files there are. The name table may hold anything before.
    ///
    /// # Errors
    /// Of the disk.
    pub(crate) fn scavenge(&mut self, cylinder: usize) -> Result<usize> {
        let mut headers = Vec::new();
        let all = self.disk.sectors() as usize;
        let mut uid = table::UID;
        for first in (0..all).step_by(cylinder) {
            let count = cylinder.min(all - first);
            let labels = self.disk.labels(first as u64, count)?;
            for (sector, label) in (first..).zip(labels) {
                self.is_free[sector] = label.of == Type::Free;
                uid = uid.max(label.uid);
                if label.of == Type::Header && label.page == 0 {
                    headers.push(HeaderPlace {
                        uid: label.uid,
                        at: sector as u64,
                    });
                }
            }
        }
        self.is_free[..TABLE.0 as usize + TABLE.1].fill(false);
        self.lowest = 0;
        self.next_uid = uid + 1;
        self.table = Table::make(&mut self.disk, TABLE.0, TABLE.1)?;
        let mut found = 0;
        for place in headers {
            // A header that cannot be read loses its file, and no other one.
            let Ok(header) = self.read_header(place) else {
                continue;
            };
            let key = key_of(&header.name, header.version);
            let value = value_of(&header)?;
            self.table.put(&mut self.disk, &key, &value)?;
            found += 1;
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use volary_sim::Preset;
    use volary_sim::seek::Drive;

    #[test]
    fn all_files_are_found_without_name_table_and_map() {
        let drive = Drive::TRIDENT;
        let mut volume = Volume::make(&Preset::T300).unwrap();
        for i in 0..80 {
            volume.create(&format!("f{i:02}"), &[i; 900]).unwrap();
        }
        volume.delete("f07").unwrap();
        let listed = volume.list("").unwrap();
        volume.table = Table::make(&mut volume.disk, TABLE.0, TABLE.1).unwrap();
        volume.is_free.fill(true);
        volume.lowest = 0;
        assert!(volume.open("f08").is_err());
        let cylinder = (drive.track * drive.heads) as usize;
        assert_eq!(volume.scavenge(cylinder).unwrap(), 79);
        assert_eq!(volume.list("").unwrap(), listed);
        volume.create("new", &[1; 900]).unwrap();
        let open = volume.open("f08").unwrap();
        assert_eq!(volume.read(&open).unwrap(), [8; 900]);
    }
}

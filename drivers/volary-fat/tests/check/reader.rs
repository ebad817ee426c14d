//! What can be read of a volume, by as little code as does it: every file that
//! a path leads to and whose chain is whole, with its bytes.

use crate::check::image::Image;
use std::collections::BTreeMap;

/// Files by path.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// Returns all files that can be read.
pub(crate) fn files(image: &Image) -> Files {
    let mut out = Files::new();
    let mut dirs = vec![(0, String::new())];
    let mut seen = Vec::new();
    while let Some((dir, path)) = dirs.pop() {
        let mut long: Vec<(u8, String, u8)> = Vec::new();
        for at in image.slots(dir) {
            let raw = &image.bytes[at..at + 32];
            if raw[0] == 0 {
                break;
            }
            if raw[0] == 0xe5 {
                long.clear();
            } else if raw[11] & 0x3f == 0x0f {
                long.push((raw[0], part(raw), raw[13]));
            } else {
                let name = name(raw, &std::mem::take(&mut long));
                let full = format!("{path}/{name}");
                let start = image.start(at);
                if raw[11] & 8 != 0 || raw[0] == b'.' {
                    continue;
                }
                if raw[11] & 0x10 == 0 {
                    if let Some(bytes) = content(image, start, image.size(at)) {
                        out.insert(full, bytes);
                    }
                } else if image.is_cluster(start) && !seen.contains(&start) {
                    seen.push(start);
                    dirs.push((start, full));
                }
            }
        }
    }
    out
}

/// Returns a file's bytes, if its chain is whole.
fn content(image: &Image, start: u32, size: u32) -> Option<Vec<u8>> {
    let need = (size as usize).div_ceil(image.cluster);
    let chain = if size == 0 {
        Vec::new()
    } else {
        image.chain(start)
    };
    if chain.len() < need || chain.iter().take(need).any(|&n| image.fat(0, n) == 0) {
        return None;
    }
    let mut bytes = Vec::new();
    for &n in chain.iter().take(need) {
        let at = image.cluster_at(n);
        bytes.extend_from_slice(&image.bytes[at..at + image.cluster]);
    }
    bytes.truncate(size as usize);
    Some(bytes)
}

/// Returns the characters of a part of a long name.
fn part(raw: &[u8]) -> String {
    let units = (1..11)
        .chain(14..26)
        .chain(28..32)
        .step_by(1)
        .collect::<Vec<_>>();
    let units: Vec<u16> = units
        .chunks(2)
        .map(|i| u16::from_le_bytes([raw[i[0]], raw[i[1]]]))
        .take_while(|&u| u != 0)
        .collect();
    String::from_utf16_lossy(&units)
}

fn name(raw: &[u8], long: &[(u8, String, u8)]) -> String {
    let sum = raw[..11]
        .iter()
        .fold(0_u8, |s, &b| s.rotate_right(1).wrapping_add(b));
    let count = long.len() as u8;
    let whole = long.iter().enumerate().all(|(i, (order, _, check))| {
        let want = count - i as u8;
        let first = if i == 0 { 0x40 } else { 0 };
        *order == want | first && *check == sum
    });
    if whole && !long.is_empty() {
        return long.iter().rev().map(|p| p.1.as_str()).collect();
    }
    let text = |b: &[u8]| {
        let text: String = b.iter().map(|&b| char::from(b)).collect();
        text.trim_end().to_string()
    };
    let (base, ext) = (text(&raw[..8]), text(&raw[8..11]));
    if ext.is_empty() {
        base
    } else {
        format!("{base}.{ext}")
    }
}
